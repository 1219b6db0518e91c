"""Documents of HTML, self-contained and bounded in size: a report, or the faults of manifests that cannot be planned."""

from datetime import datetime

from engine.report.html.elements import element
from engine.report.html.page import page
from engine.report.html.plan import report_sections
from engine.report.model import Report


def html(report: Report, at: datetime | None, *, values: bool = False) -> str:
    """The document. `at`: when the cluster was observed; None: it is imagined, or a record of one.

    `values`: with those of environment variables, which are masked otherwise.
    """
    about = f"What the next sync would do, as of {at:%Y-%m-%d %H:%M:%S} UTC" if at else "What a sync would do"
    return page(
        "Plan",
        element("header", element("h1", "Plan"), element("p", about, class_="faint")),
        element("main", list(report_sections(report, values=values))),
    )


def html_of_faults(text: str) -> str:
    """The document: the lines of the text of the error, as a list."""
    lines = text.splitlines()
    return page(
        "Plan",
        element(
            "header",
            element("h1", "Plan"),
            element("p", f"Nothing was planned: {len(lines)} fault{'' if len(lines) == 1 else 's'}", class_="faint"),
        ),
        element("main", [element("p", element("strong", "fault: "), line, class_="alert") for line in lines]),
    )
