"""Absence: why an object of a replica does not exist yet, as far as it can be told from what is observed.

The evidence is what earlier passes have recorded: statuses, the pods that a PodGang lists, and predecessors that are being deleted.
"""

from collections.abc import Mapping
from typing import Any

from engine.conditions import is_true
from engine.observed import Live
from engine.reason import Reason
from resources.base import kinds, labels, names
from resources.base.fields import annotations_of
from resources.lifecycle.availability import INITIALIZED
from resources.model.domain import Domain
from resources.model.epochs import signs_of
from resources.model.growth_limit import listed_pods
from resources.model.template import is_our_hash
from resources.model.view import CliqueView, GangView, GroupView, View
from resources.status import update


def is_new_replica(view: View) -> bool:
    """Whether the replica of the set has never had all its pods, as far as its objects tell."""
    lives = view.lives.objects.values()
    return not any(_is_observed(live) or (live.id.kind == kinds.PODGANG.name and _is_initialized(live)) for live in lives)


def of_clique(view: View, clique: CliqueView) -> Reason | None:
    """Why a clique does not exist; None if it exists, or if nothing explains it: then it was deleted, or the template has changed."""
    return None if clique.live is not None else _of_new_clique(view, clique)


def _of_new_clique(view: View, clique: CliqueView) -> Reason | None:
    """Why a clique that does not exist, or has not had all its pods yet, is created."""
    reason = of_group_replica(view, clique.group, clique.group_replica) if clique.group is not None else None
    return reason or (Reason.GANG_TERMINATED if is_terminated(_gang_of(view, clique)) else None)


def of_gang(view: View, gang: GangView) -> Reason | None:
    """Why a gang, or the scheduler's object for it, does not exist; None if nothing explains it."""
    if gang.live is None and signs_of(view.template.id, view.lives).made_by:
        return Reason.TAKEN_OVER
    members = () if gang.is_base else tuple(gang.cliques)
    return next((of_group_replica(view, clique.group, clique.group_replica) for clique in members if clique.group is not None), None)


def of_domain(view: View, domain: Domain) -> Reason | None:
    """Why a fabric domain of the replica does not exist: that of the cliques whose pods join it; None if nothing explains it."""
    return next((reason for clique in view.cliques_in(domain) if (reason := of_clique(view, clique))), None)


def of_group_replica(view: View, group: GroupView, index: int) -> Reason | None:
    """Why a scaling group lacks objects of its replica with that index; None if nothing explains it.

    A group records for how many replicas it was observed last. One that has never had all its cliques belongs to a new replica of the set,
    or is created again.
    """
    status = _status(group.live)
    if group.live is None or "observedGeneration" not in status:
        return None
    is_scaled = status["observedGeneration"] != group.live.generation
    if is_scaled and (index >= (status.get("replicas") or 0) or _is_of_new_gang(view, group, index)):
        return Reason.SCALED_OUT
    return Reason.TEMPLATE_CHANGED if _is_group_updating(view, group) else None


def is_terminated(gang: Live | None) -> bool:
    """Whether a PodGang says that cliques of it are created again after a gang termination."""
    return gang is not None and annotations_of(gang.body).get(labels.GANG_TERMINATION) == labels.IN_PROGRESS


def _gang_of(view: View, clique: CliqueView) -> Live | None:
    return view.lives.objects.get(kinds.PODGANG.id(view.namespace, clique.gang))


def _is_of_new_gang(view: View, group: GroupView, index: int) -> bool:
    """Whether the replica of a group has a gang of its own that has never had all its pods."""
    minimum = group.group.min_available
    if not minimum <= index < group.replicas:
        return False
    gang = view.lives.objects.get(kinds.PODGANG.id(view.namespace, names.scaled_gang(group.name, index, minimum)))
    return gang is None or not _is_initialized(gang)


def of_pod(view: View, clique: CliqueView, index: int) -> Reason | None:
    """Why a clique has no pod with that index; None if its clique does not exist either, and nothing explains that."""
    predecessors = [pod for pod in clique.pods if pod.index == index and not pod.serving]
    if any(pod.ended for pod in predecessors):
        return Reason.POD_ENDED
    if any(not clique.is_current(pod) for pod in predecessors):
        return Reason.TEMPLATE_CHANGED
    if predecessors:
        return Reason.MISSING
    if clique.live is None:
        return of_clique(view, clique)
    status = _status(clique.live)
    if "observedGeneration" not in status:
        return _of_new_clique(view, clique) or Reason.CLIQUE_CREATED
    updating = is_updating(clique)
    if status["observedGeneration"] != clique.live.generation and index >= _pods_before(view, clique, updating=updating):
        return Reason.SCALED_OUT
    return Reason.TEMPLATE_CHANGED if updating else Reason.MISSING


def _pods_before(view: View, clique: CliqueView, *, updating: bool) -> int:
    """How many pods the clique had before its spec changed.

    An update lowers the number that its status has; the pods that its gang lists are those that it should have had in the last pass.
    """
    counted: int = _status(clique.live).get("replicas") or 0
    return max(counted, listed_pods(_gang_of(view, clique), clique.name)) if updating else counted


def is_updating(clique: CliqueView) -> bool:
    """Whether an update of the clique is in progress, or has begun since its status was written: that names another template of ours."""
    status = _status(clique.live)
    return update.is_in_progress(status.get("updateProgress")) or _is_another(status.get("currentPodTemplateHash"), clique.clique.hash)


def _is_group_updating(view: View, group: GroupView) -> bool:
    status = _status(group.live)
    known = status.get("currentPodCliqueSetGenerationHash")
    return update.is_in_progress(status.get("updateProgress")) or _is_another(known, view.template.hash)


def _is_another(known: Any, hash: str) -> bool:
    """Whether a recorded hash is ours, of another template."""
    return is_our_hash(known) and known != hash


def follows_pods(view: View, gang: GangView) -> Reason:
    """Why the list of pods of a gang changes."""
    removed = {because.reason for name, *_ in gang.groups if (because := view.removals.cliques.get(name)) is not None}
    if Reason.GANG_TERMINATED in removed or is_terminated(gang.live):
        return Reason.GANG_TERMINATED
    is_update = (
        view.removals.updating or any(map(is_updating, gang.cliques)) or any(_is_group_updating(view, group) for group in view.groups)
    )
    return Reason.TEMPLATE_CHANGED if is_update else Reason.PODS_CHANGED


def _is_observed(live: Live) -> bool:
    """Whether a clique or scaling group has once had everything that it should have."""
    return live.id.kind in (kinds.PODCLIQUE.name, kinds.SCALING_GROUP.name) and "observedGeneration" in _status(live)


def _is_initialized(gang: Live) -> bool:
    return is_true(_status(gang).get("conditions") or (), INITIALIZED)


def _status(live: Live | None) -> Mapping[str, Any]:
    return (live.body.get("status") or {}) if live is not None else {}
