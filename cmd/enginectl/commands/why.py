"""`engine why`: explains one object."""

from typing import Annotated

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import Format, OutputFormat, options


def why(
    ctx: typer.Context,
    object: Annotated[
        str, typer.Argument(metavar="KIND/NAME", help="As with kubectl: pod/x, pclq/x, dgd/x, computedomain/x.", show_default=False)
    ],
    format: Format = OutputFormat.TEXT,
) -> Exit:
    """Explain the state of one object.

    Which workload desires it and why, and what is due, later, blocked or pending. Of pods, and of what consists of pods, also: why they do
    not run, since when, and what to do. Of a graph also: its services, and what it lacks. Of a fabric domain and the pods in it also: what
    is wrong. With -v: which of its fields is computed from which field of the
    set or graph.
    """
    from enginectl.actions.explain import explain_object
    from enginectl.base.exit_codes import UsageError
    from enginectl.base.runner import conclude, run_cancellable
    from enginectl.wiring.configuration import wire
    from enginectl.wiring.published_configuration import with_configuration

    wiring = wire(options(ctx))
    kind, slash, name = object.partition("/")
    if not (kind and slash and name) or "/" in name:
        raise UsageError(f"{object}: expected KIND/NAME, e.g. pod/x or computedomain/x")
    if wiring.options.all_namespaces:
        raise UsageError("why explains one object: name its namespace with -n instead of -A")
    return conclude(run_cancellable(lambda: with_configuration(wiring, lambda known: explain_object(known, kind, name, format))), format)
