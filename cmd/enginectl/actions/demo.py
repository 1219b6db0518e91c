"""The demo: the life of an example in steps. Each runs the command that it shows, against a sandbox over loopback."""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from msgspec import Struct
from msgspec.structs import replace

from engine.errors import NotFound
from engine.ids import Kind
from engine.report.printable import Line
from engine.runtime.provider import Client
from enginectl.actions.diff import diff as write_diff
from enginectl.actions.preview import PreviewRequest
from enginectl.actions.status import show_status
from enginectl.actions.sync import Patience
from enginectl.actions.sync import sync as apply_until_settled
from enginectl.base import terminal
from enginectl.base.exit_codes import Exit
from enginectl.base.options import Options, OutputFormat
from enginectl.input.roots import NO_ROOTS, Roots, load_roots
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring
from enginectl.wiring.connection import connect
from enginectl.wiring.scope import scope_of
from resources.base.kinds import PODCLIQUESET

PACKAGED = Path(__file__).with_name("demo.yaml")
"""The example in an installed package."""
EXAMPLE = Path(__file__).parents[3] / "examples" / "01-first-gang" / "gang.yaml"
"""The example in a working copy."""
NAME = "first"
PATIENCE = Patience(wait=True, seconds=60.0)

Action = Callable[[], Awaitable[Exit]]


class DemoStep(Struct, frozen=True):
    """A heading, the command that is shown, and the actions that do the same."""

    heading: str
    command: str
    actions: tuple[Action, ...]


async def run_demo(wiring: Wiring, nodes: int) -> Exit:
    """Run all steps on a new sandbox. Returns the exit code of the first step that fails, or 1 if objects are left at the end."""
    from providers.sandbox.actors.options import ActorOptions
    from providers.sandbox.process import sandbox

    introduction = "A Kubernetes API in memory, with simulated nodes, kubelets and a gang scheduler. No other cluster is touched."
    terminal.print_line(Line(introduction, "head"))
    with TemporaryDirectory(prefix="engine-demo-") as folder:
        async with sandbox(wiring.clock, Path(folder), options=ActorOptions(nodes=nodes)) as box:
            inside = replace(wiring, options=Options(kubeconfig=box.kubeconfig, verbose=wiring.options.verbose))
            async with connect(inside) as (client, _):
                code = await run_steps(steps(inside, client))
                return await check_nothing_left(inside, client) if code is Exit.DONE else code


async def run_steps(steps: Iterable[DemoStep]) -> Exit:
    """Run the steps in order. Returns the exit code of the first action that fails."""
    for number, step in enumerate(steps, 1):
        terminal.print_line()
        terminal.print_line(Line(f"{number}. {step.heading}", "head"))
        terminal.print_line(Line(f"   $ {step.command}", "faint"))
        for action in step.actions:
            code = await action()
            if code is not Exit.DONE:
                return code
    return Exit.DONE


def steps(wiring: Wiring, client: Client) -> tuple[DemoStep, ...]:
    """The steps of the demo."""
    roots = load_roots(wiring, [PACKAGED if PACKAGED.exists() else EXAMPLE])

    async def diff(roots: Roots = NO_ROOTS) -> Exit:
        return await write_diff(wiring, PreviewRequest(roots))

    async def sync(roots: Roots = NO_ROOTS) -> Exit:
        return await apply_until_settled(wiring, roots, OutputFormat.TEXT, anyio.CancelScope(), patience=PATIENCE)

    async def status() -> Exit:
        return await show_status(wiring, NAME, OutputFormat.TEXT)

    return (
        DemoStep("A leader and two workers in a file: the plan.", "engine diff -f examples/01-first-gang", (lambda: diff(roots),)),
        DemoStep("Apply the plan until every workload is settled.", "engine sync -f examples/01-first-gang", (lambda: sync(roots),)),
        DemoStep("All three pods have started together, as a gang.", f"engine status {NAME}", (status,)),
        DemoStep(
            "Scale to three gangs: the plan first, then the cluster.",
            f"kubectl scale pcs {NAME} --replicas 3; engine diff; engine sync",
            (lambda: scale(client, 3), diff, sync),
        ),
        DemoStep(
            "Scale back to one. The deletes are intended, because the number of replicas is smaller: no guard denies them.",
            f"kubectl scale pcs {NAME} --replicas 1; engine diff; engine sync",
            (lambda: scale(client, 1), diff, sync),
        ),
        DemoStep("Sync again: everything is in sync, nothing is written.", "engine sync", (sync,)),
        DemoStep(
            "Delete the set: its objects are removed in order.",
            f"kubectl delete pcs {NAME} --wait=false; engine sync",
            (lambda: delete(client), sync),
        ),
    )


async def scale(client: Client, replicas: int) -> Exit:
    """Do what `kubectl scale` does."""
    await client.patch(PODCLIQUESET, DEFAULT_NAMESPACE, NAME, {"spec": {"replicas": replicas}}, subresource="scale")
    return Exit.DONE


async def delete(client: Client) -> Exit:
    """Do what `kubectl delete` does."""
    await client.delete(PODCLIQUESET, DEFAULT_NAMESPACE, NAME)
    return Exit.DONE


async def check_nothing_left(wiring: Wiring, client: Client) -> Exit:
    """Report the objects that are left after the teardown. Returns 1 if there are any."""
    scope = scope_of(wiring.configuration)
    counts = {kind.name: await count(client, kind, scope.selector) for kind in scope.children}
    counts |= {kind.name: await count(client, kind) for kind in scope.roots}
    left = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    terminal.print_line()
    terminal.print_line(Line(f"Left in the cluster: {left or 'nothing'}.", "bad" if left else "good"))
    return Exit.FAILED if left else Exit.DONE


async def count(client: Client, kind: Kind, labels: str = "") -> int:
    """How many objects of a kind carry the labels; none of a kind that is not served."""
    try:
        return len((await client.list(kind, labels=labels)).items)
    except NotFound:
        return 0
