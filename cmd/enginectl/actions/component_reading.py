"""Component reading: the pods of Deployments and LeaderWorkerSets that are not ready. No pass observes them: no root owns them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
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
TOGETHER: Final = 50
"""Of how many components of a namespace one list reads them: its address names each of them."""


async def pods_of_components(
    provider: Provider, clock: Clock, components: Iterable[UnreadyComponent]
) -> Mapping[ResourceId, tuple[Live, ...]]:
    """Component -> its pods; those whose pods could not be read are absent."""
    pods: dict[ResourceId, tuple[Live, ...]] = {}
    alike: dict[tuple[str, str], list[UnreadyComponent]] = {}
    for component in components:
        alike.setdefault((component.selector.namespace, component.selector.labels[0][0]), []).append(component)

    async def read(namespace: str, key: str, listed: Sequence[UnreadyComponent]) -> None:
        values = ",".join(sorted({component.selector.labels[0][1] for component in listed}))
        with suppress(ClusterError):
            observation = await provider.observe(Scope((), (kinds.POD,), f"{key} in ({values})", (namespace,)))
            if kinds.POD.key not in observation.incomplete:
                for component in listed:
                    selects = component.selector.selects
                    pods[component.live.id] = tuple(pod for pod in observation.children if selects(pod.id.namespace, pod.labels))

    async with cancelled_at(clock, clock.monotonic() + LAST_LOOK), anyio.create_task_group() as tasks:
        for (namespace, key), listed in alike.items():
            for first in range(0, len(listed), TOGETHER):
                tasks.start_soon(read, namespace, key, listed[first : first + TOGETHER])
    return pods
