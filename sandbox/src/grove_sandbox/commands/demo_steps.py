"""The demo: the life of an example in steps. Each runs the command that it shows, against a sandbox over loopback."""

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.process import sandbox
from grove_sandbox.product import (
    DEFAULT_NAMESPACE,
    Client,
    Exit,
    Kind,
    Line,
    NotFound,
    Options,
    Wiring,
    connected_with,
    kinds,
    scope_of,
    show_diff,
    show_status,
    sync_until_settled,
    terminal,
)

EXAMPLE = Path(__file__).with_name("demo.yaml")
"""The manifest of examples/01-first-gang."""
NAME = "first"

Action = Callable[[], Awaitable[Exit]]


class DemoStep(Struct, frozen=True):
    """A heading, the command that is shown, and the actions that do the same."""

    heading: str
    command: str
    actions: tuple[Action, ...]


async def run_demo(wiring: Wiring, nodes: int) -> Exit:
    """Run all steps on a new sandbox. Returns the exit code of the first step that fails, or 1 if objects are left at the end."""
    introduction = "A Kubernetes API in memory, with simulated nodes, kubelets and a gang scheduler. No other cluster is touched."
    terminal.print_line(Line(introduction, "head"))
    with TemporaryDirectory(prefix="engine-demo-") as folder:
        async with sandbox(wiring.clock, Path(folder), options=ActorOptions(nodes=nodes, gangs=True)) as box:
            inside = replace(wiring, options=Options(kubeconfig=box.kubeconfig, verbose=wiring.options.verbose))
            async with connected_with(inside) as client:
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

    async def diff(*files: Path) -> Exit:
        return await show_diff(wiring, files)

    async def sync(*files: Path) -> Exit:
        return await sync_until_settled(wiring, files)

    async def status() -> Exit:
        return await show_status(wiring, NAME)

    return (
        DemoStep("A leader and two workers in a file: the plan.", "engine diff -f examples/01-first-gang", (lambda: diff(EXAMPLE),)),
        DemoStep("Apply the plan until every workload is settled.", "engine sync -f examples/01-first-gang", (lambda: sync(EXAMPLE),)),
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
    await client.patch(kinds.PODCLIQUESET, DEFAULT_NAMESPACE, NAME, {"spec": {"replicas": replicas}}, subresource="scale")
    return Exit.DONE


async def delete(client: Client) -> Exit:
    """Do what `kubectl delete` does."""
    await client.delete(kinds.PODCLIQUESET, DEFAULT_NAMESPACE, NAME)
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
