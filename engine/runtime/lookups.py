"""Lookups: objects that roots name and that are read one by one, because their kinds are not listed."""

from collections.abc import Sequence
from math import inf

import anyio
from msgspec import Struct
from msgspec.structs import replace

from engine.blueprint import Blueprint, C
from engine.errors import ClusterError, Forbidden, Unauthorized
from engine.ids import ResourceId
from engine.memo import Memo, blueprint_memo
from engine.observed import Live, Observed, World, by_root, live
from engine.resource import Body
from engine.runtime.provider import TRANSIENT, Observation, Provider, RecordedProvider

_Names = tuple[ResourceId, ...]
"""The objects that one root names."""

MAX_AGE, MAX_AGE_MISSING = 30.0, 1.0
"""Seconds after which an object that exists, or that does not, is read again."""
CONCURRENCY = 8


class _Answer(Struct, frozen=True, eq=False):
    """What the last read returned, and when."""

    live: Live | None
    at: float


class Lookups:
    """The objects that roots name, as they were last read."""

    def __init__(self) -> None:
        self._wanted: dict[ResourceId, _Names] = {}
        """Root -> the objects that it names."""
        self._named: dict[ResourceId, tuple[Live | Body, _Names]] = {}
        """Root -> the object or manifest that it was read from, and what it names."""
        self._answers: dict[ResourceId, _Answer] = {}
        self._forbidden: dict[ResourceId, Forbidden | None] = {}
        """What the last attempt was not permitted to read, with the error until it has been reported."""
        self._changed: set[ResourceId] = set()
        """The roots that name other objects than when the answers were last added to a world."""
        self._new_answers: set[ResourceId] = set()
        """The objects of which something else is known than then."""
        self._due_at = -inf
        """When the next object is read, on the monotonic clock."""
        self._observed: object = None
        """The token of the observation of which everything is wanted that its roots name, and nothing else; None: of none."""

    def want(
        self, blueprints: Sequence[Blueprint[C]], observation: Observation, manifests: Sequence[Body], configuration: C, memo: Memo
    ) -> None:
        """Take what the roots of an observation and the manifests name, and forget everything else. The memo is that of passes."""
        looking = {blueprint.kind.name: blueprint for blueprint in blueprints if blueprint.lookup_kinds(configuration)}
        changes = observation.changes_since(self._observed)
        self._observed = observation.token if not manifests else None
        if changes is not None and not manifests and not any(change.id.kind in looking for change in changes.lives):
            return
        bodies: dict[ResourceId, Live | Body] = {root.id: root for root in observation.roots if root.id.kind in looking}
        bodies |= {id: manifest for manifest in manifests if (id := live(manifest).id).kind in looking}
        before, self._named = self._named, {id: self._names(looking[id.kind], id, body, configuration, memo) for id, body in bodies.items()}
        self._changed.update(id for id in before.keys() | self._named.keys() if before.get(id) is not self._named.get(id))
        self._wanted, self._due_at = {id: names for id, (_, names) in self._named.items()}, -inf
        wanted = {id for ids in self._wanted.values() for id in ids}
        self._answers = {id: answer for id, answer in self._answers.items() if id in wanted}
        self._forbidden = {id: error for id, error in self._forbidden.items() if id in wanted}

    def _names(
        self, blueprint: Blueprint[C], id: ResourceId, source: Live | Body, configuration: C, memo: Memo
    ) -> tuple[Live | Body, _Names]:
        """The object that a root was read from, and what it names: computed once for each object."""
        known = self._named.get(id)
        if known is not None and known[0] is source:
            return known
        body = source.body if isinstance(source, Live) else source
        return source, blueprint.lookups(id, body, configuration, blueprint_memo(memo, id))

    async def refresh(self, provider: Provider, at: float) -> None:
        """Read what is wanted, unless it was read a short time before `at` (of a monotonic clock).

        What must not be read is not known (`new_refusals`). Raises `Unauthorized` and errors that are transient.
        """
        if at < self._due_at:
            return
        wanted = {id for ids in self._wanted.values() for id in ids}
        due = [id for id in sorted(wanted) if self._due_time(id) <= at]
        limit = anyio.CapacityLimiter(CONCURRENCY)
        errors: list[ClusterError] = []

        async def read(id: ResourceId) -> None:
            async with limit:
                try:
                    self._note(id, await provider.get(id), at, recorded=isinstance(provider, RecordedProvider))
                    self._forbidden.pop(id, None)
                except (*TRANSIENT, Unauthorized) as error:
                    errors.append(error)
                except ClusterError as error:
                    self._set(id, None)
                    if isinstance(error, Forbidden):
                        self._forbidden.setdefault(id, error)

        async with anyio.create_task_group() as tasks:
            for id in due:
                tasks.start_soon(read, id)
        for error in errors:
            raise error
        self._due_at = min(map(self._due_time, wanted), default=inf)

    def new_refusals(self) -> dict[ResourceId, Forbidden]:
        """What we may not read, with the server's messages. Each is returned once, and again if it could be read in between."""
        refusals = {id: error for id, error in sorted(self._forbidden.items()) if error is not None}
        self._forbidden |= dict.fromkeys(refusals)
        return refusals

    def _due_time(self, id: ResourceId) -> float:
        """When an object is read again, on the monotonic clock."""
        answer = self._answers.get(id)
        return -inf if answer is None else answer.at + (MAX_AGE_MISSING if answer.live is None else MAX_AGE)

    def _note(self, id: ResourceId, current: Live | None, at: float, *, recorded: bool) -> None:
        """Remember an answer. An object that a record does not contain may exist."""
        old = self._answers.get(id)
        if current is None and recorded:
            self._set(id, None)
        elif old is not None and old.live is not None and current is not None and old.live.revision == current.revision:
            self._set(id, _Answer(old.live, at))
        else:
            self._set(id, _Answer(current, at))

    def _set(self, id: ResourceId, answer: _Answer | None) -> None:
        """Replace what is known of an object."""
        old = self._answers.pop(id, None)
        if answer is not None:
            self._answers[id] = answer
        if old is None or answer is None or old.live is not answer.live:
            self._new_answers.add(id)

    def added_to(self, world: World, memo: Memo) -> World:
        """The world with the answers at the roots that name the objects."""
        changed, answers = self._changed, self._new_answers
        if not self._wanted and not changed:
            return world
        if answers:
            changed.update(root for root, names in self._wanted.items() if not answers.isdisjoint(names))
        self._changed, self._new_answers = set(), set()
        return replace(world, roots=memo.each("lookups", by_root(world.roots), (), self._with_answers, also=changed))

    def _with_answers(self, observed: Observed) -> Observed:
        names = self._wanted.get(observed.root.id, ())
        known = {id: self._answers[id].live for id in names if id in self._answers}
        return replace(observed, looked_up=known) if known else observed
