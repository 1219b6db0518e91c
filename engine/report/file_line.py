"""The place of a manifest, for reports that name it."""

from msgspec import Struct


class FileLine(Struct, frozen=True):
    """A line of a file."""

    file: str
    """Relative to the root of the repository, if it is in one."""
    line: int = 1
