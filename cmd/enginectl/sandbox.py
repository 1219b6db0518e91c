"""`engine sandbox`: a Kubernetes cluster in memory, and its actors for clusters that have none."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from enginectl.exits import Exit

DEFERENCE = 5.0
"""Seconds in which a control plane's own controller may take up a DaemonSet: most have one, a sandbox has none."""
HEARTBEAT = 10.0
"""Seconds between the leases of simulated nodes: other people's control planes take nodes for dead that are silent for 40."""

sandbox = typer.Typer(
    name="sandbox",
    help="A Kubernetes cluster in memory, and its actors for clusters that have none.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@sandbox.command()
def up(
    ctx: typer.Context,
    dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the kubeconfig goes; otherwise a folder that goes away again.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any that is free.")] = 0,
    nodes: Annotated[int, typer.Option(min=0, help="Simulated nodes.")] = 10,
    without: Annotated[
        str, typer.Option(metavar="ACTOR,…", help="Actors to leave out; their work is left to whoever patches the API.")
    ] = "",
    admission: Annotated[
        bool, typer.Option("--admission/--no-admission", help="Whether our webhooks stand before every write, as --config has them.")
    ] = True,
) -> Exit:
    """Start a cluster and hold it up.

    It stays in the foreground until Ctrl-C, answers on loopback alone, and serves kubectl and any other client. What the webhooks of
    a real cluster would fill in or refuse is filled in or refused.
    """
    from anyio import CancelScope

    from enginectl import wiring
    from enginectl.options import options
    from enginectl.running import run
    from enginectl.trust import protection
    from providers.sandbox.api.webhooks import Rules
    from providers.sandbox.registry import ACTORS

    wired = wiring.wired(options(ctx))
    rules = Rules(wired.setup, protection(wired.settings)) if admission else None
    left_out = _actors(without, "--without")
    chosen = tuple(name for name in ACTORS if name not in left_out)

    async def work(stop: CancelScope) -> Exit:
        with stop, _folder(dir) as folder:
            await _up(folder, port, chosen, nodes, rules)
        return Exit.DONE

    return run(work)


@sandbox.command()
def actors(
    ctx: typer.Context,
    with_: Annotated[str, typer.Option("--with", metavar="ACTOR,…", help="Which of them: scheduler, kubelet, garbage, …")],
    nodes: Annotated[int, typer.Option(min=0, help="Simulated nodes to create.")] = 0,
) -> Exit:
    """Play its actors on another cluster.

    A real control plane without GPUs gets gangs scheduled and pods that come to life. Not beside kube-scheduler or kwok for the same job.
    """
    from anyio import CancelScope

    from enginectl.options import options
    from enginectl.running import Misuse, run

    chosen = _actors(with_, "--with")
    if not chosen:
        raise Misuse("--with names no actor")
    asked = options(ctx)

    async def work(stop: CancelScope) -> Exit:
        with stop:
            await _play(chosen, nodes, str(asked.kubeconfig or ""), asked.context)
        return Exit.DONE

    return run(work)


def _actors(text: str, option: str) -> tuple[str, ...]:
    """The actors that a comma-separated list names. Raises `Misuse` for a name that there is not."""
    from enginectl.running import Misuse
    from providers.sandbox.registry import ACTORS

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in ACTORS:
            raise Misuse(f"{option} {name}: there is no such actor; there are {', '.join(ACTORS)}")
    return names


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """The folder that the user names, made if need be, or one that goes away afterwards."""
    from tempfile import TemporaryDirectory

    from engine.errors import InputError

    if given is None:
        with TemporaryDirectory(prefix="engine-sandbox-") as made:
            yield Path(made)
        return
    try:
        given.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--dir {given}: {error.strerror}") from error
    yield given.resolve()


async def _up(folder: Path, port: int, chosen: tuple[str, ...], nodes: int, rules: Any) -> None:
    """Hold the cluster up until called off."""
    import anyio

    from engine.errors import InputError
    from engine.runtime.clock import SystemClock
    from enginectl import output
    from providers.sandbox.actors.settings import Settings
    from providers.sandbox.process import sandbox as cluster

    try:
        async with cluster(SystemClock(), folder, port=port, actors=chosen, settings=Settings(nodes=nodes), rules=rules) as box:
            output.tell(f"the sandbox answers at {box.url}; Ctrl-C ends it")
            output.say_raw(f"export KUBECONFIG={shlex.quote(str(box.kubeconfig))}\n")
            sys.stdout.flush()
            await anyio.sleep_forever()
    except OSError as error:
        raise InputError(f"the sandbox cannot start on port {port} with its files in {folder}: {error.strerror}") from error


async def _play(chosen: tuple[str, ...], nodes: int, kubeconfig: str, context: str) -> None:
    """Play each actor through a client of its own until called off."""
    from contextlib import AsyncExitStack

    import anyio

    from engine.runtime.clock import SystemClock
    from enginectl import output
    from providers.kubernetes.connect import connected
    from providers.kubernetes.kubeconfig import Source
    from providers.sandbox.actors.settings import Driver, Settings
    from providers.sandbox.registry import run_actors

    clock, settings = SystemClock(), Settings(nodes=nodes, heartbeat=HEARTBEAT, driver=Driver(deference=DEFERENCE))
    async with AsyncExitStack() as open_clients, anyio.create_task_group() as tasks:
        for name in chosen:
            source = Source(kubeconfig, context)
            client = await open_clients.enter_async_context(connected(source, clock, field_manager=f"sandbox-{name}"))
            tasks.start_soon(run_actors, client, clock, (name,), settings)
        output.tell(f"playing {', '.join(chosen)}; Ctrl-C ends it")
