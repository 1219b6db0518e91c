"""`engine graph`: the desired objects of manifests and what they depend on, as a drawing."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import EnableRemote, FieldValidation, Files, GraphFormat, options


def graph(
    ctx: typer.Context,
    files: Files = None,
    enable_remote: EnableRemote = False,
    format: Annotated[GraphFormat, typer.Option("--output", "-o", help="For Graphviz, for Markdown, or a drawing.")] = GraphFormat.DOT,
) -> Exit:
    """Draw the desired objects of manifests and what they depend on.

    Solid arrows lead from owners to what they own, dashed ones from what is created first. Objects that are alike share a box if there
    are many. Needs no cluster; equal input gives equal bytes.
    """
    from enginectl.actions.graph import draw
    from enginectl.base.exit_codes import UsageError
    from enginectl.wiring.configuration import wire

    if not files:
        raise UsageError("graph needs manifests: -f FILE")
    # A drawing applies nothing: what is wrong with the pods is a warning.
    return draw(wire(options(ctx), validation=FieldValidation.WARN), files, format, remote=enable_remote)
