"""Placement: keeps the pods of a fabric domain in one island of nodes, if the set asks for it (N31).

The pods of the domain get a label that identifies it, and an affinity to the pods with that label. A scheduler lets the first of them run
anywhere, because it matches its own affinity. Nothing of this is part of a template hash, so it never starts an update.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engine.canonical import token
from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Body
from resources.base import labels
from resources.base.fields import mapping
from resources.domains.release import claims_template
from resources.model.domain import PREFERRED_TERMS, REQUIRED_TERMS, Domain, DomainPlacement
from resources.model.topology import Constraint
from resources.model.view import CliqueView, View

WEIGHT = 100
"""The weight of a preferred affinity: the largest one, because accelerators that cannot reach one another cannot work together."""
TOKEN_LENGTH = 16


def placement_labels(view: View, clique: CliqueView) -> dict[str, str]:
    """The labels of new pods of a clique that identify their domains; empty if the set does not ask to keep them together."""
    return {label_key(domain): label_value(domain.id.name) for domain, _ in _placed_domains(view, clique)}


def labels_of_serving_pod(view: View, clique: CliqueView, pod: Live) -> dict[str, str]:
    """The labels of an existing pod that identify its domains. It gets them if the set asks now, so that new pods are placed beside it.

    It keeps those that it has: its affinity may be to this label, and without it a pod that is still Pending would match nothing.
    """
    if not view.domains:
        return {}
    existing = {key: pod.labels[key] for domain in view.domains_of(clique) if (key := label_key(domain)) in pod.labels}
    placed = (domain for domain, _ in _placed_domains(view, clique) if claims_template(pod, domain.template))
    return existing | {label_key(domain): label_value(domain.id.name) for domain in placed}


def with_affinity(view: View, clique: CliqueView, spec: dict[str, Any]) -> dict[str, Any]:
    """The pod spec with an affinity to the other pods of each domain; terms of the user are kept."""
    for domain, label in _placed_domains(view, clique):
        term = {
            "labelSelector": {"matchLabels": {label_key(domain): label_value(domain.id.name)}},
            "topologyKey": label,
        }
        if view.template.domain_placement is DomainPlacement.REQUIRED:
            spec = with_pod_affinity(spec, REQUIRED_TERMS, term)
        else:
            spec = with_pod_affinity(spec, PREFERRED_TERMS, {"weight": WEIGHT, "podAffinityTerm": term})
    return spec


def required_islands(view: View, cliques: Iterable[CliqueView]) -> Mapping[ResourceId, tuple[str, set[str]]]:
    """Domain whose pods must be in one island -> the label of nodes that names it, and those of these PodCliques that are in the domain."""
    members_of: dict[ResourceId, tuple[str, set[str]]] = {}
    if view.template.domain_placement is DomainPlacement.REQUIRED:
        for clique in cliques:
            for domain, label in _placed_domains(view, clique):
                members_of.setdefault(domain.id, (label, set()))[1].add(clique.name)
    return members_of


def label_key(domain: Domain) -> str:
    """The label that identifies the domain of a pod. A pod can be in a domain of each kind."""
    return f"{labels.ENGINE_PREFIX}{domain.id.kind.lower()}"


def label_value(name: str) -> str:
    """A label value for the domain of that name: the name, or if it is too long its beginning and a token.

    A `_` separates them, which no name contains: so the values of two domains are never equal.
    """
    if len(name) <= labels.LONGEST_VALUE:
        return name
    return f"{name[: labels.LONGEST_VALUE - TOKEN_LENGTH - 1]}_{token(name, TOKEN_LENGTH)}"


def _placed_domains(view: View, clique: CliqueView) -> Iterator[tuple[Domain, str]]:
    """The domains of a clique whose pods are kept together by affinity, each with the label of nodes that names their island."""
    placement = view.template.domain_placement
    if placement is None:
        return
    for domain in view.domains_of(clique):
        islands = domain.fabric.islands
        if islands is not None and not _is_packed_by_scheduler(view, domain, islands.label, placement):
            yield domain, islands.label


def _is_packed_by_scheduler(view: View, domain: Domain, label: str, placement: DomainPlacement) -> bool:
    """Whether topology constraints on this node label apply to all cliques of the domain, and the scheduler observes them."""
    topology = view.template.topology
    if not (topology.of_set or topology.of_groups or topology.of_cliques):
        return False
    groups = {clique.name: group.name for group in view.template.groups for clique in group.cliques}
    members = [clique for clique in view.template.cliques if clique.name in domain.request.cliques]
    return all(
        view.configuration.scheduler(clique.scheduler).topologies is not None
        and any(
            _packs(constraint, label, placement)
            for constraint in (topology.of_set, topology.of_groups.get(groups.get(clique.name, "")), topology.of_cliques.get(clique.name))
        )
        for clique in members
    )


def _packs(constraint: Constraint | None, label: str, placement: DomainPlacement) -> bool:
    """Whether the constraint keeps pods together by this node label, at least as strictly as the placement asks."""
    pack = mapping((constraint or {}).get("packConstraint"))
    sides = ("required",) if placement is DomainPlacement.REQUIRED else ("required", "preferred")
    return any(pack.get(side) == label for side in sides)


def requires_pods_near(spec: Body) -> bool:
    """Whether the pod spec has a required term of pod affinity."""
    return bool(mapping(mapping(spec.get("affinity")).get("podAffinity")).get(REQUIRED_TERMS))


def with_pod_affinity(spec: Body, field: str, term: Body) -> dict[str, Any]:
    """The pod spec with one more term of pod affinity, after those that it has."""
    affinity = mapping(spec.get("affinity"))
    pod_affinity = mapping(affinity.get("podAffinity"))
    terms = pod_affinity.get(field) or ()
    return {**spec, "affinity": {**affinity, "podAffinity": {**pod_affinity, field: [*terms, term]}}}
