"""Intent: what a command asks for, beyond what the roots in the cluster say."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from engine.ids import ResourceId
from engine.removal import Removal
from engine.resource import Body


@dataclass(frozen=True, slots=True, eq=False)
class Intent:
    """What a preview or a sync is about; `engine run` asks for nothing of its own."""

    manifests: tuple[Body, ...] = ()
    """Root manifests that are applied first."""
    removals: Mapping[ResourceId, Removal] = field(default_factory=dict)
    """The roots that are removed, and why."""


NOTHING = Intent()
