"""`engine render`: the desired objects, without a cluster."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import Files, ObjectFormat, options


def render(
    ctx: typer.Context,
    files: Files = None,
    format: Annotated[ObjectFormat, typer.Option("--output", "-o", help="A YAML stream, or one JSON document.")] = ObjectFormat.YAML,
) -> Exit:
    """Print the desired objects of manifests.

    Needs no cluster; equal input gives equal bytes. Names of pods are computed from the namespace and name of the workload instead of
    its uid.
    """
    from enginectl.actions.render import render_files
    from enginectl.base.errors import UsageError
    from enginectl.wiring.configuration import wire

    if not files:
        raise UsageError("render needs manifests: -f FILE")
    return render_files(wire(options(ctx)), files, as_json=format is ObjectFormat.JSON)
