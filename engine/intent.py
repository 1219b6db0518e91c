"""Intent: what a command asks for, beyond what the roots in the cluster say."""

from dataclasses import dataclass

from engine.resource import Body


@dataclass(frozen=True, slots=True, eq=False)
class Intent:
    """What a preview or a sync is about; `engine run` asks for nothing of its own."""

    manifests: tuple[Body, ...] = ()
    """Root manifests that are applied first."""


NOTHING = Intent()
