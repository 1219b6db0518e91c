"""Adoption: whether a PodClique whose hash is not the engine's was created from the current template.

Grove's operator, and other versions of the engine, compute other hashes for an equal template. Such a PodClique and its pods are kept and
get new hash labels; only one that differs from the template is updated.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine.observed import Live
from engine.paths import get
from engine.resource import Body
from resources.base import labels
from resources.base.fields import annotations_of, mappings
from resources.model import environment
from resources.model.pod_match import covers_spec, is_same_spec, without_additions
from resources.model.template import Clique, is_our_hash
from resources.ports.fabric import DomainRequest, Fabric

GROUP_VARIABLES: Final = frozenset(variable["name"] for variable in environment.group_variables(0))
"""The variables that members of scaling groups have in the pod spec of their PodClique."""


def is_adopted(live: Live, clique: Clique, *, is_member: bool, requests: Iterable[tuple[Fabric, DomainRequest]]) -> bool:
    """Whether the hash of a PodClique is missing or not the engine's, and it was created from the current template (M1).

    A PodClique outside scaling groups always has the current template, and its pods say by their hashes which template they have: so it may
    have more than the template, e.g. defaults. A member of a scaling group was never changed since its creation: it must be the same.
    """
    if is_our_hash(live.labels.get(labels.TEMPLATE_HASH)):
        return False
    claims = _claims_for_domains(clique, requests)
    variables = GROUP_VARIABLES if is_member else frozenset[str]()
    live_spec = without_additions(get(live.body, ("spec", "podSpec"), {}), variables=variables, claims=claims)
    desired = without_additions(clique.pod_spec, variables=variables, claims=claims)
    if not is_member:
        return covers_spec(live_spec, desired)
    return _has(live.labels, clique.labels) and _has(annotations_of(live.body), clique.annotations) and is_same_spec(live_spec, desired)


def has_lost_hash(live: Live, clique: Clique, hashes: Iterable[str]) -> bool:
    """Whether the hash label of a PodClique is missing and its pods, of which `hashes` are those labels, have the current template."""
    return labels.TEMPLATE_HASH not in live.labels and set(hashes) == {clique.hash}


def _claims_for_domains(clique: Clique, requests: Iterable[tuple[Fabric, DomainRequest]]) -> frozenset[str]:
    """The names of the claims that fabrics add to the clique's pod spec."""
    decorated = clique.pod_spec
    for fabric, request in requests:
        if clique.name in request.cliques:
            decorated = fabric.decorate_pod(decorated, "")
    return _claim_names(decorated) - _claim_names(clique.pod_spec)


def _claim_names(pod_spec: Body) -> frozenset[str]:
    names = (claim.get("name") for claim in mappings(pod_spec.get("resourceClaims")))
    return frozenset(name for name in names if isinstance(name, str))


def _has(live: Mapping[str, Any], desired: Mapping[str, Any]) -> bool:
    """Whether the live labels or annotations contain those of the template; labels of ours override the template's."""
    return all(live.get(key) == value or key.startswith((labels.GROVE_PREFIX, "app.kubernetes.io/")) for key, value in desired.items())
