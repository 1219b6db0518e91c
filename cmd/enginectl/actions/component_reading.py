"""Component reading: the pods of Deployments and LeaderWorkerSets that are not ready. No pass observes them: no root owns them."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Final

import anyio

from engine.errors import ClusterError
from engine.ids import ResourceId
from engine.observed import Live
from engine.runtime.clock import Clock, cancelled_at
from engine.runtime.provider import Provider, Scope
from resources.base import kinds
from resources.preview.stuck_roots import UnreadyComponent

LAST_LOOK: Final = 5.0
"""Seconds for reading them."""
MOST_COMPONENTS: Final = 20
"""Of how many components they are read."""


async def pods_of_components(
    provider: Provider, clock: Clock, components: Iterable[UnreadyComponent]
) -> Mapping[ResourceId, tuple[Live, ...]]:
    """Component -> its pods; those whose pods could not be read are absent."""
    pods: dict[ResourceId, tuple[Live, ...]] = {}

    async def read(component: UnreadyComponent) -> None:
        selector = ",".join(f"{key}={value}" for key, value in component.selector.labels)
        with suppress(ClusterError):
            observation = await provider.observe(Scope((), (kinds.POD,), selector, (component.selector.namespace,)))
            if kinds.POD.key not in observation.incomplete:
                pods[component.live.id] = tuple(observation.children)

    async with cancelled_at(clock, clock.monotonic() + LAST_LOOK), anyio.create_task_group() as tasks:
        for component in islice(components, MOST_COMPONENTS):
            tasks.start_soon(read, component)
    return pods
