"""Deletions: how the objects of a forecast end that are being deleted, or whose owners have gone: finalizers and garbage collection."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from engine.forecast.cluster_model import Assumption
from engine.forecast.store import ForecastStore
from engine.ids import ResourceId
from engine.observed import Live
from resources.base import kinds, labels
from resources.base.fields import mapping
from resources.cluster_model.pods import ENDED, is_component, is_synthetic
from resources.model.pod_facts import PROTECTIONS, claims_of, facts_of, pod_spec_of, reserved_for
from resources.ports.fabric import ModelledDriver

OVERDUE: Final = timedelta(minutes=2)
"""How long a deletion may be overdue. An object that is still there then has a reason that time does not remove."""
OUR_FINALIZERS: Final = frozenset({labels.SET_FINALIZER, labels.CLIQUE_FINALIZER, labels.GROUP_FINALIZER, labels.GRAPH_FINALIZER})
"""The finalizers that the engine itself removes, besides those of fabrics."""
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
"""The finalizers of the garbage collector: it deletes what refers to the object, or removes the references."""


class _ClaimUsers(Struct, frozen=True):
    """Who uses claims, at one time of a forecast."""

    claims: frozenset[ResourceId]
    """The claims that objects name which run pods."""
    pods: frozenset[str]
    """The uids of the pods that have not ended."""
    before: frozenset[str]
    """The uids of the pods that existed before the first operation: of others it is not known when they end."""


class Deletions:
    """The objects of one forecast that are being deleted, and those that have lost an owner."""

    def __init__(self, finalizers: Iterable[str], drivers: Sequence[ModelledDriver]) -> None:
        """`finalizers`: those of fabrics, which the engine removes itself."""
        self._ours = OUR_FINALIZERS.union(finalizers)
        self._drivers = drivers
        self._used: set[Assumption] = set()
        self._terminating: dict[ResourceId, None] = {}
        """Objects that are being deleted and that finalizers of other controllers keep."""
        self._without_owner: dict[ResourceId, None] = {}
        """Objects of which an owner has gone."""
        self._pods_before: Mapping[ResourceId, str] = {}
        """The pods that existed before the first operation, with their uids."""
        self._leaving_before: frozenset[ResourceId] = frozenset()
        """The objects that were being deleted before the first operation."""

    def begin(self, store: ForecastStore) -> None:
        """Take note of the objects as they are before the first operation."""
        self._pods_before = {live.id: live.uid for live in store.lives.values() if live.id.kind == kinds.POD.name}
        self._leaving_before = frozenset(live.id for live in store.lives.values() if live.deleting_since is not None)

    def note(self, live: Live) -> None:
        """Take note of an object that is being deleted."""
        self._terminating[live.id] = None

    def note_gone(self, store: ForecastStore, uids: Iterable[str]) -> None:
        """Take note of the dependents of objects that do not exist any more."""
        for uid in uids:
            self._without_owner.update(dict.fromkeys(store.dependents(uid)))

    def answer(self, store: ForecastStore, deleted: Collection[str]) -> Collection[Assumption]:
        """Let controllers and the garbage collector take one step. Returns what is assumed. `deleted`: the uids that operations deleted."""
        self._used = set()
        self._end_terminations(store, deleted)
        self._collect_garbage(store)
        return self._used

    def _end_terminations(self, store: ForecastStore, deleted: Collection[str]) -> None:
        """Remove the finalizers of other programs, and pods that one pass has seen terminating.

        Not those of an object that was being deleted before: nothing shows that they are removed. Claims stay while pods use them.
        """
        users: _ClaimUsers | None = None
        for id in list(self._terminating):
            live = store.find(id)
            if live is None or live.deleting_since is None or (live.uid not in deleted and _is_overdue(store, live)):
                del self._terminating[id]
                continue
            if self._cascade(store, live):
                continue
            finalizers = _finalizers(live)
            kept = [finalizer for finalizer in finalizers if finalizer in self._ours]
            if not PROTECTIONS.isdisjoint(finalizers):
                users = users or self._claim_users(store)
                if id in users.claims or any(uid in users.pods or uid not in users.before for uid in reserved_for(live)):
                    continue
            if self._is_kept(live, finalizers):
                continue
            if len(kept) < len(finalizers) and not any(driver.holds(live) for driver in self._drivers):
                store.patch(id, {"metadata": {"finalizers": kept}})
                self._used.add(Assumption.KUBERNETES)
            elif id.kind == kinds.POD.name and not finalizers:
                store.remove(id)
                self._used.add(Assumption.DELETION)

    def _claim_users(self, store: ForecastStore) -> _ClaimUsers:
        """Who uses claims now. Pods of the forecast do not keep a claim that is being deleted: they are not scheduled before it is gone."""
        pods = (store.lives[id] for id in self._pods_before if id in store.lives)
        running = [pod for pod in pods if pod.uid == self._pods_before[pod.id] and facts_of(pod).phase not in ENDED]
        templates = (
            live for live in store.lives.values() if is_component(live.id) and mapping(live.body.get("spec")).get("replicas", 1) != 0
        )
        named = (id for live in (*running, *templates) for id in claims_of(live.id.namespace, pod_spec_of(live.body)))
        return _ClaimUsers(frozenset(named), frozenset(pod.uid for pod in running), frozenset(self._pods_before.values()))

    def _is_kept(self, live: Live, finalizers: Iterable[str]) -> bool:
        """Whether an object was being deleted before the forecast and finalizers of unknown programs keep it; no pod that may still run."""
        if live.id not in self._leaving_before or live.body["metadata"].get("deletionGracePeriodSeconds"):
            return False
        return any(each not in self._ours and each not in PROTECTIONS and each not in (FOREGROUND, ORPHAN) for each in finalizers)

    def _cascade(self, store: ForecastStore, live: Live) -> bool:
        """Do to the dependents of a deleted object what its finalizers ask of the garbage collector. Returns whether it waits for them."""
        finalizers = _finalizers(live)
        dependents = [dependent for id in store.dependents(live.uid) if (dependent := store.find(id)) is not None]
        if ORPHAN in finalizers:
            for dependent in dependents:
                references = dependent.body["metadata"].get("ownerReferences") or ()
                kept = [reference for reference in references if reference["uid"] != live.uid]
                store.patch(dependent.id, {"metadata": {"ownerReferences": kept}})
            return False
        if FOREGROUND not in finalizers:
            return False
        for dependent in dependents:
            if dependent.deleting_since is None:
                store.delete(dependent.id)
                self._used.add(Assumption.KUBERNETES)
        return any(
            reference.get("blockOwnerDeletion") for dependent in dependents for reference in _references(store, dependent.id, live.uid)
        )

    def _collect_garbage(self, store: ForecastStore) -> None:
        """Delete objects without remaining owners, and remove references to missing owners."""
        if not self._without_owner:
            return
        uids = {live.uid for live in store.lives.values()}
        for id in self._without_owner:
            live = store.find(id)
            if live is None:
                continue
            references = live.body["metadata"].get("ownerReferences") or ()
            if remaining := [reference for reference in references if reference["uid"] in uids]:
                store.patch(id, {"metadata": {"ownerReferences": remaining}})
            else:
                store.delete(id)
            self._used.add(Assumption.KUBERNETES)
        self._without_owner = {}


def _is_overdue(store: ForecastStore, live: Live) -> bool:
    """Whether a real object should have gone long ago: something holds it that the forecast does not know."""
    seconds = live.body["metadata"].get("deletionGracePeriodSeconds")
    grace = seconds if isinstance(seconds, int) else 0
    is_overdue = live.deleting_since is not None and (store.now - live.deleting_since - OVERDUE).total_seconds() > grace
    return is_overdue and not is_synthetic(live)


def _finalizers(live: Live) -> list[str]:
    """The finalizers of an object, those that are text."""
    finalizers = live.body["metadata"].get("finalizers")
    return [each for each in finalizers if isinstance(each, str)] if isinstance(finalizers, list | tuple) else []


def _references(store: ForecastStore, id: ResourceId, owner: str) -> Iterator[Mapping[str, Any]]:
    """The references of an object, if it exists, to the owner of this uid."""
    if (live := store.find(id)) is not None:
        yield from (each for each in live.body["metadata"].get("ownerReferences") or () if each["uid"] == owner)
