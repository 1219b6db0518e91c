"""FirstPass: the pass with which a preview begins: what was observed, what was asked for, and the plans."""

from datetime import datetime

from msgspec import Struct

from engine.guard import Limits
from engine.ids import ResourceId
from engine.intent import NOTHING, Intent
from engine.observed import World
from engine.resource import Body
from engine.tick import Plans
from resources.base import kinds
from resources.model.membership import effective_body
from resources.ports.configuration import Configuration


class FirstPass(Struct, frozen=True, eq=False):
    """The observed world, the plans for it, and what they were planned with."""

    now: datetime
    world: World
    planned: Plans
    configuration: Configuration
    intent: Intent = NOTHING
    limits: Limits = Limits()
    assumes_secrets: bool = False
    """Whether Secrets could not be listed, and are taken to be as they should be."""

    def sets(self) -> list[tuple[ResourceId, Body]]:
        """The sets that are not being deleted, each as it is proposed or stored."""
        return [
            (observed.root.id, effective_body(observed, self.configuration))
            for observed in self.world.roots
            if observed.root.id.kind == kinds.PODCLIQUESET.name and observed.root.deleting_since is None
        ]
