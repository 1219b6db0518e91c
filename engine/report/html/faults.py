"""Faults as HTML: the page about manifests that cannot be planned."""

from engine.report.html.elements import element
from engine.report.html.page import page


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
