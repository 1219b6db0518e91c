"""Shared templates: claim templates of namespaces that a command does not observe, for what it says about sets that refer to them."""

from collections.abc import Iterator
from typing import Final

import anyio
from msgspec.structs import replace

from engine.errors import ClusterError
from engine.ids import ResourceId
from engine.observed import Live
from engine.runtime.provider import Observation, Scope
from providers.read_only import ReadOnlyProvider
from resources.admission.consent_rules import references_of
from resources.base import kinds
from resources.schema.formats import label_faults, subdomain_faults

MOST: Final = 100
"""How many templates are read."""
AT_ONCE: Final = 8


class TemplateReadingProvider(ReadOnlyProvider, frozen=True):
    """Another provider without its writes, which also reads the templates that the observed sets refer to by name.

    What cannot be read is left out: it counts as not found in the namespaces that are observed.
    """

    async def observe(self, scope: Scope) -> Observation:
        """What the other provider lists, with these templates."""
        observation = await self.provider.observe(scope)
        if not scope.namespaces or kinds.RESOURCE_CLAIM_TEMPLATE not in scope.references:
            return observation
        wanted = sorted(set(_elsewhere(observation, scope)) - {live.id for live in observation.references})
        templates: list[Live] = []
        limit = anyio.CapacityLimiter(AT_ONCE)

        async def read(id: ResourceId) -> None:
            async with limit:
                try:
                    template = await self.provider.get(id)
                except ClusterError:
                    return
                templates.extend([template] if template is not None else [])

        async with anyio.create_task_group() as tasks:
            for id in wanted[:MOST]:
                tasks.start_soon(read, id)
        if not templates:
            return observation
        return replace(observation, references=(*observation.references, *sorted(templates, key=lambda live: live.id)))


def _elsewhere(observation: Observation, scope: Scope) -> Iterator[ResourceId]:
    """The templates outside the namespaces of a scope that its sets refer to, with names that objects can have."""
    sets = (root for root in observation.roots if root.id.kind == kinds.PODCLIQUESET.name)
    for id in (id for root in sets for id, _ in references_of(root.body, root.id.namespace)):
        if id.namespace not in scope.namespaces and not label_faults(id.namespace) and not subdomain_faults(id.name):
            yield id
