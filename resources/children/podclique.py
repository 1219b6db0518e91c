"""PodCliques: the pods of one role, standalone or as a member of a scaling group."""

from collections.abc import Iterator
from typing import Any

from engine.observed import Live
from engine.reason import Because, Reason
from engine.resource import EventGroup, Path, Policy, Want
from engine.verb import Verb
from resources.base import kinds, labels
from resources.base.fields import manifest
from resources.children import absence
from resources.children.child_kind import DeletionGroup, EventTexts, unexpected
from resources.domains import replica_domains
from resources.lifecycle.startup import parents
from resources.model import epochs
from resources.model.environment import template_spec
from resources.model.pod_match import spelled_as
from resources.model.view import CliqueView, GroupView, View, group_replica
from resources.status import podclique as status
from resources.status.update import begins

POLICY = Policy(
    seeded=(("spec", "replicas"),),
    exact=(("spec", "podSpec"),),
    seal=labels.TEMPLATE_HASH,
    owned=(("spec", "autoScalingConfig"), ("spec", "startsAfter")),
    finalizers=(labels.CLIQUE_FINALIZER,),
    lifelong=labels.IDENTITY,
)
"""The policy of a clique that follows the template."""

HASH_LABEL = ("metadata", "labels", labels.TEMPLATE_HASH)
OUTDATED = Policy(seal=labels.TEMPLATE_HASH, finalizers=(labels.CLIQUE_FINALIZER,), lifelong=labels.IDENTITY)
"""The policy of an outdated clique: its spec is neither compared nor written."""


_WRITTEN = EventTexts(
    "PodCliqueCreateOrUpdateSuccessful",
    "PodClique {key} created or updated successfully",
    "PodCliqueCreateOrUpdateFailed",
    "PodClique {key} creation or updation failed: {error}",
)
EVENTS = {
    (kinds.PODCLIQUESET, Verb.CREATE): _WRITTEN,
    (kinds.PODCLIQUESET, Verb.PATCH): _WRITTEN,
    (kinds.PODCLIQUESET, Verb.DELETE): EventTexts(
        "PodCliqueDeleteSuccessful", "Deleted PodClique: {name}", "PodCliqueDeleteFailed", "Error deleting PodClique {key}: {error}"
    ),
    (kinds.SCALING_GROUP, Verb.CREATE): EventTexts(
        "PodCliqueCreateSuccessful",
        "PodClique {key} created successfully",
        "PodCliqueCreateFailed",
        "PodClique {key} creation failed: {error}",
    ),
    (kinds.SCALING_GROUP, Verb.PATCH): _WRITTEN,
}


def render(view: View) -> Iterator[Want]:
    """The cliques of a replica. `spec.replicas` is sent on creation only: afterwards users and autoscalers own it."""
    for clique in view.cliques:
        if view.keeps(clique):
            yield _podclique(view, clique)


def _podclique(view: View, clique: CliqueView) -> Want:
    """An outdated clique keeps its spec and hash until it is replaced; only labels and annotations follow the template."""
    spec = {} if clique.outdated else {"spec": _spec(view, clique)}
    clique_status = status.of(view, clique)
    body = manifest(
        kinds.PODCLIQUE,
        view.namespace,
        clique.name,
        labels_of(view, clique),
        annotations=clique.clique.annotations,
        finalizers=POLICY.finalizers,
        **spec,
    )
    return Want(
        clique.id,
        f"clique {clique.clique.name} of replica {view.index}" + (f", in {clique.group.name}" if clique.group else ""),
        (clique.owner,),
        body=body,
        policy=OUTDATED if clique.outdated else POLICY,
        status=clique_status,
        urgent=begins(clique_status),
        provisional=status.is_coming_up(clique, clique_status),
        own_reasons=_own_reasons(view, clique),
        reason=absence.of_clique(view, clique),
        status_why=status.summary_text(clique_status),
    )


def _own_reasons(view: View, clique: CliqueView) -> tuple[tuple[Path, Reason], ...]:
    """Why labels of the clique change, where that is not the template."""
    of_epoch = epochs.own_reasons(view.template.id, clique.live, view.lives) if clique.live is not None else ()
    return of_epoch or (((HASH_LABEL, Reason.ADOPTED),) if clique.adopted else ())


def labels_of(view: View, clique: CliqueView) -> dict[str, str]:
    """The labels of a clique: the template's, overridden by ours. Its pods inherit them."""
    return {**clique.clique.labels, **our_labels(view, clique)}


def our_labels(view: View, clique: CliqueView) -> dict[str, str]:
    """The labels that identify a clique and its pods. They override labels of the template."""
    component = "pcsg-podclique" if clique.group else "pcs-podclique"
    ours = labels.child(view.root, component, clique.name)
    if clique.group:
        ours[labels.SCALING_GROUP] = clique.group.name
        ours[labels.GROUP_REPLICA_INDEX] = str(clique.group_replica)
    ours[labels.PODGANG] = clique.gang
    if clique.base_gang:
        ours[labels.BASE_PODGANG] = clique.base_gang
    ours[labels.REPLICA_INDEX] = str(view.index)
    ours[labels.TEMPLATE_HASH] = _hash(clique)
    return ours


