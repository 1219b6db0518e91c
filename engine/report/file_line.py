"""The place of a manifest, for reports that name it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file."""

    file: str
    """Relative to the root of the repository, if it is in one."""
    line: int = 1
