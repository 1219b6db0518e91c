"""Pods: one for each index of a clique. A pod is replaced, never edited, except for its labels, annotations and scheduling gate."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine import ownership
from engine.canonical import digest
from engine.ids import Owner, ResourceId
from engine.observed import Live
from engine.operation import BoundOwner, Cause, Create, Trial
from engine.reason import Because, Reason
from engine.resource import Body, Drop, Hold, Path, Policy, Resource, Want, held
from engine.verb import Verb
from resources.base import kinds, labels, names
from resources.base.added_to_pods import with_anti_affinity
from resources.base.fields import manifest, mappings
from resources.children import absence, podclique, podgang, resource_claim, scheduler_gang
from resources.children.child_kind import DeletionGroup, EventTexts
from resources.children.podclique import HASH_LABEL, labels_of, our_labels, pod_spec_of
from resources.children.resource_claim import ClaimUse
from resources.children.scheduler_gang import SchedulerGang
from resources.domains import placement as domain_placement
from resources.lifecycle import startup
from resources.lifecycle.startup import Parent
from resources.model import environment, epochs, group_index
from resources.model.domain import REQUIRED_TERMS, Domain
from resources.model.pod_facts import NewPod, PodFacts
from resources.model.view import CliqueView, GangView, View, is_scheduled
from resources.ports.scheduler import CliquePlacement, LabelsAndAnnotations

REFUSED: Final = "the API server refuses pods like it"
POLICY = Policy(seal=labels.TEMPLATE_HASH, lifelong=labels.IDENTITY)
GATES = ("spec", "schedulingGates")
TRIED: Final = "trial"
"""The predecessor in the name of a pod that is only tried. No uid is like it, so no pod has the name."""


EVENTS = {
    (kinds.PODCLIQUE, Verb.CREATE): EventTexts(
        "PodCreateSuccessful", "Created Pod: {name}", "PodCreateFailed", "Error creating pod {name}: {error}"
    ),
    (kinds.PODCLIQUE, Verb.DELETE): EventTexts(
        "PodDeleteSuccessful", "Deleted Pod: {name}", "PodDeleteFailed", "Error deleting pod: {error}"
    ),
}


def render(view: View) -> Iterator[Resource]:
    """The pods of a replica: serving ones, new ones for missing indices, and those to delete."""
    base = next(gang for gang in view.gangs if gang.is_base)
    gangs, too_large = scheduler_gang.scheduler_gangs(view), podgang.too_large(view)
    indices = group_index.pod_indices(view)
    for clique in view.cliques:
        if view.keeps(clique):
            yield from _of_clique(view, clique, base, gangs.get(clique.gang), too_large.get(clique.gang, ""), indices.get(clique.name, {}))


def _of_clique(
    view: View, clique: CliqueView, base: GangView, gang: SchedulerGang | None, too_large: str, indices: Mapping[int, int]
) -> Iterator[Resource]:
    """The pods of a clique. `gang` is the scheduler's object for the clique's gang; None if the scheduler needs none. `too_large`: why the
    PodGang cannot list its pods.
    """
    placement = scheduler_gang.placement_of(clique, gang)
    clique_labels = {**labels_of(view, clique), labels.PODCLIQUE: clique.name}
    is_gate_open = not clique.base_gang or is_scheduled(base)
    for pod in clique.assignment.kept:
        because = view.removals.pods.get(pod.name)
        in_group = group_index.label_of(pod, indices)
        serving = _serving_pod(view, clique, pod, {**clique_labels, **in_group}, placement, gang, is_gate_open)
        yield _replaced(pod, because) if because else serving
    if clique.assignment.new and too_large:
        yield from _blocked(view, clique, too_large)
    elif clique.assignment.new:
        templates = _Templates(view, clique, placement, is_gate_open)
        for new in clique.assignment.new:
            created = _after_scheduler_gang(_new_pod(view, clique, new, indices.get(new.index), templates.of(new.index)), gang)
            blocker = view.holds.get(clique.clique.name, "")
            created = held(created, REFUSED) if clique.clique.name in view.refused and not clique.outdated else created
            yield held(created, blocker, blocked=True) if blocker else created
    for pod in clique.assignment.surplus:
        yield _deleted(pod, Because(Reason.SCALED_IN, f"{clique.name} is scaled to {clique.replicas}"))
    for pod in clique.assignment.ended:
        yield _deleted(pod, Because(Reason.POD_ENDED, f"the pod has ended ({pod.phase}) and is replaced"))


def _blocked(view: View, clique: CliqueView, why: str) -> Iterator[Hold]:
    """The new pods of a clique of which none can be created, without manifests: those of tens of thousands of pods would take seconds."""
    like = _pod(view, clique, {"metadata": {"name": ""}}, why)
    for new in clique.assignment.new:
        id, reason = kinds.POD.id(view.namespace, new.name), absence.of_pod(view, clique, new.index)
        yield Hold(id, why, like.owners, like.after, POLICY, reason, blocked=True)


def trial(view: View, clique: CliqueView) -> Trial:
    """The create of a pod of the current template, to be checked by the API server: as it will be created, under a name of its own.

    Its key depends on its content alone, whatever the pods and objects of the clique are now, and not on its name, which has the set's uid.
    """
    fresh = replace(clique, live=None, pods=(), adopted=False)
    gang = scheduler_gang.scheduler_gangs(view).get(clique.gang)
    template = _Templates(view, fresh, scheduler_gang.placement_of(fresh, gang), is_gate_open=True).of(0)
    new = NewPod(0, names.pod(clique.name, view.template.identity, 0, TRIED))
    index = group_index.first_index(clique.group.group, clique.clique) if clique.group is not None else None
    pod = _new_pod(view, fresh, new, index, template)
    owners = tuple(BoundOwner(owner, clique.live.uid) for owner in pod.owners) if clique.live is not None else ()
    create = Create(pod.id, pod.why, Cause.INTENT, manifest=pod.body, owners=owners, reason=Reason.TEMPLATE_CHANGED)
    nameless = {**pod.body, "metadata": {**pod.body["metadata"], "name": ""}}
    return Trial(digest(nameless), f"clique {clique.clique.name}", create)


class _StartOrder(Struct, frozen=True):
    """The cliques that the new pods of a clique start after, and what the init container needs that waits for them."""

    parents: Sequence[Parent]
    identity: frozenset[ResourceId]
    why_deferred: str
    """Why no pod is created yet; empty if the token exists."""


class _Template(Struct, frozen=True):
    """What the new pods of a clique have in common."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Body
    order: _StartOrder | None
    waiting_spec: Body
    """The spec with the init container that waits for the parents; without parents the spec."""