def _spec(view: View, clique: CliqueView) -> dict[str, Any]:
    template = clique.clique
    spec: dict[str, Any] = {
        "roleName": template.role,
        "replicas": template.replicas,
        "minAvailable": template.min_available,
        "podSpec": _spelled_pod_spec(view, clique),
    }
    if clique_parents := parents(view, clique):
        spec["startsAfter"] = [parent.name for parent in clique_parents]
    if template.autoscaling and clique.group is None:
        spec["autoScalingConfig"] = template.autoscaling
    return spec


def _spelled_pod_spec(view: View, clique: CliqueView) -> dict[str, Any]:
    """The pod spec of a clique in the spelling of the live one: another spelling of the same pods is no change."""
    desired = pod_spec_of(view, clique)
    if clique.live is None:
        return desired
    spelled: dict[str, Any] = spelled_as(clique.live.body["spec"].get("podSpec"), desired, view.configuration.default_scheduler)
    return spelled


def pod_spec_of(view: View, clique: CliqueView) -> dict[str, Any]:
    """The pod spec of a clique, with claims for its fabric domains; an outdated clique keeps its live pod spec."""
    if clique.outdated and clique.live is not None:
        return dict(clique.live.body["spec"]["podSpec"])
    return replica_domains.decorate_pod(view, clique, template_spec(clique.clique, clique.group.group if clique.group else None))


def _hash(clique: CliqueView) -> str:
    """The hash label. An outdated clique keeps its own, an adopted one as long as one of its pods has that hash."""
    is_needed_by_pods = bool(clique.live_hash) and any(pod.hash == clique.live_hash for pod in clique.pods)
    if clique.outdated or (clique.adopted and is_needed_by_pods):
        return clique.live_hash
    return clique.clique.hash


def obsolete(view: View, live: Live) -> DeletionGroup:
    """A clique is deleted with its scaling group, by a user, by an update or a termination, with a removed replica of its group, or
    because the template has no such clique."""
    group = view.group_of(live)
    if group is not None and group.live is not None and group.terminating:
        return deleted_by_user(group.live)
    index = group_replica(live)
    if group is not None and index is not None and index >= group.replicas and live.id.name not in view.removals.cliques:
        return scaled_in(view, group, index)
    if live.deleting_since is not None:
        return deleted_by_user(live)
    if live.id.name in view.removals.cliques:
        is_whole = view.removals.recycled
        event_group = _event_of_replica(view) if is_whole else _event_of_group_replica(view, group, index)
        return DeletionGroup(view.removals.cliques[live.id.name], event_group=event_group)
    return unexpected(f"the template has no clique {live.id.name}")


def clique_of(view: View, live: Live) -> Live | None:
    """The live clique that controls an object."""
    owner = live.controller
    clique = view.lives.objects.get(kinds.PODCLIQUE.id(view.namespace, owner.name)) if owner is not None else None
    return clique if owner is not None and clique is not None and clique.uid == owner.uid else None


def is_removed(view: View, clique: Live) -> bool:
    """Whether the live clique should not exist now."""
    return not any(clique.id == candidate.id and view.keeps(candidate) for candidate in view.cliques)


def scaled_in(view: View, group: GroupView, index: int) -> DeletionGroup:
    """The deletion of what belongs to a removed replica of a scaling group."""
    why = f"replica {index} of {group.name} is removed: {group.name} is scaled to {group.replicas}"
    return DeletionGroup(Because(Reason.SCALED_IN, why), event_group=_event_of_group_replica(view, group, index))


def deleted_by_user(live: Live) -> DeletionGroup:
    """The objects below a clique or scaling group that is terminating and still desired."""
    return DeletionGroup(Because(Reason.USER_DELETED, f"{live.id.kind} {live.id.name} was deleted and is created again"))


def _event_of_replica(view: View) -> EventGroup:
    name = f"PodCliqueSet replica {view.index}"
    return _event_of_set(view, "PodCliqueSetReplicaDelete", f"{name} deleted", f"Error deleting {name}")


def _event_of_group_replica(view: View, group: GroupView | None, index: int | None) -> EventGroup | None:
    if group is None or index is None:
        return None
    name = f"PodCliqueScalingGroup {group.name} replicaIndex: {index}"
    return _event_of_set(view, "PodCliqueScalingGroupReplicaDelete", f"Deleted {name}", f"Error deleting {name}")


def _event_of_set(view: View, reason: str, done: str, failed: str) -> EventGroup:
    return EventGroup(view.template.id, view.template.identity, reason, done, failed)
