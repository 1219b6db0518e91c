"""`engine why`: explains one object."""

from typing import Annotated, Final

import typer

from enginectl.base.exit_codes import Exit
from enginectl.base.options import Format, OutputFormat, options
from enginectl.commands.completion import objects

EXAMPLES: Final = """
engine why web                   # the set or graph of this name
engine why pod/web-0-worker-x7k2p
engine why pclq web-0-worker -n prod
"""


def why(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND/]NAME",
            help="As with kubectl: pod/x, pclq x, dgd/x, computedomain/x. Without a kind: the set or graph of this name.",
            show_default=False,
            autocompletion=objects,
        ),
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
    from enginectl.base.runner import conclude
    from enginectl.wiring.configuration import Wiring, wire
    from enginectl.wiring.published_configuration import run_reading

    wiring = wire(options(ctx))
    *kind, name = words if len(words) > 1 else words[0].split("/")
    if len(kind) > 1 or any(not part or "/" in part for part in (*kind, name)):
        raise UsageError(f"{' '.join(words)}: expected KIND/NAME, e.g. pod/x or pclq/x")
    if wiring.options.all_namespaces:
        raise UsageError("why explains one object: name its namespace with -n instead of -A")

    async def work(known: Wiring) -> Exit:
        return await explain_object(known, "".join(kind), name, format)

    return conclude(run_reading(wiring, work), format)
