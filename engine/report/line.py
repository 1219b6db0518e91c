"""Line: one line of text for a person, and the tone in which it is said."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its tone: a verb, `held`, `bad`, `good`, `head`, `faint` or plain."""

    text: str
    tone: str = ""
