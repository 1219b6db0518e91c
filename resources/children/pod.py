"""Pods: one for each seat of a clique; replaced, never edited."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.ids import Owner
from engine.resource import Body, Resource, Stance
from resources.base import kinds, labels, names
from resources.base.manifest import manifest
from resources.children import previous_template, resource_claim
from resources.children.podclique import labels_of, our_labels, pod_spec_of
from resources.children.resource_claim import Use
from resources.domains import replica_domains
from resources.model import environment
from resources.model.domain import Domain
from resources.model.pod_assignment import NewPod
from resources.model.pod_facts import PodFacts
from resources.model.view import CliqueView, GangView, View, is_scheduled
from resources.policies import startup
from resources.policies.startup import Parent


def render(view: View) -> Iterator[Resource]:
    """The pods of a replica: those that serve, those that take a free seat, those that must leave."""
    base = next(gang for gang in view.gangs if gang.is_base)
    for clique in view.cliques:
        if view.stays(clique):
            yield from _of_clique(view, clique, base)


def _of_clique(view: View, clique: CliqueView, base: GangView) -> Iterator[Resource]:
    inherited = {**labels_of(view, clique), labels.PODCLIQUE: clique.name}
    open_gate = not clique.base_gang or is_scheduled(base)
    for pod in clique.assignment.kept:
        why = view.moves.pods.get(pod.name)
        yield _replaced(pod, why) if why else _serving(view, clique, pod, inherited, open_gate)
    if clique.assignment.fresh:
        after = startup.parents(view, clique)
        template = _template(view, clique, _spec(view, clique, open_gate))
        for seat in clique.assignment.fresh:
            newcomer = _newcomer(view, clique, seat, template, after)
            yield _in_order(view, clique, newcomer, after) if after else newcomer
    for pod in clique.assignment.surplus:
        yield leaving(pod, f"{clique.name} is scaled to {clique.replicas}")
    for pod in clique.assignment.spent:
        yield leaving(pod, f"it has ended ({pod.phase}); another takes its seat")


@dataclass(frozen=True, slots=True)
class _Template:
    """What the new pods of a clique have in common."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Body


def _template(view: View, clique: CliqueView, spec: Body) -> _Template:
    """Spec, labels and annotations of one version: that of the clique, which may not be that of today."""
    given, annotations = previous_template.given(view, clique) if clique.outdated else (clique.clique.labels, clique.clique.annotations)
    hash = clique.hash if clique.outdated else clique.clique.hash
    ours = {**our_labels(view, clique), labels.PODCLIQUE: clique.name, labels.TEMPLATE_HASH: hash}
    return _Template({**given, **ours}, annotations, spec)


def _newcomer(view: View, clique: CliqueView, seat: NewPod, template: _Template, after: Sequence[Parent]) -> Resource:
    """A new pod. The container that waits for others is no container of the user's: it comes last and uses no claims."""
    claims = resource_claim.uses(view, clique, seat.index)
    spec = resource_claim.using(template.spec, claims)
    if after:
        spec = startup.with_waiter(view, spec, after)
    body = manifest(
        kinds.POD,
        view.namespace,
        seat.name,
        {**template.labels, labels.POD_INDEX: str(seat.index)},
        annotations=template.annotations,
        spec={**spec, "hostname": names.hostname(clique.name, seat.index)},
    )
    body["metadata"]["generateName"] = f"{clique.name}-"
    pod = _sharing(_pod(view, clique, body, f"seat {seat.index} of {clique.name} is free"), claims)
    return _in_gang(view, clique, _in_domains(pod, tuple(replica_domains.domains_of(view, clique))))


def _in_domains(pod: Resource, domains: Sequence[Domain]) -> Resource:
    """A pod that is to be in fabric domains: it comes after them, and is held as long as one of them cannot take it in (R31)."""
    if not domains:
        return pod
    needing = replace(pod, after=pod.after.union(domain.id for domain in domains if domain.resource is not None))
    trouble = next((domain.trouble for domain in domains if domain.trouble), "")
    return replace(needing, stance=Stance.HOLD, why=trouble) if trouble else needing


