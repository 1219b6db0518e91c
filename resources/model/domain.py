"""Domain: a fabric domain that pods of a set request, with its state, and which domains a set requests, read from the set alone."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live
from engine.paths import get
from engine.plan import Alarm
from engine.resource import Body, Policy, Resource
from resources.base import labels
from resources.base.fields import GROUPS, annotations_of, cliques_of, mapping, mappings, members_of
from resources.ports.fabric import (
    GROUP_INDEX,
    INDEX,
    DomainRequest,
    Fabric,
    SpecifiedClique,
    SpecifiedGroup,
    SpecifiedSet,
)
from resources.schema.podcliqueset import PodCliqueSet

REQUIRED_TERMS, PREFERRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
"""The fields of a pod affinity."""


class Holders(Struct, frozen=True):
    """The users of a domain that is being deleted, and that our finalizer keeps until they are gone."""

    replicas: frozenset[int]
    """The indices of the replicas of this set whose pods use it."""
    others: str
    """The users that are neither pods of this set nor their claims, in words; empty if there are none."""


class Domain(Struct, frozen=True, eq=False):
    """One requested domain. Compared by identity: the memo returns the same object while nothing about the domain changes."""

    id: ResourceId
    fabric: Fabric
    request: DomainRequest
    template: str
    """The name of the ResourceClaimTemplate that its pods claim."""
    resource: Resource | None
    """The desired domain object; None for a domain that others created, which pods use and the engine never changes."""
    blocker: str = ""
    """Why no pod of the domain can be created now; empty if pods can be created."""
    blocked: bool = False
    """Whether a user or another controller has to act before a pod of the domain can be created; otherwise a later pass creates it."""
    pending: str = ""
    """What the cluster still has to do for the domain; empty if nothing."""
    alarm: Alarm | None = None
    """The alarm to publish about the domain, if there is one."""
    held_by: Holders | None = None
    """Its users, while it is being deleted and is kept for them; else None."""
    released: str = ""
    """Why it is released although pods of the set claim it: they have all completed (N33); empty if it is not."""
    cut_alarm: Alarm | None = None
    """The alarm to publish about pods that are cut off from the domain, if there are any."""


def policy_of(fabric: Fabric, *, shared: bool = False) -> Policy:
    """The policy of a domain object: its spec is sent once, and our finalizer is released after the driver's."""
    return Policy(seeded=(("spec",),), finalizers=(fabric.finalizer,), release_last=True, shared=shared)


def subject_of(id: ResourceId, root: str, index: int | str) -> str:
    """A domain of one replica of the set `root`, for messages: `for replica 0`, after its name if that is not `<set>-<index>` (R30)."""
    return f"for replica {index}" if id.name == f"{root}-{index}" else f"{id.name} for replica {index}"


def is_foreign(live: Live, fabric: Fabric, root_uid: str, *, shared: bool) -> bool:
    """Whether a domain of a requested name belongs to another owner than the set with the uid `root_uid`.

    A domain for one replica must be controlled by the set. A shared one must not be a domain that the engine created for one replica.
    """
    if shared:
        return live.controller is not None and is_managed(live, fabric)
    return live.controller is None or live.controller.uid != root_uid


def is_managed(live: Live, fabric: Fabric) -> bool:
    """Whether the engine created this domain. A domain that a user created is used and never changed (N9)."""
    return live.labels.get(labels.MANAGED_BY) == labels.MANAGER or fabric.finalizer in live.finalizers


class DomainPlacement(StrEnum):
    """The values of the annotation `labels.DOMAIN_PLACEMENT` of a set."""

    REQUIRED = "required"
    """Pods only run in the island of the other pods of their domain; otherwise they stay Pending."""
    PREFERRED = "preferred"
    """Pods run there if there is room, otherwise elsewhere."""


def placement_of(annotations: Mapping[str, Any]) -> DomainPlacement | None:
    """What the annotations of a set ask for; None if nothing, or if the value is invalid: admission may have been bypassed."""
    value = annotations.get(labels.DOMAIN_PLACEMENT)
    return next((placement for placement in DomainPlacement if placement == value), None)


