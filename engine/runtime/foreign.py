"""ForeignObjects: unlisted objects with a name that one of our roots needs: foreign ones, or our own without our labels."""

from collections.abc import Iterable, Mapping, Sequence

from engine.errors import ClusterError, Unauthorized
from engine.ids import ResourceId
from engine.observed import Live, World, live
from engine.operation import Cause
from engine.plan import Plan
from engine.result import Result
from engine.runtime.provider import TRANSIENT, Provider
from engine.runtime.rejections import is_name_conflict
from engine.verb import Verb

MAX_LOOK_UPS = 200
"""How many names one preview looks up."""


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
            if is_name_conflict(result) and result.live is not None:
                self._known.setdefault(roots[id(result.operation)], {})[result.operation.id] = live(result.live)

    async def look_up(self, provider: Provider, plans: Iterable[Plan]) -> None:
        """Read the objects that the plans would create again although somebody seems to have deleted them.

        One that exists has only lost its labels, or is foreign; it is remembered. Raises `Unauthorized` and errors that are transient.
        """
        for root, id in _missing(plans)[:MAX_LOOK_UPS]:
            if (existing := await _read(provider, id)) is not None:
                self._known.setdefault(root, {})[id] = existing

    async def refresh(self, provider: Provider) -> None:
        """Read the objects again and forget those that no longer exist. One that must not be read is kept as last known.

        Raises `Unauthorized` and errors that are transient.
        """
        refreshed: dict[ResourceId, dict[ResourceId, Live]] = {}
        for root, objects in self._known.items():
            current = {id: await _current(provider, known) for id, known in sorted(objects.items())}
            if existing := {id: each for id, each in current.items() if each is not None}:
                refreshed[root] = existing
        self._known = refreshed

    def forget_listed(self, world: World) -> None:
        """Forget the objects that a listing shows as the root's own: their labels have been restored, and no read is needed for them."""
        for observed in world.roots:
            known = self._known.get(observed.root.id, {})
            for id in [id for id in known if observed.find(id) is not None]:
                del known[id]
        self._known = {root: objects for root, objects in self._known.items() if objects}


def _missing(plans: Iterable[Plan]) -> list[tuple[ResourceId, ResourceId]]:
    """Root and id of each object whose creation repairs drift."""
    return [
        (plan.root, operation.id)
        for plan in plans
        for operation in plan.operations
        if operation.verb is Verb.CREATE and operation.cause is Cause.DRIFT
    ]


async def _current(provider: Provider, known: Live) -> Live | None:
    return await _read(provider, known.id, otherwise=known)


async def _read(provider: Provider, id: ResourceId, otherwise: Live | None = None) -> Live | None:
    """The object, None if it does not exist; `otherwise` if it must not be read."""
    try:
        return await provider.get(id)
    except (*TRANSIENT, Unauthorized):
        raise
    except ClusterError:
        return otherwise
