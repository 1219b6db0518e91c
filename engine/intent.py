"""Intent: what a command asks for, beyond what the roots in the cluster say."""

from dataclasses import dataclass

from engine.focus import EVERYTHING, Focus
from engine.resource import Body


@dataclass(frozen=True, slots=True, eq=False)
class Intent:
    """What a preview or a sync is about; `engine run` asks for nothing of its own."""

    manifests: tuple[Body, ...] = ()
    """Root manifests that are applied first."""
    focus: Focus = EVERYTHING
    """The roots that it concerns: only they are planned, written and waited for."""


NOTHING = Intent()
