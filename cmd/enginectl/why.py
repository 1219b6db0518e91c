"""`engine why`: why an object is as it is."""

from typing import Annotated

import typer

from enginectl.diff import Form
from enginectl.exits import Exit
from enginectl.options import Output, options


def why(
    ctx: typer.Context,
    what: Annotated[str, typer.Argument(metavar="KIND/NAME", help="As with kubectl: pod/x, pclq/x, computedomain/x.", show_default=False)],
    form: Form = Output.TEXT,
) -> Exit:
    """Explain why an object is as it is.

    Who wants it and why, what is due or held and until when; and, of a fabric domain and the pods in it, what is wrong and what to do.
    With -v also which of its fields comes from which field of its root.
    """
    import anyio

    from enginectl import wiring
    from enginectl.explaining import explained
    from enginectl.running import Misuse, concluded, run

    wired = wiring.wired(options(ctx))
    kind, slash, name = what.partition("/")
    if not (kind and slash and name) or "/" in name:
        raise Misuse(f"{what}: not an object: it takes KIND/NAME, as in pod/x or computedomain/x")
    if wired.options.all_namespaces:
        raise Misuse("why is about one object: -n names its namespace")

    async def work(stop: anyio.CancelScope) -> Exit:
        with stop:
            return await explained(wired, kind, name, form)
        return Exit.INTERRUPTED

    return concluded(run(work), form)
