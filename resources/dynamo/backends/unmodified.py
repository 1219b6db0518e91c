"""Unmodified: services without a framework; every node runs the user's command."""

from dataclasses import dataclass

from engine.resource import Body
from resources.dynamo.backends.port import Placement, RewrittenContainer


@dataclass(frozen=True, slots=True)
class Unmodified:
    """No change."""

    cache_variable: str = ""
    cache_directory: str = ""

    def rewritten(self, container: Body, placement: Placement) -> RewrittenContainer:
        """The container as it is."""
        return RewrittenContainer(container)
