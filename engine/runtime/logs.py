"""Logs: structured events on a stream, as text for people or as JSON for machines."""

from collections.abc import Mapping, MutableMapping
from functools import cached_property
from threading import Lock
from typing import Any, Literal, Protocol, TextIO, cast

from engine.report.printable import printable

Format = Literal["text", "json"]


class Log(Protocol):
    """A structured logger: an event is a word or two, and its details are keys and values."""

    def debug(self, event: str, **values: Any) -> None:
        """For developers; shown only when verbose."""
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


class TaggedLog:
    """A `Log` that adds the same values to every line of another one."""

    def __init__(self, log: Log, values: Mapping[str, Any]) -> None:
        self._log, self._values = log, values

    def debug(self, event: str, **values: Any) -> None:
        """Pass it on."""
        self._log.debug(event, **self._values, **values)

    def info(self, event: str, **values: Any) -> None:
        """Pass it on."""
        self._log.info(event, **self._values, **values)

    def warning(self, event: str, **values: Any) -> None:
        """Pass it on."""
        self._log.warning(event, **self._values, **values)

    def error(self, event: str, **values: Any) -> None:
        """Pass it on."""
        self._log.error(event, **self._values, **values)


def tagged(log: Log, **values: Any) -> Log:
    """The log with these values on every line."""
    return TaggedLog(log, values)


class ReplaceableLog(TaggedLog):
    """A `Log` that passes everything on to another one, which can be replaced while it is used."""

    def __init__(self, log: Log) -> None:
        super().__init__(log, {})

    def use(self, log: Log) -> None:
        """Write to this log from now on."""
        self._log = log


_writing = Lock()
"""Held while a line is written: several threads log to one stream."""

_lost_lines: list[int] = [0]
"""The number of log lines that this process could not write: a log is written to the one stderr of a process."""


class LineWriter:
    """Writes lines to a stream. A line that cannot be written, e.g. because the disk is full or stderr is closed, is lost and counted.

    What the engine does must not depend on whether its log can be read.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        """Write a line and flush the stream."""
        with _writing:
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
    return _LineLog(stream, format or ("text" if stream.isatty() else "json"), verbose, colour)


class _LineLog:
    """A `Log` that writes to a stream. The library is imported when the first line is written: most commands write none."""

    def __init__(self, stream: TextIO, format: Format, verbose: bool, colour: bool) -> None:
        self._stream, self._format, self._verbose, self._colour = stream, format, verbose, colour

    def debug(self, event: str, **values: Any) -> None:
        """Write a line if verbose."""
        if self._verbose:
            self._written.debug(event, **values)

    def info(self, event: str, **values: Any) -> None:
        """Write a line."""
        self._written.info(event, **values)

    def warning(self, event: str, **values: Any) -> None:
        """Write a line."""
        self._written.warning(event, **values)

    def error(self, event: str, **values: Any) -> None:
        """Write a line."""
        self._written.error(event, **values)

    @cached_property
    def _written(self) -> Log:
        from engine.runtime.optional_imports import without

        with without("rich"):  # structlog would load 4 MiB of it for tracebacks that we do not write.
            import structlog

        processors: list[Any] = [
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _escape_values,
            structlog.processors.JSONRenderer(sort_keys=True)
            if self._format == "json"
            else structlog.dev.ConsoleRenderer(colors=self._colour, pad_event_to=0, sort_keys=False),
        ]
        wrapper = structlog.make_filtering_bound_logger("debug")  # what is less is filtered above
        return cast(Log, structlog.wrap_logger(LineWriter(self._stream), processors=processors, wrapper_class=wrapper))


def _escape_values(_: object, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    return {key: _escaped(value, keep_lines=key == "exception") for key, value in event.items()}


def _escaped(value: Any, *, keep_lines: bool) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if keep_lines:
        return "\n".join(map(printable, str(value).splitlines()))
    return printable(str(value))
