"""`engine snapshot`: writes the observed objects to a file."""

from pathlib import Path
from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import OutputFormat, options


def snapshot(
    ctx: typer.Context,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Output file. Default: standard output.")] = None,
) -> Exit:
    """Write the observed objects to a file for `diff --against`.

    One YAML stream. Secret data is masked, and the field ownership of other managers is left out.
    """
    from enginectl.actions.snapshot import take_snapshot
    from enginectl.base.runner import conclude
    from enginectl.wiring.configuration import wire
    from enginectl.wiring.published_configuration import run_reading

    wiring = wire(options(ctx))
    return conclude(run_reading(wiring, lambda known: take_snapshot(known, out)), OutputFormat.JSON)
