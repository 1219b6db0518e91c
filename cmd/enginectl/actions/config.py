"""`engine config`: the findings about an operator configuration file, or its settings with all defaults."""

from pathlib import Path

from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat
from enginectl.output.configuration import check_lines, finding_entry
from enginectl.wiring.configuration import read_settings
from enginectl.wiring.configuration_file import read_configuration_file
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
