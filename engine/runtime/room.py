"""Room: the quotas of namespaces in which the server refuses calls for want of room; when they change, there may be some."""

from collections.abc import Callable, Set
from typing import Final

from engine.errors import ClusterError
from engine.ids import RESOURCE_QUOTA, ResourceId
from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.runtime.provider import Provider, Scope
from engine.runtime.refusals import Refusals

INTERVAL: Final = 2.0
"""Seconds between two reads."""
AT_A_TIME: Final = 8
"""The quotas of how many namespaces are read at a time; the others come next."""
FORBIDDEN_PAUSE: Final = 600.0
"""Seconds after which they are read again where we may not read them."""


async def look_for_room(
    provider: Provider, clock: Clock, refusals: Refusals, on_change: Callable[[], None], log: Log | None = None
) -> None:
    """End the pauses of calls that were refused for want of room in namespaces in which a quota has changed, for ever.

    `on_change` is called when some have ended.
    """
    quotas = QuotaRevisions()
    while True:
        await clock.sleep(INTERVAL)
        changed = await quotas.changed(provider, refusals.awaiting_room, clock.monotonic(), log)
        for namespace in changed:
            refusals.note_room(namespace, clock.monotonic())
        if changed:
            on_change()


class QuotaRevisions:
    """The quotas of some namespaces, as they were last read."""

    def __init__(self) -> None:
        self._known: dict[str, dict[ResourceId, str]] = {}
        """Namespace -> its quotas with their revisions, those that were read last at the end."""
        self._forbidden_until = 0.0

    async def changed(self, provider: Provider, namespaces: Set[str], at: float, log: Log | None = None) -> frozenset[str]:
        """Read the quotas of the namespaces whose turn it is. Returns those in which they differ from when they were last read.

        `at` is a time of a monotonic clock. What may not be read is logged, and not asked for again for `FORBIDDEN_PAUSE` seconds.
        """
        self._known = {namespace: quotas for namespace, quotas in self._known.items() if namespace in namespaces}
        if at < self._forbidden_until or not namespaces:
            return frozenset()
        chosen = [*sorted(namespaces - self._known.keys()), *self._known][:AT_A_TIME]
        try:
            observation = await provider.observe(Scope((), (), "", tuple(chosen), (RESOURCE_QUOTA,)))
        except ClusterError:
            return frozenset()
        if (unlisted := observation.incomplete.get(RESOURCE_QUOTA.key)) is not None:
            if unlisted.is_forbidden:
                self._forbidden_until = at + FORBIDDEN_PAUSE
                if log is not None:
                    log.warning("not read", object=RESOURCE_QUOTA.name, error=unlisted.text)
            return frozenset()
        read: dict[str, dict[ResourceId, str]] = {namespace: {} for namespace in chosen}
        for quota in observation.references:
            read[quota.id.namespace][quota.id] = quota.revision
        changed = frozenset(namespace for namespace, quotas in read.items() if self._known.pop(namespace, quotas) != quotas)
        self._known |= read
        return changed
