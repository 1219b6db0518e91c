"""Documents: a report in every format, each as one text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from engine.ids import ResourceId
from engine.report.diagram.dot import dot
from engine.report.diagram.mermaid import mermaid
from engine.report.diagram.sources import of_report
from engine.report.html.document import html
from engine.report.json import document, printed
from engine.report.markdown.document import COMMENT, markdown
from engine.report.model import Report
from engine.report.sarif import FileLine, faults, findings, sarif
from engine.report.text import text
from enginectl.base.options import ReportFormat


@dataclass(frozen=True, slots=True)
class Style:
    """How a report is written. Each format takes what it has a use for."""

    title: str = ""
    link: str = ""
    max_bytes: int = COMMENT
    values: bool = False
    """Whether the values of environment variables are shown."""
    verbose: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What a report is written from."""

    report: Report
    at: datetime
    """When the cluster was observed."""
    places: Mapping[ResourceId, FileLine] = field(default_factory=dict)
    """Root -> where its manifest is."""


def text_document(material: Material, style: Style) -> str:
    """The lines for a terminal, without colour."""
    return "".join(f"{line.text}\n" for line in text(material.report, verbose=style.verbose))


def json_document(material: Material, style: Style) -> str:
    """One JSON document: complete, whatever the style."""
    return f"{printed(document(material.report))}\n"


def html_document(material: Material, style: Style) -> str:
    """One page."""
    return html(material.report, material.at, values=style.values)


def markdown_document(material: Material, style: Style) -> str:
    """A comment."""
    return markdown(material.report, title=style.title, link=style.link, limit=style.max_bytes, values=style.values)


def sarif_document(material: Material, style: Style) -> str:
    """The findings at their lines, for code scanning."""
    return f"{printed(sarif(findings(material.report, material.places), style.title, str(Path.cwd())))}\n"


def sarif_of_faults(text: str, style: Style) -> str:
    """The same of manifests that cannot be read: the text of the error."""
    return f"{printed(sarif(faults(text), style.title, str(Path.cwd())))}\n"


def mermaid_document(material: Material, style: Style) -> str:
    """The operations in their order, drawn where Markdown is."""
    return mermaid(of_report(material.report))


def dot_document(material: Material, style: Style) -> str:
    """The same for Graphviz."""
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
