"""Reporting: where the plan of a preview is written, and how."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from engine.errors import InputError
from engine.ids import ResourceId
from engine.proposal import proposed_root
from engine.report.model import COMMENT, LINK, SMALLEST, SUMMARY, TITLE, FileLine, without_notes
from engine.report.printable import clipped
from engine.report.text import text
from enginectl.base import terminal
from enginectl.base.exit_codes import UsageError
from enginectl.base.files import append_text, require_directory, write_text
from enginectl.base.options import ReportFormat
from enginectl.input.roots import Roots
from enginectl.output.documents import DOCUMENTS, FAULTS, Material, Style
from resources.preview.pod_patterns import with_patterns


class Outputs(Struct, frozen=True, eq=False):
    """Where a plan is written, and how."""

    format: ReportFormat = ReportFormat.TEXT
    """On standard output."""
    files: Mapping[Path, ReportFormat] = field(default_factory=dict)
    summary: Path | None = None
    """A file to which Markdown is appended."""
    style: Style = Style()

    @property
    def beside(self) -> str:
        """The option that asks for more than standard output, or for a format that only a plan has; empty if there is none."""
        if self.format not in (ReportFormat.TEXT, ReportFormat.JSON):
            return f"-o {self.format}"
        return "--report" if self.files else "--summary" if self.summary else ""


TO_TERMINAL = Outputs()


def outputs_of(
    format: ReportFormat,
    reports: Sequence[str] = (),
    summary: Path | None = None,
    *,
    title: str = "",
    link: str = "",
    max_bytes: int = COMMENT,
    values: bool = False,
) -> Outputs:
    """The outputs that a command line asks for. Raises `UsageError` if something in it cannot be used."""
    if title and not TITLE.fullmatch(title):
        raise UsageError("--title takes letters, digits, blanks and . _ / : - (no two hyphens in a row), at most 100 of them")
    if link and not LINK.fullmatch(link):
        raise UsageError("--link takes an address that begins with http:// or https://, without blanks, quotes and parentheses")
    if summary is not None and str(summary) in ("", ".", "-"):
        raise UsageError("--summary needs the name of a file")
    if summary is not None:
        require_directory(summary, "--summary")
    return Outputs(format, files_of(reports), summary, Style(title, link, max_bytes, values))


def files_of(reports: Sequence[str]) -> dict[Path, ReportFormat]:
    """File -> its format, from texts such as `html=plan.html`."""
    files: dict[Path, ReportFormat] = {}
    known = ", ".join(ReportFormat)
    for each in reports:
        format, _, file = each.partition("=")
        if format not in set(ReportFormat) or not file:
            raise UsageError(f"--report takes FORMAT=FILE with one of the formats {known}, got {clipped(each, 80)}")
        if file == "-":
            raise UsageError(f"--report {each}: -o {format} writes to standard output")
        if Path(file) in files:
            raise UsageError(f"--report: {clipped(file, 200)} is named twice")
        require_directory(Path(file), "--report")
        files[Path(file)] = ReportFormat(format)
    return files


def write_outputs(material: Material, outputs: Outputs, *, verbose: bool = False) -> None:
    """Write the files, then standard output. Raises `UsageError` if a file cannot be written."""
    style = replace(outputs.style, verbose=verbose)
    material = replace(material, report=with_patterns(material.report))
    for file, format in outputs.files.items():
        write_text(file, DOCUMENTS[format](material, style), "--report")
    if outputs.summary is not None:
        append_summary(partial(DOCUMENTS[ReportFormat.MARKDOWN], material), style, outputs.summary)
    if outputs.format is ReportFormat.TEXT:
        terminal.print_lines(text(without_notes(material.report, material.warned), verbose=verbose))
    else:
        terminal.print_text(DOCUMENTS[outputs.format](material, style))
        terminal.flush()


@contextmanager
def faults_reported(outputs: Outputs) -> Iterator[None]:
    """If faults of manifests prevent the plan, write them where the plan would have been written. The `InputError` is raised again."""
    try:
        yield
    except InputError as error:
        if not isinstance(error, UsageError):
            write_faults(str(error), outputs)
        raise


def write_faults(text: str, outputs: Outputs) -> None:
    """Write the text of an error in every format that is asked for and that can say why there is no plan."""
    for file, format in outputs.files.items():
        if format in FAULTS:
            write_text(file, FAULTS[format](text, outputs.style), "--report")
    if outputs.summary is not None:
        append_summary(lambda style: FAULTS[ReportFormat.MARKDOWN](text, style), outputs.style, outputs.summary)
    if outputs.format in FAULTS:
        terminal.print_text(FAULTS[outputs.format](text, outputs.style))
        terminal.flush()


def places_of(roots: Roots) -> dict[ResourceId, FileLine]:
    """Root -> where its manifest is."""
    pairs = zip(roots.bodies, roots.manifests, strict=True)
    return {proposed_root(body).id: FileLine(manifest.document.source, manifest.line()) for body, manifest in pairs}


def append_summary(write: Callable[[Style], str], style: Style, file: Path) -> None:
    """Append Markdown to a file, as much as fits into a summary beside what the file has already."""
    taken = file.stat().st_size if file.is_file() else 0
    room = max(SMALLEST, SUMMARY - taken)
    append_text(file, write(replace(style, max_bytes=room)), "--summary")
