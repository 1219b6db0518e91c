"""Logs: structured events on a stream, as text for people or as JSON for machines."""

from collections.abc import Mapping, MutableMapping
from threading import Lock
from typing import Any, Literal, Protocol, TextIO, cast

from engine.report.printable import printable

Format = Literal["text", "json"]


class Log(Protocol):
    """A structured logger: an event is a word or two, and its details are keys and values."""

    def debug(self, event: str, **values: Any) -> None:
        """For somebody who looks for a defect; shown only when verbose."""
        ...

    def info(self, event: str, **values: Any) -> None:
        """What the engine has done."""
        ...

    def warning(self, event: str, **values: Any) -> None:
        """What a user or operator should know."""
        ...

    def error(self, event: str, **values: Any) -> None:
        """A failure of the engine itself; `exc_info` adds the traceback."""
        ...


class ReplaceableLog:
    """A `Log` that passes everything on to another one, which can be replaced while it is used."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def use(self, log: Log) -> None:
        """Write to this log from now on."""
        self._log = log

    def debug(self, event: str, **values: Any) -> None:
        """Pass it on."""
        self._log.debug(event, **values)

    def info(self, event: str, **values: Any) -> None:
        """Pass it on."""
        self._log.info(event, **values)

    def warning(self, event: str, **values: Any) -> None:
        """Pass it on."""
        self._log.warning(event, **values)

    def error(self, event: str, **values: Any) -> None:
        """Pass it on."""
        self._log.error(event, **values)


_lost_lines: list[int] = [0]
"""The number of log lines that this process could not write: a log is written to the one stderr of a process."""


class LineWriter:
    """Writes lines to a stream. A line that cannot be written, e.g. because the disk is full or stderr is closed, is lost and counted.

    What the engine does must not depend on whether somebody can read about it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = Lock()

    def msg(self, line: str) -> None:
        """Write a line and flush the stream."""
        with self._lock:
            try:
                self._stream.write(f"{line}\n")
                self._stream.flush()
            except (OSError, ValueError):  # A ValueError: the stream is closed.
                _lost_lines[0] += 1

    debug = info = warning = error = msg


def lost_lines() -> int:
    """How many log lines this process could not write."""
    return _lost_lines[0]


def logger(stream: TextIO, *, format: Format | None = None, verbose: bool = False, colour: bool = False) -> Log:
    """A logger that writes one line for each event. Default format: text if the stream is a terminal, otherwise JSON.

    Control characters in values are escaped, for names and messages come from others. Bodies of objects, and thus secrets, are never
    logged.
    """
    import structlog  # Slow to import, and most commands do not log.

    chosen = format or ("text" if stream.isatty() else "json")
    processors: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _escape_values,
        structlog.processors.JSONRenderer(sort_keys=True)
        if chosen == "json"
        else structlog.dev.ConsoleRenderer(colors=colour, pad_event_to=0, sort_keys=False),
    ]
    wrapper = structlog.make_filtering_bound_logger("debug" if verbose else "info")
    return cast(Log, structlog.wrap_logger(LineWriter(stream), processors=processors, wrapper_class=wrapper))


def _escape_values(_: object, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    return {key: _escaped(value, keep_lines=key == "exception") for key, value in event.items()}


def _escaped(value: Any, *, keep_lines: bool) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if keep_lines:
        return "\n".join(map(printable, str(value).splitlines()))
    return printable(str(value))