def _in_gang(view: View, clique: CliqueView, pod: Resource) -> Resource:
    """A pod whose gang cannot be made yet: alone it might be put where the gang must not be."""
    blind = view.template.topology.blind
    if not blind or kinds.PODGANG.id(view.namespace, clique.gang) in view.lives.objects:
        return pod
    return replace(pod, stance=Stance.HOLD, why=f"its gang {clique.gang} is not made yet: {blind}")


def _sharing(pod: Resource, claims: Sequence[Use]) -> Resource:
    """A pod that uses claims: it comes after them, and is held as long as one of them cannot be made."""
    if not claims:
        return pod
    needing = replace(pod, after=pod.after.union(use.id for use in claims))
    trouble = next((f"needs {use.id.name}: {use.trouble}" for use in claims if use.trouble), "")
    return replace(needing, stance=Stance.HOLD, why=trouble) if trouble else needing


def _in_order(view: View, clique: CliqueView, pod: Resource, after: Sequence[Parent]) -> Resource:
    """A pod that starts after others: it comes after what lets it see them, and is held as long as that is not complete."""
    needing = replace(pod, after=pod.after | startup.identity(view))
    return needing if view.has_token else replace(needing, stance=Stance.HOLD, why=startup.why_held(view, clique, after))


def _serving(view: View, clique: CliqueView, pod: PodFacts, inherited: dict[str, str], open_gate: bool) -> Resource:
    """Of a living pod only labels, annotations and its gate are ours to change; it keeps the hash it was made from.

    One of an old template keeps what that gave it: who selects by a label of the new version must not find the old one.
    """
    seat = {labels.POD_INDEX: str(pod.seat)} if pod.seat is not None else {}
    annotations = clique.clique.annotations
    if not clique.is_current(pod):
        inherited = {**pod.live.labels, **our_labels(view, clique), labels.PODCLIQUE: clique.name}
        annotations = pod.live.body["metadata"].get("annotations") or {}
    mine = {**inherited, labels.TEMPLATE_HASH: _hash(clique, pod), **seat}
    body = manifest(kinds.POD, view.namespace, pod.name, mine, annotations=annotations)
    why = f"serves in {clique.name}"
    if pod.gated and open_gate:
        gates = [gate for gate in pod.live.body["spec"]["schedulingGates"] if gate.get("name") != labels.GATE]
        body["spec"] = {"schedulingGates": gates}
        why = f"gang {clique.gang} may be scheduled"
    return _pod(view, clique, body, why)


def _hash(clique: CliqueView, pod: PodFacts) -> str:
    return clique.clique.hash if clique.is_current(pod) else pod.hash or clique.hash


def _pod(view: View, clique: CliqueView, body: dict[str, Any], why: str) -> Resource:
    name = body["metadata"]["name"]
    gang = kinds.PODGANG.id(view.namespace, clique.gang)
    service = kinds.SERVICE.id(view.namespace, names.headless_service(view.root, view.index))
    owner = Owner(clique.id, kinds.PODCLIQUE.api_version)
    return Resource(kinds.POD.id(view.namespace, name), body, why, (owner,), after=frozenset({gang, service}))


def _replaced(pod: PodFacts, why: str) -> Resource:
    """An old pod that makes room for a new one. One that goes because it does not serve goes only as long as it does not."""
    return replace(leaving(pod, why), bind_revision=not pod.ready)


def leaving(pod: PodFacts, why: str, intended: bool = True) -> Resource:
    """A pod that must go."""
    return Resource(pod.live.id, {}, why, stance=Stance.DROP, intended=intended)


def _spec(view: View, clique: CliqueView, open_gate: bool) -> dict[str, Any]:
    """What all new pods of a clique share: the clique's pod spec, dressed by its scheduler and told where it stands."""
    scheduler = view.configuration.scheduler(clique.clique.scheduler)
    address = names.service_address(view.root, view.index, view.namespace)
    spec = scheduler.decorate_pod(pod_spec_of(view, clique))
    spec = environment.in_front(spec, environment.of_pod(view.root, view.index, clique.name, address))
    spec["subdomain"] = names.headless_service(view.root, view.index)
    spec.pop("schedulingGates", None)
    if view.template.priority_class and not spec.get("priorityClassName"):
        spec["priorityClassName"] = view.template.priority_class
    if not open_gate:
        spec["schedulingGates"] = [{"name": labels.GATE}]
    return spec
