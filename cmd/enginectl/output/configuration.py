"""The check of an operator configuration file: lines for people, and entries of the JSON document."""

from collections.abc import Iterator
from typing import Any

from engine.report.printable import Line
from enginectl.wiring.configuration_file import ConfigurationFile, Finding


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
