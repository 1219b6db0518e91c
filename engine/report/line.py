"""Line: one line of text with its tone."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its tone: a verb, `later`, `blocked`, `bad`, `good`, `head`, `faint`, or empty for plain text."""

    text: str
    tone: str = ""
