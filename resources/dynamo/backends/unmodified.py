"""Unmodified: services without a framework; every node runs the user's command."""

from msgspec import Struct

from engine.resource import Body
from resources.dynamo.backends.port import Placement, RewrittenContainer


class Unmodified(Struct, frozen=True):
    """No change."""

    cache_variable: str = ""
    cache_directory: str = ""

    def rewritten(self, container: Body, placement: Placement) -> RewrittenContainer:
        """The container as it is."""
        return RewrittenContainer(container)
