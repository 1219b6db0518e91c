"""A report as one self-contained HTML document: no script, nothing to load, bounded in size."""

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