class _Templates:
    """The templates of the new pods of a clique: of those that may be placed with the gang, and of the others."""

    def __init__(self, view: View, clique: CliqueView, placement: CliquePlacement, is_gate_open: bool) -> None:
        self._members = placement.members
        spec = _spec(view, clique)
        self._member = _template(view, clique, placement.metadata, _gated({**spec, **placement.member}, is_gated=not is_gate_open))
        self._other = self._member
        if placement.members is not None:
            # One pod has to match all required terms, and no pod matches ours and those of a user.
            if not domain_placement.requires_pods_near(spec):
                for term in placement.affinity:
                    spec = domain_placement.with_pod_affinity(spec, REQUIRED_TERMS, term)
            self._other = self._with_spec(view, _gated(spec, is_gated=bool(placement.gate) or not is_gate_open))
        elif is_gate_open and clique.replicas > clique.clique.min_available and scheduler_gang.has_waiting_members(view, clique.gang):
            self._members = clique.clique.min_available
            self._other = self._with_spec(view, _gated({**spec, **placement.member}, is_gated=True))

    def of(self, index: int) -> _Template:
        """The template of the pod with this index."""
        return self._member if self._members is None or index < self._members else self._other

    def _with_spec(self, view: View, spec: Body) -> _Template:
        return replace(self._member, spec=spec, waiting_spec=_waiting(view, spec, self._member.order))


def _gated(spec: dict[str, Any], *, is_gated: bool) -> dict[str, Any]:
    """The spec, with our scheduling gate besides those of the user if the pod must not be scheduled yet."""
    return {**spec, "schedulingGates": [*spec.get("schedulingGates", ()), {"name": labels.GATE}]} if is_gated else spec


