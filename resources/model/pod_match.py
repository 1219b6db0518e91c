"""Pod match: whether a pod or a PodClique was created from a pod spec, judged by its contents instead of its hash label.

It decides about objects whose hash Grove's operator or another version of the engine computed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from engine.diff import same
from engine.observed import Live
from engine.paths import get
from engine.resource import Body
from resources.base import labels
from resources.base.fields import annotations_of, mapping, mappings
from resources.model import environment
from resources.model.template import Clique, is_our_hash
from resources.ports.fabric import DomainRequest, Fabric
from resources.schema.pod_spec_form import canonical_form, respelled

REMOVED_LATER = "schedulingGates"
"""The field of a pod spec that loses entries while the pod lives."""

CONTAINERS = ("containers", "initContainers")
GROUP_VARIABLES: Final = frozenset(variable["name"] for variable in environment.group_variables(0))
"""The variables that members of scaling groups have in the pod spec of their PodClique."""


def is_created_from(pod: Body, pod_spec: Body) -> bool:
    """Whether the pod has everything that is in the pod spec; it may have more, which the engine, admission or defaults have added."""
    desired = canonical_form({key: value for key, value in pod_spec.items() if key != REMOVED_LATER})
    return _includes(canonical_form(mapping(pod.get("spec"))), desired)


def is_same_spec(live: Any, pod_spec: Body) -> bool:
    """Whether two pod specs describe the same pods, whatever their spelling."""
    return same(canonical_form(mapping(live)), canonical_form(pod_spec))


def spelled_as(live: Any, pod_spec: Body, scheduler: str) -> Any:
    """The pod spec in the spelling of that of a live object, wherever both mean the same. `scheduler`: that of pods that name none."""
    return respelled(pod_spec, live, scheduler=scheduler)


def _includes(live: Any, desired: Any) -> bool:
    """Whether a live value has everything desired. The entries of a list of objects may be in any order."""
    if live is None:
        return not desired  # The server leaves out empty values.
    if isinstance(desired, Mapping):
        return isinstance(live, Mapping) and all(_includes(live.get(key), value) for key, value in desired.items())
    if isinstance(desired, list | tuple) and all(isinstance(item, Mapping) for item in desired):
        return isinstance(live, list | tuple) and _includes_entries(live, desired)
    return same(live, desired)


def _includes_entries(live: Sequence[Any], desired: Sequence[Body]) -> bool:
    """Whether each desired entry is included in a live one: of those with its name or, if it has none, of all."""
    by_name: dict[str, list[Any]] = {}
    for entry in live:
        by_name.setdefault(_name(entry), []).append(entry)
    return all(any(_includes(entry, item) for entry in (by_name.get(_name(item), ()) if _name(item) else live)) for item in desired)


def _name(entry: Any) -> str:
    name = mapping(entry).get("name")
    return name if isinstance(name, str) else ""


def without_additions(pod_spec: Any, *, variables: Collection[str], claims: Collection[str]) -> Body:
    """A pod spec without the environment variables and resource claims of these names, in all containers."""
    spec = mapping(pod_spec)
    result = {**spec, "resourceClaims": _without(spec.get("resourceClaims"), claims)}
    for field in CONTAINERS:
        if field in spec:
            result[field] = [_container_without(container, variables, claims) for container in mappings(spec[field])]
    return result


def _container_without(container: Body, variables: Collection[str], claims: Collection[str]) -> Body:
    resources = mapping(container.get("resources"))
    used = {**resources, "claims": _without(resources.get("claims"), claims)}
    return {**container, "env": _without(container.get("env"), variables), "resources": used}


def _without(entries: Any, names: Collection[str]) -> list[Body]:
    return [entry for entry in mappings(entries) if _name(entry) not in names]


def is_adopted(live: Live, clique: Clique, *, is_member: bool, requests: Iterable[tuple[Fabric, DomainRequest]]) -> bool:
    """Whether the hash of a PodClique is missing or not the engine's, and it was created from the current template (M1).

    A PodClique outside scaling groups always has the current template, and its pods say by their hashes which template they have: so it may
    have more than the template, e.g. defaults. A member of a scaling group was never changed since its creation: it must be the same.
    """
    if is_our_hash(live.labels.get(labels.TEMPLATE_HASH)):
        return False
    claims = _claims_for_domains(clique, requests)
    live_spec = template_spec_of(live, clique, is_member=is_member, requests=requests)
    desired = without_additions(clique.pod_spec, variables=GROUP_VARIABLES if is_member else (), claims=claims)
    if not is_member:
        return _includes(canonical_form(mapping(live_spec)), canonical_form(desired))
    return _has(live.labels, clique.labels) and _has(annotations_of(live.body), clique.annotations) and is_same_spec(live_spec, desired)


def template_spec_of(live: Live, clique: Clique, *, is_member: bool, requests: Iterable[tuple[Fabric, DomainRequest]]) -> Body:
    """The pod spec of the template that a PodClique was created from: its own without what the engine has added to the clique's."""
    variables = GROUP_VARIABLES if is_member else ()
    return without_additions(get(live.body, ("spec", "podSpec"), {}), variables=variables, claims=_claims_for_domains(clique, requests))


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
