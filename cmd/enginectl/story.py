"""Story: what the demo shows, chapter by chapter. Each runs the command that it names, on a real API over loopback."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from engine.report.line import Line
from engine.runtime.client import Client
from enginectl import output, wiring
from enginectl.condition import show
from enginectl.exits import Exit
from enginectl.manifest_files import NO_FILES, Wanted
from enginectl.options import Options, Output
from enginectl.preview import preview
from enginectl.syncing import Patience, synced
from enginectl.wiring import Wiring
from providers.sandbox.actors.settings import Settings
from providers.sandbox.process import sandbox
from resources.base.kinds import PODCLIQUESET

EXAMPLE = Path(__file__).with_name("demo.yaml")
SOURCE = Path(__file__).parents[2] / "examples" / "01-first-gang" / "gang.yaml"
"""Where the example lies while this is a working copy; an installed package carries it along."""
NAME = "first"
PATIENCE = Patience(wait=True, seconds=60.0)

Step = Callable[[], Awaitable[Exit]]


@dataclass(frozen=True, slots=True)
class Chapter:
    """What is said, the command that is shown, and what is done."""

    words: str
    command: str
    steps: tuple[Step, ...]


async def tell_story(wired: Wiring, nodes: int) -> Exit:
    """The whole story; it ends early when a chapter does not end well."""
    output.say(Line("A Kubernetes API in memory, with simulated nodes, kubelets and a gang scheduler. Nothing outside is touched.", "head"))
    with TemporaryDirectory(prefix="engine-demo-") as folder:
        async with sandbox(wired.clock, Path(folder), settings=Settings(nodes=nodes)) as box:
            here = replace(wired, options=Options(kubeconfig=box.kubeconfig, verbose=wired.options.verbose))
            async with wiring.cluster(here) as (client, _):
                code = await read_out(chapters(here, client))
                if code is Exit.DONE:
                    code = await nothing_left(here, client)
    return code


async def read_out(told: Iterable[Chapter]) -> Exit:
    """Chapter after chapter."""
    for number, chapter in enumerate(told, 1):
        output.say()
        output.say(Line(f"{number}. {chapter.words}", "head"))
        output.say(Line(f"   $ {chapter.command}", "faint"))
        for step in chapter.steps:
            code = await step()
            if code is not Exit.DONE:
                return code
    return Exit.DONE


def chapters(here: Wiring, client: Client) -> tuple[Chapter, ...]:
    """What is told, in order."""
    example = EXAMPLE if EXAMPLE.exists() else SOURCE
    wanted = wiring.manifests(here, [example])

    async def look(files: Wanted = wanted) -> Exit:
        return await preview(here, files, wiring.LIVE, Output.TEXT)

    async def sync(files: Wanted = NO_FILES) -> Exit:
        return await synced(here, files, Output.TEXT, wiring.USUAL, PATIENCE, anyio.CancelScope())

    async def status() -> Exit:
        return await show(here, NAME, Output.TEXT)

    def scale(replicas: int) -> Step:
        return lambda: scaled(client, replicas)

    return (
        Chapter("A leader and two workers, on disk so far. What would they become?", "engine diff -f examples/01-first-gang", (look,)),
        Chapter("That, and nothing else, is now made so.", "engine sync -f examples/01-first-gang", (lambda: sync(wanted),)),
        Chapter("All three started together, as a gang.", f"engine status {NAME}", (status,)),
        Chapter(
            "Three such gangs: the plan before, the cluster after.",
            f"kubectl scale pcs {NAME} --replicas 3; engine diff; engine sync",
            (scale(3), lambda: look(NO_FILES), sync),
        ),
        Chapter(
            "And back to one: deletes were asked for by a smaller number, so no guard objects.",
            f"kubectl scale pcs {NAME} --replicas 1; engine diff; engine sync",
            (scale(1), lambda: look(NO_FILES), sync),
        ),
        Chapter("Once more: nothing to do, nothing written.", "engine sync", (sync,)),
        Chapter(
            "Teardown is the plan for an empty graph.",
            f"kubectl delete pcs {NAME} --wait=false; engine sync",
            (lambda: deleted(client), sync),
        ),
    )


async def scaled(client: Client, replicas: int) -> Exit:
    """What `kubectl scale` does."""
    await client.patch(PODCLIQUESET, wiring.HOME, NAME, {"spec": {"replicas": replicas}}, subresource="scale")
    return Exit.DONE


async def deleted(client: Client) -> Exit:
    """What `kubectl delete` does."""
    await client.delete(PODCLIQUESET, wiring.HOME, NAME)
    return Exit.DONE


async def nothing_left(wired: Wiring, client: Client) -> Exit:
    """Whether everything that was made is gone again."""
    scope = wiring.scope(wired.setup)
    left = {kind.name: len((await client.list(kind, labels=scope.selector)).items) for kind in scope.children}
    left |= {kind.name: len((await client.list(kind)).items) for kind in scope.roots}
    found = ", ".join(f"{count} {kind}" for kind, count in left.items() if count)
    output.say()
    output.say(Line(f"Left behind: {found or 'nothing'}.", "bad" if found else "good"))
    return Exit.FAILED if found else Exit.DONE