def _template(view: View, clique: CliqueView, placement: LabelsAndAnnotations, spec: Body) -> _Template:
    """Spec, labels and annotations of the clique's version of the template; an outdated clique has a previous one."""
    given, annotations = _previous_metadata(view, clique) if clique.outdated else (clique.clique.labels, clique.clique.annotations)
    hash = clique.hash if clique.outdated else clique.clique.hash
    ours = {**our_labels(view, clique), labels.PODCLIQUE: clique.name, labels.TEMPLATE_HASH: hash}
    ours |= domain_placement.placement_labels(view, clique)
    order = _start_order(view, clique)
    waiting = _waiting(view, spec, order)
    return _Template({**given, **placement.labels, **ours}, {**annotations, **placement.annotations}, spec, order, waiting)


def _start_order(view: View, clique: CliqueView) -> _StartOrder | None:
    """The start order of the new pods of a clique; None if they start after no other clique."""
    parents = startup.parents(view, clique)
    if not parents:
        return None
    return _StartOrder(parents, startup.identity(view), "" if view.has_token else startup.why_deferred(view, clique, parents))


def _waiting(view: View, spec: Body, order: _StartOrder | None) -> Body:
    return startup.with_waiter(view, spec, order.parents) if order is not None else spec


def _new_pod(view: View, clique: CliqueView, new: NewPod, in_group: int | None, template: _Template) -> Want | Hold:
    """A pod to create; `in_group` is its index in its replica of a scaling group.

    The init container that waits for the parents is added after the claims: it is last, and uses none of them.
    """
    claims = resource_claim.uses_of_pod(view, clique, new.index)
    spec = _waiting(view, resource_claim.with_claims(template.spec, claims), template.order) if claims else template.waiting_spec
    index_in_group = {labels.GROUP_POD_INDEX: str(in_group)} if in_group is not None else {}
    body = manifest(
        kinds.POD,
        view.namespace,
        new.name,
        {**template.labels, labels.POD_INDEX: str(new.index), **index_in_group},
        annotations=template.annotations,
        spec={**spec, "hostname": names.hostname(clique.name, new.index)},
    )
    body["metadata"]["generateName"] = f"{clique.name}-"
    wanted = replace(_pod(view, clique, body, f"pod {new.index} of {clique.name}"), reason=absence.of_pod(view, clique, new.index))
    pod = _after_claims(wanted, claims)
    pod = _after_domains(pod, tuple(view.domains_of(clique)))
    return _after_identity(_deferred_without_gang(view, clique, pod), template.order)


def _after_claims(pod: Want | Hold, claims: Sequence[ClaimUse]) -> Want | Hold:
    """The pod, created after the claims that it uses; deferred while one of them cannot be created."""
    if not claims:
        return pod
    pod = replace(pod, after=pod.after.union(claim.id for claim in claims))
    blocker = next((f"needs {claim.id.name}: {claim.blocker}" for claim in claims if claim.blocker), "")
    return held(pod, blocker, blocked=True) if blocker else pod


def _after_domains(pod: Want | Hold, domains: Sequence[Domain]) -> Want | Hold:
    """The pod, created after the fabric domains that it joins; deferred while one of them accepts no pod (R31)."""
    if not domains:
        return pod
    pod = replace(pod, after=pod.after.union(domain.id for domain in domains if domain.resource is not None))
    blocking = next((domain for domain in domains if domain.blocker), None)
    return held(pod, blocking.blocker, blocked=blocking.blocked) if blocking else pod


def _deferred_without_gang(view: View, clique: CliqueView, pod: Want | Hold) -> Want | Hold:
    """The pod; deferred while its gang cannot be created: without its gang it might be scheduled outside of the gang's topology domain."""
    blocker = view.template.topology.blocker
    if not blocker or kinds.PODGANG.id(view.namespace, clique.gang) in view.lives.objects:
        return pod
    return held(pod, f"PodGang {clique.gang} cannot be created: {blocker}", blocked=True)


