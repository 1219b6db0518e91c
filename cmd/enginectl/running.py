"""Running: commands that await, ended in order by a signal, and every failure told in a line."""

import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from traceback import format_exception

import anyio

from engine.errors import EngineError, InputError, LeaseLost, LeaseTaken
from enginectl import output
from enginectl.exits import Exit, worst

SIGNALS = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}


class Misuse(InputError):
    """The command line itself cannot be used: an option that names nothing, or two that exclude each other."""


def run(work: Callable[[], Awaitable[Exit]]) -> Exit:
    """Await the work to its end, or to the signal that ends it; then it has cleaned up after itself."""
    return anyio.run(_attended, work)


async def _attended(work: Callable[[], Awaitable[Exit]]) -> Exit:
    heard: list[Exit] = []
    code = Exit.FAILED
    async with anyio.create_task_group() as group:
        group.start_soon(_listen, group.cancel_scope, heard)
        code = await work()
        group.cancel_scope.cancel()
    return ended_by(heard[0]) if heard else code


async def _listen(scope: anyio.CancelScope, heard: list[Exit]) -> None:
    """Wait for the first signal, and call the work off."""
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        async for number in signals:
            heard.append(SIGNALS[signal.Signals(number)])
            scope.cancel()


def ended_by(code: Exit) -> Exit:
    """Say that a signal has ended us."""
    output.fault("interrupted: what was done stays done; run it again to go on" if code is Exit.INTERRUPTED else "terminated")
    return code


def failed(error: BaseException, *, verbose: bool) -> Exit:
    """Tell what went wrong, a line for each thing, and which exit code that is."""
    codes = []
    for leaf in leaves(error):
        codes.append(code_of(leaf))
        output.fault(str(leaf) if isinstance(leaf, EngineError) else f"unexpected: {type(leaf).__name__}: {leaf} (-v shows where)")
    if verbose:
        sys.stderr.writelines(format_exception(error))
    return codes[0] if len(codes) == 1 else worst(codes)


def code_of(error: BaseException) -> Exit:
    """The exit code of one failure."""
    if isinstance(error, Misuse):
        return Exit.USAGE
    return Exit.NOT_LEADER if isinstance(error, LeaseTaken | LeaseLost) else Exit.FAILED


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The failures themselves, out of however many groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
