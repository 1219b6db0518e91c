"""`engine config`: the findings about an operator configuration file, or its settings with all defaults."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.report.printable import Line
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.wiring.configuration import read_settings
from enginectl.wiring.configuration_file import ConfigurationFile, Finding, read_configuration_file
from providers.snapshot import as_yaml
from resources.settings import Settings

VERSION = 1
"""Version of the JSON document; increased when a field is removed or changes its meaning."""


def check_file(path: Path, format: OutputFormat) -> Exit:
    """Write every finding about a file, and return 64 if it has errors. Raises `UsageError` if it cannot be read."""
    file = read_configuration_file(path)
    if format is OutputFormat.JSON:
        terminal.print_json(
            {
                "version": VERSION,
                "kind": "ConfigCheck",
                "usable": file.settings is not None,
                "errors": [finding_entry(error) for error in file.errors],
                "warnings": [finding_entry(warning) for warning in file.warnings],
                "withoutEffect": [finding_entry(field) for field in file.without_effect],
            }
        )
    else:
        terminal.print_lines(check_lines(file))
    return Exit.USAGE if file.settings is None else Exit.DONE


def show_settings(path: Path | None) -> Exit:
    """Write the configuration in a file with all defaults, or the defaults alone. Raises `UsageError` if the file cannot be used."""
    settings = read_settings(path) if path else Settings()
    terminal.print_text(as_yaml(settings.model_dump(mode="json", by_alias=True)))
    return Exit.DONE


def check_lines(file: ConfigurationFile) -> Iterator[Line]:
    """Every error, every warning, and if there is no error `ok` with the fields that have no effect."""
    for error in file.errors:
        yield Line(f"error: {error}", "bad")
    for warning in file.warnings:
        yield Line(f"warning: {warning}", "later")
    if file.settings is not None:
        count = len(file.without_effect)
        fields = "1 field has" if count == 1 else f"{count} fields have"
        yield Line(f"ok, {fields} no effect in this engine:" if count else "ok", "good")
        for field in file.without_effect:
            yield Line(f"  {field}", "faint")


def finding_entry(finding: Finding) -> dict[str, Any]:
    """An error, a warning or a field without effect in the JSON document. `line` is null if it concerns the whole file."""
    return {"file": finding.source, "line": finding.line, "field": finding.field, "message": finding.message}
