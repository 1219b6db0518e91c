"""The `engine` command: what it is called with, what it answers, and how it ends.

Nothing heavy is imported here or at the top of a command's file: `engine --help` is read while somebody waits.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import NoReturn

import typer
from typer.main import get_group

from enginectl.demo import demo
from enginectl.diff import diff
from enginectl.exits import Exit, Stopped, meaning
from enginectl.manifests import manifests
from enginectl.options import declare, everywhere
from enginectl.preflight import preflight
from enginectl.render import render
from enginectl.review import review
from enginectl.run import run
from enginectl.sandbox import sandbox
from enginectl.snapshot import snapshot
from enginectl.status import status
from enginectl.sync import sync
from enginectl.why import why

commands = typer.Typer(
    name="engine",
    help="Declarative desired state for AI inference workloads on Kubernetes: what `diff` shows is what `sync` and `run` do.",
    epilog="Exit codes: 0 done, 1 failed, 2 changes (--detailed-exitcode), 3 denied, 5 incomplete, 6 lease taken, 7 preflight failed, "
    "64 usage error.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    callback=declare,
)
for command in (diff, sync, run, render, review, status, why, preflight, snapshot, demo):
    commands.command()(command)
for group in (sandbox, manifests):
    commands.add_typer(group)


def app(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and answer with its exit code. Nothing it meets leaves it as a traceback, unless `-v` asks for one."""
    before = signal.signal(signal.SIGTERM, _terminated)
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        code = _answer(given)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone; what is left to flush has nowhere to go either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = Exit.FAILED
    finally:
        signal.signal(signal.SIGTERM, before)
    return code


def _answer(given: Sequence[str]) -> Exit:
    """The exit code of a command line, with every failure told."""
    try:
        return _run(given)
    except typer.TyperException as error:
        return _misused(error)
    except KeyboardInterrupt as stop:
        return _stopped(stop)
    except Exception as error:
        return _failed(error, verbose="-v" in given or "--verbose" in given)
    except BaseExceptionGroup as group:
        # The second signal, which does not wait for anything, and what it broke.
        return _stopped(next((leaf for leaf in _leaves(group) if isinstance(leaf, KeyboardInterrupt)), group))


def _run(given: Sequence[str]) -> Exit:
    """What the command answers. Not through Typer's own `main`, which has exit codes and a way with signals of its own."""
    root = everywhere(get_group(commands))
    try:
        with root.make_context("engine", list(given)) as context:
            return Exit(root.invoke(context) or 0)
    except typer.Exit as end:
        return Exit(end.exit_code)


def _stopped(stop: BaseException) -> Exit:
    from enginectl.running import ended_by

    return ended_by(stop.code if isinstance(stop, Stopped) else Exit.INTERRUPTED)


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    from enginectl.running import leaves

    return leaves(group)


def _misused(error: typer.TyperException) -> Exit:
    """Say what is wrong with a command line, and where help is. Asked nothing at all, help is the answer."""
    from enginectl import output

    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{error.format_message()}\n")
        return Exit.USAGE
    output.fault(error.format_message())
    output.tell(f"try `{context.command_path if context else 'engine'} --help`")
    output.tell(meaning(Exit.USAGE))
    return Exit.USAGE


def _failed(error: Exception, *, verbose: bool) -> Exit:
    from enginectl import output, running

    code = running.failed(error, verbose=verbose)
    output.tell(meaning(code))
    return code


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise Stopped(Exit.TERMINATED)
