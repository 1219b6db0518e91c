"""Running commands: async work that a signal ends in order, and failures reported in one line each."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from traceback import format_exception
from types import FrameType

import anyio

from engine.errors import EngineError, LeaseLost, LeaseTaken, TimedOut
from engine.report.printable import printable
from engine.runtime.garbage_collection import resume_gc
from enginectl.base import terminal
from enginectl.base.exit_codes import MEANINGS, Exit, MissingRequirement, SignalReceived, UsageError, meaning, worst
from enginectl.base.options import OutputFormat, ReportFormat

SIGNALS = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED}

Work = Callable[[anyio.CancelScope], Awaitable[Exit]]
"""The async body of a command. It enters the scope around whatever a signal may cancel, and returns the exit code."""


def run(work: Work) -> Exit:
    """Run the work to its end. A signal cancels the scope, and the work finishes what it has begun."""
    resume_gc()
    return anyio.run(_run, work)


def run_cancellable(work: Callable[[], Awaitable[Exit]]) -> Exit:
    """Run work that a signal may cancel at any point."""

    async def cancellable(stop: anyio.CancelScope) -> Exit:
        with stop:
            return await work()
        return Exit.INTERRUPTED

    return run(cancellable)


def unsettled_if_late(work: Work) -> Work:
    """The work of a job that runs again: if its time is over before its first pass, it writes one line and has an exit code of its own."""

    async def run_in_time(stop: anyio.CancelScope) -> Exit:
        try:
            return await work(stop)
        except (TimedOut, ExceptionGroup) as error:
            failures = list(leaves(error))
            if not all(isinstance(failure, TimedOut) for failure in failures):
                raise
            terminal.error(str(failures[0]))
            return Exit.UNSETTLED

    return run_in_time


async def _run(work: Work) -> Exit:
    loop, stop, received = asyncio.get_running_loop(), anyio.CancelScope(), list[Exit]()

    def on_signal(number: int, frame: FrameType | None) -> None:
        """The first signal cancels the work in order; the second ends the process at once."""
        received.append(SIGNALS[signal.Signals(number)])
        if len(received) > 1:
            # Every task ends with this exception, and asyncio would log each one with its traceback.
            loop.set_exception_handler(lambda loop, context: None)
            raise SignalReceived(received[0])
        loop.call_soon_threadsafe(stop.cancel)

    # Not the loop's own signal handlers: those run only between callbacks, and planning a very large cluster is one long callback.
    previous = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        code = await work(stop)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return report_signal(received[0]) if received else code


def conclude(code: Exit, format: OutputFormat | ReportFormat, *, quiet: bool = False) -> Exit:
    """Write what the exit code means: as the last line of text, or on stderr unless it is 0, beside a document and if `quiet`.

    Returns the code.
    """
    if code in SIGNALS.values():
        if format in (OutputFormat.JSON, ReportFormat.JSON):
            terminal.print_error_document([MEANINGS[code]], code)
        return code  # The signal has been reported already.
    if format in (OutputFormat.TEXT, ReportFormat.TEXT) and not quiet:
        terminal.print_line(meaning(code))
    elif code is not Exit.DONE:
        terminal.notice(meaning(code))
    return code


def report_signal(code: Exit) -> Exit:
    """Write in one line that a signal has ended the command, e.g. `exit 130: interrupted`. Returns the code."""
    terminal.exit_line(code.value, meaning(code))
    return code


def error_messages(error: BaseException) -> list[str]:
    """What failed, a text for each exception in a group."""
    return [str(each) if isinstance(each, EngineError) else f"internal error: {type(each).__name__}: {each}" for each in leaves(error)]


def report_failure(error: BaseException, *, verbose: bool) -> Exit:
    """Write what failed, a line for each exception in a group, and return the exit code; the worst one if they differ.

    Raises `BrokenPipeError` if that is all there is: the reader of our output has gone.
    """
    failures = list(leaves(error))
    if all(isinstance(failure, BrokenPipeError) for failure in failures):
        raise BrokenPipeError
    for failure in failures:
        if isinstance(failure, EngineError):
            terminal.error(str(failure))
        else:
            report_internal_error(failure, verbose=verbose)
    codes = {code_of(failure) for failure in failures}
    return codes.pop() if len(codes) == 1 else worst(codes)


def report_internal_error(error: BaseException, *, verbose: bool, about: str = "") -> None:
    """Write a defect of the engine as one line with its type and text; with `verbose` its traceback follows, made printable."""
    subject = f" ({about})" if about else ""
    terminal.error(f"internal error{subject}: {type(error).__name__}: {error}{'' if verbose else ' (-v shows the traceback)'}")
    if verbose:
        lines = "".join(format_exception(error)).splitlines()
        sys.stderr.writelines(f"{printable(line)}\n" for line in lines)


def code_of(error: BaseException) -> Exit:
    """The exit code of one exception."""
    if isinstance(error, UsageError):
        return Exit.USAGE
    if isinstance(error, MissingRequirement):
        return Exit.PREFLIGHT
    return Exit.NOT_LEADER if isinstance(error, LeaseTaken | LeaseLost) else Exit.FAILED


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group, at any depth; the exception itself if it is no group."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
