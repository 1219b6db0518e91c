"""`engine config`: checks an operator configuration file, or shows it with all defaults. Needs no cluster."""

from pathlib import Path
from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import Format, OutputFormat, options

config = typer.Typer(name="config", help="Check or show the operator configuration.", no_args_is_help=True)


@config.callback()
def group() -> None:
    """Check or show the operator configuration."""


@config.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Operator configuration; - for standard input.")],
    format: Format = OutputFormat.TEXT,
) -> Exit:
    """Print every error and warning of an operator configuration, and the fields that have no effect.

    Exits with 64 if the file cannot be used.
    """
    from enginectl.actions.config import check_file
    from enginectl.base.runner import conclude

    return conclude(check_file(file, format), format)


@config.command()
def show(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Operator configuration; - for standard input. Default: that of --config.")
    ] = None,
) -> Exit:
    """Print the operator configuration with all defaults, as YAML."""
    from enginectl.actions.config import show_settings

    return show_settings(file or options(ctx).config)