def _after_scheduler_gang(pod: Want | Hold, gang: SchedulerGang | None) -> Want | Hold:
    """The pod, created after the scheduler's object for its gang; deferred while that object cannot be created."""
    if gang is None:
        return pod
    pod = replace(pod, after=pod.after | gang.ids)
    blocker = gang.pod_blocker
    if blocker is None or (isinstance(pod, Hold) and pod.blocked and not blocker.blocked):
        return pod
    return held(pod, blocker.why, blocked=blocker.blocked)


def _after_identity(pod: Want | Hold, order: _StartOrder | None) -> Want | Hold:
    """The pod, created after the objects that let its init container watch the parents; deferred while the token is missing."""
    if order is None:
        return pod
    pod = replace(pod, after=pod.after | order.identity)
    return held(pod, order.why_deferred) if order.why_deferred else pod


def _serving_pod(
    view: View,
    clique: CliqueView,
    pod: PodFacts,
    clique_labels: dict[str, str],
    placement: CliquePlacement,
    gang: SchedulerGang | None,
    is_gate_open: bool,
) -> Want:
    """An existing pod. It keeps the hash that it was created with.

    An outdated pod also keeps its labels and annotations: selectors for labels of the new version must not match it. One that is taken over
    from a gang of an epoch is changed after the scheduler's object for its `gang` is created.
    """
    index = {labels.POD_INDEX: str(pod.index)} if pod.index is not None else {}
    annotations = clique.clique.annotations
    is_of_scheduler = scheduler_gang.is_placed_by_its_scheduler(view, pod)
    if not clique.is_current(pod) or not is_of_scheduler:  # Its scheduler knows its gang and its queue by what it was created with.
        clique_labels = {**pod.live.labels, **our_labels(view, clique), labels.PODCLIQUE: clique.name}
        annotations = pod.live.body["metadata"].get("annotations") or {}
    metadata = placement.metadata
    if metadata.annotations and is_of_scheduler:
        clique_labels, annotations = {**clique_labels, **metadata.labels}, {**annotations, **metadata.annotations}
    of_domains = domain_placement.labels_of_serving_pod(view, clique, pod.live)
    pod_labels = {**clique_labels, labels.TEMPLATE_HASH: _hash(clique, pod), **of_domains, **index}
    body = manifest(kinds.POD, view.namespace, pod.name, pod_labels, annotations=annotations)
    why = f"pod of {clique.name}"
    own_reasons: list[tuple[Path, Reason]] = [(HASH_LABEL, Reason.ADOPTED)] if clique.is_current(pod) else []
    of_epoch = epochs.own_reasons(view.template.id, pod.live, view.lives, metadata)
    if pod.gated and is_gate_open and _may_be_placed(view, clique, pod, placement):
        gates = [gate for gate in pod.live.body["spec"]["schedulingGates"] if gate.get("name") != labels.GATE]
        body["spec"] = {"schedulingGates": gates}
        why = f"gang {clique.gang} may be scheduled"
        own_reasons.append((GATES, Reason.GANG_SCHEDULED))
    serving = replace(_pod(view, clique, body, why), own_reasons=(*of_epoch, *own_reasons))
    return replace(serving, after=serving.after | gang.ids) if of_epoch and gang is not None else serving


def _may_be_placed(view: View, clique: CliqueView, pod: PodFacts, placement: CliquePlacement) -> bool:
    """Whether a pod takes no room that the minimum of its own gang needs: it is a member, or the members have nodes.

    Members of kube-scheduler's groups stay such when the set has no groups any more: gangs are off, or it has another scheduler.
    """
    if placement.members is not None:
        return not placement.gate or placement.is_member(pod.live.body["spec"])
    return pod.grouped or not scheduler_gang.has_waiting_members(view, clique.gang)


def _hash(clique: CliqueView, pod: PodFacts) -> str:
    """The hash label of a serving pod: the current hash if it was created from the current template, otherwise the one it has."""
    return clique.clique.hash if clique.is_current(pod) else pod.hash or clique.hash


