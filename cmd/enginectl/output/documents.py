"""Documents: a report in every format, each as one text. A format is imported when it is written: a command needs one or two of them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct, field

from engine.ids import ResourceId
from engine.report.model import COMMENT, FileLine, Report
from enginectl.base.options import ReportFormat


class Style(Struct, frozen=True):
    """How a report is written. Each format takes what it has a use for."""

    title: str = ""
    link: str = ""
    max_bytes: int = COMMENT
    values: bool = False
    """Whether the values of environment variables are shown."""
    verbose: bool = False


class Material(Struct, frozen=True, eq=False):
    """What a report is written from."""

    report: Report
    at: datetime | None
    """When the cluster was observed; None: it is imagined, or a record of one."""
    places: Mapping[ResourceId, FileLine] = field(default_factory=dict)
    """Root -> where its manifest is."""
    warned: Mapping[ResourceId, frozenset[str]] = field(default_factory=dict)
    """Root -> the notes that stderr has already: files, and formats that others read, repeat them."""


def text_document(material: Material, style: Style) -> str:
    """The lines for a terminal, without colour."""
    from engine.report.text import text

    return "".join(f"{line.text}\n" for line in text(material.report, verbose=style.verbose))


def json_document(material: Material, style: Style) -> str:
    """One JSON document: complete, whatever the style."""
    from engine.report.json import document, printed

    return f"{printed(document(material.report))}\n"


def html_document(material: Material, style: Style) -> str:
    """One page."""
    from engine.report.html.document import html

    return html(material.report, material.at, values=style.values)


def markdown_document(material: Material, style: Style) -> str:
    """A comment."""
    from engine.report.markdown.document import markdown

    return markdown(material.report, title=style.title, link=style.link, limit=style.max_bytes, values=style.values)


def sarif_document(material: Material, style: Style) -> str:
    """The findings at their lines, for code scanning."""
    from engine.report.json import printed
    from engine.report.sarif import findings, sarif

    return f"{printed(sarif(findings(material.report, material.places), style.title, str(Path.cwd())))}\n"


def sarif_faults(text: str, style: Style) -> str:
    """The findings of manifests that cannot be planned: the text of the error."""
    from engine.report.json import printed
    from engine.report.sarif import faults, sarif

    return f"{printed(sarif(faults(text), style.title, str(Path.cwd())))}\n"


def markdown_faults(text: str, style: Style) -> str:
    """The same as a comment."""
    from engine.report.markdown.document import markdown_of_faults

    return markdown_of_faults(text, title=style.title, limit=style.max_bytes)


def html_faults(text: str, style: Style) -> str:
    """The same as a page."""
    from engine.report.html.document import html_of_faults

    return html_of_faults(text)


def mermaid_document(material: Material, style: Style) -> str:
    """The operations in their order, drawn where Markdown is."""
    from engine.report.diagram.languages import mermaid
    from engine.report.diagram.model import of_report

    return mermaid(of_report(material.report))


def dot_document(material: Material, style: Style) -> str:
    """The same for Graphviz."""
    from engine.report.diagram.languages import dot
    from engine.report.diagram.model import of_report

    return dot(of_report(material.report))


DOCUMENTS: Mapping[ReportFormat, Callable[[Material, Style], str]] = {
    ReportFormat.TEXT: text_document,
    ReportFormat.JSON: json_document,
    ReportFormat.HTML: html_document,
    ReportFormat.MARKDOWN: markdown_document,
    ReportFormat.SARIF: sarif_document,
    ReportFormat.MERMAID: mermaid_document,
    ReportFormat.DOT: dot_document,
}

FAULTS: Mapping[ReportFormat, Callable[[str, Style], str]] = {
    ReportFormat.HTML: html_faults,
    ReportFormat.MARKDOWN: markdown_faults,
    ReportFormat.SARIF: sarif_faults,
}
"""The formats in which people are also told why there is no plan."""
