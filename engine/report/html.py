"""A report as one self-contained HTML document: no script, nothing to load, bounded in size."""

from datetime import datetime

from engine.report.html_elements import element
from engine.report.html_page import page
from engine.report.html_plan import report_sections
from engine.report.model import Report


def html(report: Report, at: datetime) -> str:
    """The document. `at`: when the cluster was observed."""
    return page(
        "Plan",
        element(
            "header", element("h1", "Plan"), element("p", f"What the next sync would do, as of {at:%Y-%m-%d %H:%M:%S} UTC", class_="faint")
        ),
        element("main", list(report_sections(report))),
    )
