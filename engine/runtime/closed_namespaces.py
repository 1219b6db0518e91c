"""Closed namespaces: those in which nothing can be created, as this process has read them or learned from refusals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import anyio
from msgspec import Struct

from engine.errors import ClusterError, Forbidden, NotFound, RefusedBy
from engine.ids import NAMESPACE
from engine.namespaces import creates
from engine.observed import Live, NamespacePhase, Observed
from engine.operation import Result
from engine.paths import get
from engine.runtime.provider import Provider, RecordedProvider

MAX_AGE: Final = 30.0
"""Seconds for which a namespace that has been read counts as usable."""
CONCURRENCY: Final = 8


class _Refusal(Struct, frozen=True):
    """A namespace in which a create was refused."""

    phase: NamespacePhase
    roots: frozenset[str]
    """The uids of the roots that it had then; empty if it had none."""


class Namespaces:
    """What is known of namespaces, from pass to pass."""

    def __init__(self) -> None:
        self._read_at: dict[str, float] = {}
        """Namespace -> when it was last read, on a monotonic clock."""
        self._read: dict[str, NamespacePhase] = {}
        """What was read of namespaces that are closed."""
        self._refused: dict[str, _Refusal] = {}
        self._closed: Mapping[str, NamespacePhase] = {}

    @property
    def closed(self) -> Mapping[str, NamespacePhase]:
        """The namespaces in which nothing can be created -> why; the same object while nothing changes."""
        return self._closed

    async def look_up(self, provider: Provider, names: Iterable[str], at: float) -> bool:
        """Read these namespaces, unless they were usable a short time before `at`. Returns whether `closed` has changed.

        A record of a cluster is not asked: a namespace that it does not contain may exist. What cannot be read is not known.
        """
        due = [name for name in names if at - self._read_at.get(name, -MAX_AGE) >= MAX_AGE or name in self._closed]
        if not due or isinstance(provider, RecordedProvider):
            return False
        limit = anyio.CapacityLimiter(CONCURRENCY)

        async def read(name: str) -> None:
            async with limit:
                try:
                    phase = phase_of(await provider.get(NAMESPACE.id("", name)))
                except ClusterError:
                    return
            self._read_at[name] = at
            self._read.pop(name, None)
            self._refused.pop(name, None)
            if phase is not None:
                self._read[name] = phase

        async with anyio.create_task_group() as tasks:
            for name in due:
                tasks.start_soon(read, name)
        return self._update()

    def note(self, results: Iterable[Result], observed: Sequence[Observed]) -> None:
        """Remember the namespaces in which a create was refused because they are missing or being deleted."""
        for result in results:
            phase = phase_of_refusal(result.error) if creates(result.operation) else None
            name = result.operation.id.namespace
            if phase is not None and name:
                roots = (each.root for each in observed)
                uids = frozenset(root.uid for root in roots if root.id.namespace == name and root.uid)
                self._refused[name] = _Refusal(phase, uids)
        self._update()

    def forget_gone(self, roots: Sequence[Live]) -> None:
        """Forget refusals in namespaces that had roots of which none is left: if such a namespace has roots, it was created again."""
        if not self._refused:
            return
        uids = {root.uid for root in roots}
        self._refused = {
            name: refusal for name, refusal in self._refused.items() if not refusal.roots or not refusal.roots.isdisjoint(uids)
        }
        self._update()

    def _update(self) -> bool:
        closed = {name: refusal.phase for name, refusal in self._refused.items()} | self._read
        if closed == self._closed:
            return False
        self._closed = closed
        return True


def phase_of(namespace: Live | None) -> NamespacePhase | None:
    """Why nothing can be created in a namespace that was read, None if it does not exist. Returns None if objects can be created."""
    if namespace is None:
        return NamespacePhase.MISSING
    is_ending = namespace.deleting_since is not None or get(namespace.body, ("status", "phase")) == "Terminating"
    return NamespacePhase.TERMINATING if is_ending else None


def phase_of_refusal(error: Exception | None) -> NamespacePhase | None:
    """What a refused create says of its namespace; None: nothing."""
    if isinstance(error, Forbidden) and error.by is RefusedBy.NAMESPACE:
        return NamespacePhase.TERMINATING
    if isinstance(error, NotFound):
        details = error.status.get("details")
        if isinstance(details, Mapping) and details.get("kind") == NAMESPACE.plural:
            return NamespacePhase.MISSING
    return None
