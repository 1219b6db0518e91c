"""Moments: times as the API writes them, in whole seconds of UTC."""

from datetime import UTC, datetime
from typing import Final

LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


def written(moment: datetime) -> str:
    """As in a `creationTimestamp`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(text: str | None) -> datetime | None:
    """The moment that the text says; None where none is written, or what is written is none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except (ValueError, OverflowError):
        return None
