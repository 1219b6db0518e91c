"""Gang members: how kube-scheduler places the pods of a PodGroup: so many or none, all at one value of a node label if it says so."""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live
from engine.paths import get
from engine.resource import Body
from resources.base import kinds, labels, names
from resources.base.added_to_pods import REQUIRED
from resources.base.fields import mapping, mappings
from resources.model.pod_groups import GROUP, Find, groups_around, level_of
from resources.placement.pod_affinity import affinity_terms, topology_key

MINIMUM: Final = ("spec", "schedulingPolicy", "gang", "minCount")


class GangMinimum(Struct, frozen=True):
    """The gang of a pod, of whose members so many get nodes together or none does."""

    gang: ResourceId
    """The PodGroup, or the uppermost CompositePodGroup."""
    minimum: int


class GangMember(Struct, frozen=True, eq=False):
    """A pod, as its scheduler places it."""

    pod: Live
    """The pod; what its groups require of nodes is written as its affinity."""
    membership: GangMinimum | None
    """None: it is placed by itself."""


def gang_member(pod: Live, find: Find) -> GangMember:
    """The pod with what its PodGroup, and the groups above it, require."""
    name = get(pod.body, GROUP)
    if not isinstance(name, str):
        return GangMember(_beside_its_gang(pod, find), None)
    groups = list(groups_around(pod.id.namespace, name, find))
    if not groups:
        return GangMember(pod, None)
    keys = _keys(groups)
    top, body = groups[-1]
    minimum = get(body, MINIMUM) if len(groups) == 1 else _minimum_of_gang(pod, find)
    return GangMember(_together(pod, keys) if keys else pod, GangMinimum(top, minimum) if isinstance(minimum, int) else None)


def _beside_its_gang(pod: Live, find: Find) -> Live:
    """A pod outside the PodGroups of its gang, as one that must be where the members are if its affinity says so by the groups' keys."""
    terms = affinity_terms(mapping(pod.body.get("spec")))
    gang = pod.labels.get(labels.PODGANG)
    if not terms or not gang:
        return pod
    own = {topology_key(term) for term in terms}
    groups = (gang, names.clique_group(pod.labels.get(labels.PODCLIQUE, "")))
    existing = (group for name in groups for group in groups_around(pod.id.namespace, name, find))
    keys = {label: key for label, key in _keys(existing).items() if key in own}
    return _together(pod, keys) if keys else pod


def _keys(groups: Iterable[tuple[ResourceId, Body]]) -> dict[str, str]:
    """A label for each group that has a topology constraint -> the node label of that constraint."""
    return {f"group/{id.kind}/{id.name}": level for id, body in groups if (level := level_of(body))}


def _minimum_of_gang(pod: Live, find: Find) -> int | None:
    """The minimum of all groups of a pod's PodGang together."""
    gang = find(kinds.PODGANG.id(pod.id.namespace, pod.labels.get(labels.PODGANG, "")))
    groups = mappings(mapping(gang.get("spec")).get("podgroups")) if gang is not None else ()
    return sum(least for group in groups if isinstance(least := group.get("minReplicas"), int)) or None


def _together(pod: Live, keys: dict[str, str]) -> Live:
    """The pod with a label for each of these groups, and affinity to the pods with that label at one value of the group's node label."""
    spec, metadata = mapping(pod.body.get("spec")), pod.body["metadata"]
    affinity = mapping(spec.get("affinity"))
    near = mapping(affinity.get("podAffinity"))
    terms = [{"labelSelector": {"matchLabels": {label: "member"}}, "topologyKey": key} for label, key in keys.items()]
    required: list[Any] = [*mappings(near.get(REQUIRED)), *terms]
    body = {
        **pod.body,
        "metadata": {**metadata, "labels": {**mapping(metadata.get("labels")), **dict.fromkeys(keys, "member")}},
        "spec": {**spec, "affinity": {**affinity, "podAffinity": {**near, REQUIRED: required}}},
    }
    return replace(pod, source=body)
