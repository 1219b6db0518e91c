"""ForeignObjects: objects that no listing shows and that have a name which a root needs: foreign ones, or our own without our labels."""

from collections.abc import Iterable, Mapping, Sequence

from engine.errors import ClusterError, Unauthorized
from engine.ids import ResourceId
from engine.observed import Live, World
from engine.plan import Plan
from engine.result import Result
from engine.runtime.provider import TRANSIENT, Provider
from engine.runtime.rejections import is_name_conflict
from engine.verb import Verb

MAX_LOOK_UPS = 200
"""How many objects with a taken name one preview reads."""


class ForeignObjects:
    """Remembers the foreign objects that creates have run into; listings do not show them, for they lack our labels."""

    def __init__(self) -> None:
        self._known: dict[ResourceId, dict[ResourceId, Live]] = {}

    @property
    def known(self) -> Mapping[ResourceId, Sequence[Live]]:
        """Root -> the foreign objects that have its names. Roots without any are absent."""
        return {root: tuple(objects.values()) for root, objects in self._known.items()}

    def note(self, plans: Sequence[Plan], results: Iterable[Result]) -> None:
        """Remember the objects of those results that are name conflicts."""
        roots = {id(operation): plan.root for plan in plans for operation in plan.operations}
        for result in results:
            if is_name_conflict(result) and result.existing is not None:
                self._known.setdefault(roots[id(result.operation)], {})[result.operation.id] = result.existing

    async def look_up(self, provider: Provider, plans: Iterable[Plan]) -> Mapping[str, ClusterError]:
        """Find out which of the objects that the plans would create exist. Returns the kinds whose names are not known, with the reasons.

        One that exists has only lost its labels, or is foreign; it is remembered. Raises `Unauthorized` and errors that are transient.
        """
        created = _created(plans)
        names = await provider.taken({id for _, id in created})
        for root, id in [(root, id) for root, id in created if id in names.ids][:MAX_LOOK_UPS]:
            if (existing := await _read(provider, id)) is not None:
                self._known.setdefault(root, {})[id] = existing
        return names.unread

    async def refresh(self, provider: Provider) -> None:
        """Read the objects again and forget those that no longer exist. One that must not be read is kept as last known.

        Raises `Unauthorized` and errors that are transient.
        """
        refreshed: dict[ResourceId, dict[ResourceId, Live]] = {}
        for root, objects in self._known.items():
            current = {id: await _current(provider, known) for id, known in sorted(objects.items())}
            if existing := {id: live for id, live in current.items() if live is not None}:
                refreshed[root] = existing
        self._known = refreshed

    def forget_listed(self, world: World) -> None:
        """Forget what needs no read: objects that a listing shows as the root's own, the root itself, and all objects of deleted roots.

        A root that is missing because its kind could not be listed completely counts as existing.
        """
        if not self._known:
            return
        by_root = {observed.root.id: observed for observed in world.roots}
        remaining: dict[ResourceId, dict[ResourceId, Live]] = {}
        for root, objects in self._known.items():
            observed = by_root.get(root)
            if observed is not None:
                objects = {id: live for id, live in objects.items() if id != root and observed.find(id) is None}
            elif root.kind not in world.incomplete:
                continue
            if objects:
                remaining[root] = objects
        self._known = remaining


def _created(plans: Iterable[Plan]) -> list[tuple[ResourceId, ResourceId]]:
    """Root and id of each object that is to be created; not the roots themselves, which are listed whatever their labels are."""
    return [
        (plan.root, operation.id)
        for plan in plans
        for operation in plan.operations
        if operation.verb is Verb.CREATE and operation.id != plan.root
    ]


async def _current(provider: Provider, known: Live) -> Live | None:
    """The object as it is now; None if it no longer exists, `known` if it must not be read."""
    return await _read(provider, known.id, otherwise=known)


async def _read(provider: Provider, id: ResourceId, otherwise: Live | None = None) -> Live | None:
    """The object, None if it does not exist; `otherwise` if it must not be read."""
    try:
        return await provider.get(id)
    except (*TRANSIENT, Unauthorized):
        raise
    except ClusterError:
        return otherwise