def specified(model: PodCliqueSet) -> SpecifiedSet:
    """What fabrics read of a set that has its shape."""
    template = model.spec.template
    return SpecifiedSet(
        model.metadata.name,
        model.metadata.annotations or {},
        model.spec.replicas,
        tuple(SpecifiedClique(clique.name, clique.annotations, clique.spec.pod_spec) for clique in template.cliques),
        tuple(SpecifiedGroup(group.name, group.clique_names, group.annotations) for group in template.pod_clique_scaling_groups),
    )


def specified_in(body: Body) -> SpecifiedSet:
    """What fabrics read of a set of any shape: what has the wrong type counts as absent, and entries of lists keep their positions."""
    replicas = get(body, ("spec", "replicas"), 0)
    return SpecifiedSet(
        _text(mapping(body.get("metadata")).get("name")),
        _strings(annotations_of(body)),
        replicas if type(replicas) is int else 0,
        tuple(SpecifiedClique(_text(entry.get("name")), _annotations(entry), _pod_spec(entry)) for entry in cliques_of(body)),
        tuple(
            SpecifiedGroup(_text(entry.get("name")), tuple(members_of(entry)), _annotations(entry))
            for entry in mappings(get(body, GROUPS, ()))
        ),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _annotations(entry: Body) -> Mapping[str, str]:
    return _strings(mapping(entry.get("annotations")))


def _strings(annotations: Mapping[str, object]) -> Mapping[str, str]:
    return {key: value for key, value in annotations.items() if isinstance(value, str)}


def _pod_spec(clique: Body) -> Body:
    return mapping(mapping(clique.get("spec")).get("podSpec"))


def domain_requests_of(fabric: Fabric, root: str, specified: SpecifiedSet) -> tuple[DomainRequest, ...]:
    """The domains that the set with the name `root` requests from a fabric."""
    cliques = {clique.name: clique for clique in cliques_with_inherited(fabric, specified) if clique.name}
    return fabric.domain_requests(root, specified.annotations, cliques)


def cliques_with_inherited(fabric: Fabric, specified: SpecifiedSet) -> tuple[SpecifiedClique, ...]:
    """The cliques of a set's template, in their order, with the annotations that they inherit for this fabric (N26).

    A clique's own annotations count first, then those of its scaling group, then those of its set.
    """
    if not (keys := fabric.inherited_annotations):
        return specified.cliques
    of_set = _chosen(specified.annotations, keys)
    of_groups = {clique: _chosen(group.annotations, keys) for group in specified.groups if group.annotations for clique in group.cliques}
    if not of_set and not of_groups:
        return specified.cliques
    return tuple(
        replace(clique, annotations={**of_set, **of_groups.get(clique.name, {}), **clique.annotations}) for clique in specified.cliques
    )


def _chosen(annotations: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: annotations[key] for key in keys if key in annotations}


def is_per_group_replica(request: DomainRequest) -> bool:
    """Whether each replica of a scaling group has its own domain (N27)."""
    return GROUP_INDEX in request.name


def name_in(request: DomainRequest, index: int, group_replica: int | None) -> str:
    """The name of the domain for a replica of the set and one of a scaling group.

    `group_replica` is None for cliques outside scaling groups: then `GROUP_INDEX` stays, and no domain has such a name.
    """
    name = request.name.replace(INDEX, str(index))
    return name if group_replica is None else name.replace(GROUP_INDEX, str(group_replica))


def expanded(request: DomainRequest, index: int, group_replicas: Mapping[str, int]) -> Iterator[DomainRequest]:
    """The requests of the replica `index` that one request stands for, by the index of the scaling group's replica.

    `group_replicas`: clique -> the replicas of its scaling group in this replica of the set; cliques outside groups are not included.
    """
    if not is_per_group_replica(request):
        yield replace(request, name=name_in(request, index, None))
        return
    counts = {clique: group_replicas[clique] for clique in request.cliques if clique in group_replicas}
    for group_replica in range(max(counts.values(), default=0)):
        members = frozenset(clique for clique, count in counts.items() if count > group_replica)
        yield replace(request, name=name_in(request, index, group_replica), cliques=members)
