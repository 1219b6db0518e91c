"""`engine sandbox`: a Kubernetes API in memory, and the actors that simulate the rest of a cluster."""

import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

DEFERENCE = 5.0
"""Seconds for which the actors leave a DaemonSet to a controller of the cluster before they run its pods themselves."""
HEARTBEAT = 10.0
"""Seconds between lease renewals of simulated nodes. A real control plane takes a node for dead after 40."""

sandbox = typer.Typer(
    name="sandbox",
    help="A Kubernetes API in memory, and the actors that simulate the rest of a cluster.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


EXAMPLES: Final = """
engine sandbox up                                   # until Ctrl-C
engine sandbox up --detach --dir /tmp/sandbox       # in the background
engine sandbox down --dir /tmp/sandbox
engine sandbox up --nodes 40 --with kai
"""


@sandbox.command(epilog=EXAMPLES)
def up(
    ctx: typer.Context,
    dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to write the kubeconfig; by default a temporary directory.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0: any free port.")] = 0,
    nodes: Annotated[int, typer.Option(min=0, help="Simulated nodes.")] = 10,
    with_: Annotated[str, typer.Option("--with", metavar="ADDON,…", help="What is installed besides: lws, volcano, kai.")] = "",
    without: Annotated[str, typer.Option(metavar="ACTOR,…", help="Actors that are not run.")] = "",
    gangs: Annotated[bool, typer.Option("--gangs", help="Serve PodGroups, by which kube-scheduler schedules gangs.")] = False,
    admission: Annotated[
        bool, typer.Option("--admission/--no-admission", help="Whether writes pass the engine's webhooks, configured by --config.")
    ] = True,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it serves; `engine sandbox down` ends it.")] = False,
) -> int:
    """Serve a Kubernetes API in memory until Ctrl-C.

    It listens on the loopback address and serves kubectl and any other client. Writes get the defaults and the refusals of the webhooks
    of a real cluster.
    """
    from anyio import CancelScope

    from grove_sandbox.actors.options import ActorOptions
    from grove_sandbox.api.webhooks import Webhooks
    from grove_sandbox.product import Exit, options, protection, publication_of, run, wire
    from grove_sandbox.registry import ACTORS

    wiring = wire(options(ctx))
    if detach:
        return _detached(options(ctx), dir, port, nodes, with_, without, gangs=gangs, admission=admission)
    webhooks = Webhooks(wiring.configuration, protection(wiring.settings, wiring.configuration)) if admission else None
    publication = publication_of(wiring) if admission and wiring.options.config else None
    excluded, addons = _actors(without, "--without"), _addons(with_)
    names = tuple(name for name in ACTORS if name not in excluded)

    async def work(stop: CancelScope) -> Exit:
        with stop, _directory(dir) as directory:
            await _serve(directory, port, names, ActorOptions(nodes=nodes, gangs=gangs), addons, webhooks, publication)
        return Exit.DONE

    return run(work)


def _detached(shared: Any, dir: Path | None, port: int, nodes: int, with_: str, without: str, *, gangs: bool, admission: bool) -> int:
    """Start `engine sandbox up` with these options in a process of its own."""
    from grove_sandbox.commands.detached import start
    from grove_sandbox.product import Exit, UsageError, terminal

    if dir is None:
        raise UsageError("--detach needs --dir: `engine sandbox down --dir DIR` ends the sandbox")
    words = ["sandbox", "up", "--dir", str(dir), "--port", str(port), "--nodes", str(nodes), "--with", with_, "--without", without]
    words += ["--gangs"] if gangs else []
    words += [] if admission else ["--no-admission"]
    words += ["--config", str(shared.config)] if shared.config else []
    start(words)
    terminal.notice(f"engine sandbox down --dir {shlex.quote(str(dir))} ends it")
    return Exit.DONE


@sandbox.command()
def down(
    ctx: typer.Context, dir: Annotated[Path, typer.Option(metavar="DIR", help="The directory that `engine sandbox up` was given.")]
) -> int:
    """End a sandbox that was started with --detach, and wait until it has ended."""
    from grove_sandbox.commands.detached import stop
    from grove_sandbox.product import Exit, SystemClock, run_cancellable, terminal

    async def work() -> Exit:
        if not await stop(dir, SystemClock()):
            terminal.note(f"no sandbox runs in {dir}")
        return Exit.DONE

    return run_cancellable(work)


@sandbox.command()
def actors(
    ctx: typer.Context,
    with_: Annotated[str, typer.Option("--with", metavar="ACTOR,…", help="The actors to run: scheduler, kubelet, garbage, …")],
    nodes: Annotated[int, typer.Option(min=0, help="Simulated nodes to create.")] = 0,
) -> int:
    """Run the sandbox's actors against another API server, until Ctrl-C.

    They schedule gangs and simulate nodes and pods where there are no GPUs. Do not run them together with a kube-scheduler or kwok that
    does the same work.
    """
    from anyio import CancelScope

    from grove_sandbox.product import Exit, UsageError, options, run

    names = _actors(with_, "--with")
    if not names:
        raise UsageError("--with names no actor")
    chosen = options(ctx)

    async def work(stop: CancelScope) -> Exit:
        with stop:
            await _run_actors(names, nodes, chosen.kubeconfig, chosen.context)
        return Exit.DONE

    return run(work)


def _actors(text: str, option: str) -> tuple[str, ...]:
    """The actors of a comma-separated list. Raises `UsageError` for an unknown name."""
    from grove_sandbox.registry import ACTORS

    return _names(text, option, "actor", ACTORS)


def _addons(text: str) -> tuple[str, ...]:
    """The add-ons of a comma-separated list. Raises `UsageError` for an unknown name."""
    from grove_sandbox.installation.addons import ADDONS

    return _names(text, "--with", "add-on", ADDONS)


def _names(text: str, option: str, noun: str, known: Collection[str]) -> tuple[str, ...]:
    from grove_sandbox.product import UsageError

    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise UsageError(f"{option} {name}: there is no such {noun}; there are {', '.join(known)}")
    return names


@contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    """The given directory, created if it is missing and ours alone while the block runs, or a temporary one. Raises `UsageError`."""
    import os
    from fcntl import LOCK_EX, LOCK_NB, flock
    from tempfile import TemporaryDirectory

    from grove_sandbox.commands.detached import PID_FILE
    from grove_sandbox.product import UsageError

    if given is None:
        with TemporaryDirectory(prefix="engine-sandbox-") as temporary:
            yield Path(temporary)
        return
    try:
        given.mkdir(parents=True, exist_ok=True)
        folder = os.open(given, os.O_RDONLY)
    except FileExistsError:
        raise UsageError(f"--dir {given}: not a directory") from None
    except OSError as error:
        raise UsageError(f"--dir {given}: {(error.strerror or 'cannot be used').lower()}") from None
    try:
        # The lock ends with the process, however that ends, and leaves no file.
        flock(folder, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        os.close(folder)
        end_it = f"end it with `engine sandbox down --dir {shlex.quote(str(given))}`"
        raise UsageError(f"--dir {given}: another sandbox is running there; {end_it}, or choose another directory") from None
    number = given.resolve() / PID_FILE
    try:
        number.write_text(str(os.getpid()), encoding="ascii")
        yield given.resolve()
    finally:
        number.unlink(missing_ok=True)
        os.close(folder)


async def _serve(
    directory: Path, port: int, actors: tuple[str, ...], actor_options: Any, addons: tuple[str, ...], webhooks: Any, publication: Any
) -> None:
    """Run the cluster until cancelled. Raises `InputError` if it cannot start.

    `publication`: the ConfigMap by which an installation publishes its configuration; None without one.
    """
    import anyio

    from grove_sandbox.process import sandbox as cluster
    from grove_sandbox.product import InputError, SystemClock, kinds, terminal

    try:
        async with cluster(
            SystemClock(), directory, port=port, actors=actors, options=actor_options, addons=addons, webhooks=webhooks
        ) as box:
            if publication is not None:
                await box.client().create(kinds.CONFIG_MAP, publication["metadata"]["namespace"], publication)
            terminal.notice(f"the sandbox serves at {box.url}; Ctrl-C ends it")
            terminal.print_text(f"export KUBECONFIG={shlex.quote(str(box.kubeconfig))}\n")
            terminal.flush()
            await anyio.sleep_forever()
    except OSError as error:
        raise InputError(f"the sandbox cannot start on port {port} with its files in {directory}: {error.strerror}") from error


async def _run_actors(names: tuple[str, ...], nodes: int, kubeconfig: Path | None, context: str) -> None:
    """Run each actor with a client of its own until cancelled."""
    from contextlib import AsyncExitStack

    import anyio
    from msgspec.structs import replace

    from grove_sandbox.actors.options import ActorOptions, DriverOptions
    from grove_sandbox.product import SystemClock, connected_as, kinds, terminal
    from grove_sandbox.registry import run_actors

    clock, actor_options = SystemClock(), ActorOptions(nodes=nodes, heartbeat=HEARTBEAT, driver=DriverOptions(deference=DEFERENCE))
    async with AsyncExitStack() as clients, anyio.create_task_group() as tasks:
        for name in names:
            client = await clients.enter_async_context(connected_as(f"sandbox-{name}", clock, kubeconfig, context))
            gangs = any((kind.group, kind.plural) == (kinds.POD_GROUP.group, kinds.POD_GROUP.plural) for kind in await client.kinds())
            tasks.start_soon(run_actors, client, clock, (name,), replace(actor_options, gangs=gangs))
        terminal.notice(f"running {', '.join(names)}; Ctrl-C ends it")
