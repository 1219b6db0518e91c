"""Running: commands that await, ended in order by a signal, and every failure told in a line."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from traceback import format_exception
from types import FrameType

import anyio

from engine.errors import EngineError, InputError, LeaseLost, LeaseTaken
from enginectl import output
from enginectl.exits import MEANINGS, Exit, Stopped, meaning, worst
from enginectl.options import Output

SIGNALS = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}


class Misuse(InputError):
    """The command line itself cannot be used: an option that names nothing, or two that exclude each other."""


class Unfit(InputError):
    """The cluster lacks what must be there before anything may be started."""


Work = Callable[[anyio.CancelScope], Awaitable[Exit]]
"""What a command awaits: it enters the scope around what a signal may cut short."""


def run(work: Work) -> Exit:
    """Await the work to its end. A signal cancels the scope that it is handed, and it ends what it has begun in order."""
    return anyio.run(_attended, work)


async def _attended(work: Work) -> Exit:
    loop, stop, heard = asyncio.get_running_loop(), anyio.CancelScope(), list[Exit]()

    def hear(number: int, frame: FrameType | None) -> None:
        """The first signal calls the work off in order; who cannot wait for that sends another."""
        heard.append(SIGNALS[signal.Signals(number)])
        if len(heard) > 1:
            raise Stopped(heard[0])
        loop.call_soon_threadsafe(stop.cancel)

    # Not the loop's own handlers: those wait until the loop comes round, and thinking about very much may keep it.
    before = {number: signal.signal(number, hear) for number in SIGNALS}
    try:
        code = await work(stop)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return ended_by(heard[0]) if heard else code


def concluded(code: Exit, form: Output) -> Exit:
    """The code, named in the last line of a text, and beside a document if there is more to say than that it is done."""
    if code in SIGNALS.values():
        return code  # Whoever has heard the signal has said so.
    if form is Output.TEXT:
        output.say(meaning(code))
    elif code is not Exit.DONE:
        output.tell(meaning(code))
    return code


def ended_by(code: Exit) -> Exit:
    """Say in one line that a signal has ended us."""
    output.fault(MEANINGS[code])
    return code


def failed(error: BaseException, *, verbose: bool) -> Exit:
    """Tell what went wrong, a line for each thing, and which exit code that is.

    Raises `BrokenPipeError` when nothing is wrong but that nobody reads us any more.
    """
    found = list(leaves(error))
    if all(isinstance(leaf, BrokenPipeError) for leaf in found):
        raise BrokenPipeError
    for leaf in found:
        if isinstance(leaf, EngineError):
            output.fault(str(leaf))
            continue
        output.fault(f"unexpected: {type(leaf).__name__}: {leaf}{'' if verbose else ' (-v shows where)'}")
        if verbose:
            sys.stderr.writelines(format_exception(leaf))
    codes = {code_of(leaf) for leaf in found}
    return codes.pop() if len(codes) == 1 else worst(codes)


def code_of(error: BaseException) -> Exit:
    """The exit code of one failure."""
    if isinstance(error, Misuse):
        return Exit.USAGE
    if isinstance(error, Unfit):
        return Exit.PREFLIGHT
    return Exit.NOT_LEADER if isinstance(error, LeaseTaken | LeaseLost) else Exit.FAILED


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The failures themselves, out of however many groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
