"""`engine preflight`: checks whether a cluster has what the configuration needs."""

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import Format, OutputFormat, options


def preflight(ctx: typer.Context, format: Format = OutputFormat.TEXT) -> Exit:
    """Check whether the cluster has what the configuration needs.

    Kinds, permissions, drivers, leftovers; each with what to do about it. Exits with 7 if a hard requirement is not met. Writes nothing.
    """
    from enginectl.actions.preflight import run_checks
    from enginectl.base.runner import conclude, run_cancellable
    from enginectl.wiring.configuration import wire

    wiring = wire(options(ctx))
    return conclude(run_cancellable(lambda: run_checks(wiring, format)), format)