def _pod(view: View, clique: CliqueView, body: dict[str, Any], why: str) -> Want:
    """The resource of a pod, which is created after its gang and the headless Service."""
    name = body["metadata"]["name"]
    gang = kinds.PODGANG.id(view.namespace, clique.gang)
    service = kinds.SERVICE.id(view.namespace, names.headless_service(view.root, view.index))
    owner = Owner(clique.id, kinds.PODCLIQUE.api_version)
    return Want(kinds.POD.id(view.namespace, name), why, (owner,), body=body, after=frozenset({gang, service}), policy=POLICY)


def _replaced(pod: PodFacts, because: Because) -> Drop:
    """The deletion of an outdated pod. One that is not ready is deleted only in the observed revision: it may have become ready since."""
    return replace(_deleted(pod, because), bind_revision=not pod.ready)


def _deleted(pod: PodFacts, because: Because) -> Drop:
    return Drop(pod.live.id, because.text, reason=because.reason)


def _spec(view: View, clique: CliqueView) -> dict[str, Any]:
    """The spec of all new pods of a clique: the clique's, with its scheduler, affinity and environment variables, without our gate.

    Scheduling gates of the user stay: the user removes them.
    """
    scheduler = view.configuration.scheduler(clique.clique.scheduler)
    address = names.service_address(view.root, view.index, view.namespace)
    spec = domain_placement.with_affinity(view, clique, scheduler.decorate_pod(pod_spec_of(view, clique)))
    spec = with_spread(view, clique, spec)
    in_group = environment.IN_GROUP if clique.group is not None else ()
    spec = environment.prepend(spec, (*in_group, *environment.pod_variables(view.root, view.index, clique.name, address)))
    spec["subdomain"] = names.headless_service(view.root, view.index)
    gates = [gate for gate in mappings(spec.pop("schedulingGates", None)) if gate.get("name") != labels.GATE]
    if view.template.priority_class and not spec.get("priorityClassName"):
        spec["priorityClassName"] = view.template.priority_class
    return {**spec, "schedulingGates": gates} if gates else spec


def _previous_metadata(view: View, clique: CliqueView) -> tuple[dict[str, Any], dict[str, Any]]:
    """The template's labels and annotations for a new pod of an outdated clique, without our labels.

    They are read from a pod of the same version, in this clique or in another one of the same template. If there is none, they are those of
    the current template. Selectors for labels of the new version must not match a pod of the previous one.
    """
    siblings = (other for other in view.cliques if other.clique is clique.clique and other is not clique)
    for sibling in (clique, *siblings):
        for pod in sibling.pods:
            if pod.hash == clique.hash:
                excluded = {*our_labels(view, sibling), labels.PODCLIQUE, labels.POD_INDEX, labels.GROUP_POD_INDEX}
                given = {key: value for key, value in _set_by_us(pod, "labels").items() if key not in excluded}
                return given, _set_by_us(pod, "annotations")
    return dict(clique.clique.labels), dict(clique.clique.annotations)


def _set_by_us(pod: PodFacts, field: str) -> dict[str, Any]:
    """The labels or annotations of a pod that the engine set; all of them if the server records no field owners."""
    pod_metadata: Mapping[str, Any] = pod.live.body["metadata"]
    live: Mapping[str, Any] = pod_metadata.get(field) or {}
    fields = ownership.owned(pod.live.body)
    if not fields:
        return dict(live)
    ours = ownership.keys(ownership.below(ownership.below(fields, "metadata"), field))
    return {key: value for key, value in live.items() if key in ours}


def obsolete(view: View, live: Live) -> DeletionGroup | None:
    """A pod is deleted with its clique. Those that a clique no longer needs are among the desired objects, as deletions."""
    clique = podclique.clique_of(view, live)
    return podclique.obsolete(view, clique) if clique is not None and podclique.is_removed(view, clique) else None


def with_spread(view: View, clique: CliqueView, spec: dict[str, Any]) -> dict[str, Any]:
    """The pod spec of a clique, with an anti-affinity to the other pods of its replica if its group is spread."""
    if clique.group is None or clique.group.group.name not in view.template.spread_groups:
        return spec
    identity = {labels.SCALING_GROUP: clique.group.name, labels.GROUP_REPLICA_INDEX: str(clique.group_replica)}
    return with_anti_affinity(spec, identity)
