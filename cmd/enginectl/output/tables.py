"""Tables and ages, as kubectl shows them."""

from collections.abc import Iterator, Sequence
from datetime import datetime


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table: the headers, then the rows."""
    widths = column_widths([headers, *rows])
    return (aligned(cells, widths) for cells in (headers, *rows))


def column_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of the widest cell of each column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """One line of a table."""
    return "   ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def age(now: datetime, then: datetime) -> str:
    """A duration in its largest unit, or in two units if the number is small, e.g. `119s`, `2m5s`, `3h20m`, `400d`."""
    seconds = max(0, int((now - then).total_seconds()))
    for unit, size, smaller_unit, smaller_size in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= 2 * size:
            rest = seconds % size // smaller_size
            return f"{seconds // size}{unit}{f'{rest}{smaller_unit}' if rest and seconds < 10 * size else ''}"
    return f"{seconds}s"
