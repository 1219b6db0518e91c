"""Logs: events with keys and values on stderr; made for people on a terminal, for machines elsewhere."""

from collections.abc import Mapping, MutableMapping
from typing import Any, Literal, Protocol, TextIO, cast

from engine.report.printable import printable

Format = Literal["text", "json"]


class Log(Protocol):
    """What the shell asks of a logger: an event is a word or two, everything particular is a value."""

    def debug(self, event: str, **values: Any) -> None:
        """Of interest to who looks for a fault."""
        ...

    def info(self, event: str, **values: Any) -> None:
        """What is done."""
        ...

    def warning(self, event: str, **values: Any) -> None:
        """What a user or operator should know."""
        ...

    def error(self, event: str, **values: Any) -> None:
        """What went wrong with us; `exc_info` adds the traceback."""
        ...


def logger(stream: TextIO, *, format: Format | None = None, verbose: bool = False, colour: bool = False) -> Log:
    """A logger that writes a line per event: by default text where the stream is a terminal, and JSON elsewhere.

    Values are made printable, for names and messages come from others. Bodies of objects are never logged, hence no secrets are.
    """
    import structlog  # Slow to import, and most commands do not log.

    form = format or ("text" if stream.isatty() else "json")
    chain: list[Any] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _made_printable,
        structlog.processors.JSONRenderer(sort_keys=True)
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=colour, pad_event_to=0, sort_keys=False),
    ]
    level = structlog.make_filtering_bound_logger("debug" if verbose else "info")
    return cast(Log, structlog.wrap_logger(structlog.WriteLogger(stream), processors=chain, wrapper_class=level))


def _made_printable(_: object, method: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Every value as something that does no more than be read; a traceback keeps its lines."""
    return {key: _safe(value, lines=key == "exception") for key, value in event.items()}


def _safe(value: Any, *, lines: bool = False) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if lines:
        return "\n".join(map(printable, str(value).splitlines()))
    return printable(str(value))
