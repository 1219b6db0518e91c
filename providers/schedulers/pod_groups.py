"""Pod groups: kube-scheduler's objects for PodGangs, of Kubernetes 1.37 or newer.

A gang is *flat*, one PodGroup for all its cliques, or a *hierarchy*, one for each clique. Which it is, its PodGang records: it stays so
while the gang lives. A gang whose pods run without a group stays without: a pod cannot join one later.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.answer import FailedCall
from engine.conditions import find
from engine.errors import Invalid
from engine.observed import Live
from engine.paths import get
from engine.reason import Reason
from engine.resource import Body, Policy
from providers.schedulers.pod_group_tree import (
    GROUP_FIELD,
    NO_PREFERENCE,
    ONE_LEVEL,
    OVERLAP,
    TOO_LARGE,
    UNSERVED,
    Constraints,
    GangTree,
    KubeGroup,
    affinity,
    constraints_of,
    flat,
    group_of,
    key_of,
    priority,
    topology,
)
from resources.base import kinds, labels, names
from resources.base.fields import annotations_of, count, manifest, mapping, mappings
from resources.ports.scheduler import (
    INITIALLY_SCHEDULED,
    CliqueOfGang,
    CliquePlacement,
    GangAnswer,
    GangFacts,
    GangObject,
    GangObjects,
    GangPlan,
    SetMetadata,
)

UNANSWERED: Final = (
    "kube-scheduler has said nothing of PodGroup {group} for a minute: its feature gate GenericWorkload is probably off; until it does, "
    "the gang's pods are placed one by one; start it with --feature-gates=GenericWorkload=true"
)
OVERLAPPING: Final = f"some topology constraints have no effect in gangs of kube-scheduler: {OVERLAP}"
ONE_BY_ONE: Final = "are placed one by one until they are created anew: they run without a PodGroup, which a pod cannot join"
WITHOUT_PARENTS: Final = (
    "are gangs for each clique alone while the cluster does not serve CompositePodGroup: serve it again (feature gate and version "
    "scheduling.k8s.io/v1alpha3 of the API server), or create the sets anew"
)
CREATED_FLAT: Final = "it stays as it was created"
TOPOLOGY_DIFFERS: Final = (
    "PodGroup {group} {has} although {wanted} required: it stays as it was created, without constraints where the API server does not have "
    "the feature gate TopologyAwareWorkloadScheduling"
)
NO_TOPOLOGY: Final = (
    "topology constraints have no effect in gangs that the API server took without them, because it does not have the feature gate "
    "TopologyAwareWorkloadScheduling; they stay so until they are created again"
)
PARENT_STAYS: Final = "CompositePodGroup {group} stays as it was created, although its topology constraint is no longer required"
TERMINATING: Final = "PodGroup {group} is being deleted: it works until its last pod is gone, and is created again then"
MINIMUM_DIFFERS: Final = "PodGroup {group} needs {minimum} of {wanted} pods: others cannot join it until they are replaced"
FORBIDDEN: Final = "FieldValueForbidden"
"""Why an API server refuses a field whose feature gate is off."""
MINIMUM: Final = ("spec", "schedulingPolicy", "gang", "minCount")
PODGROUPS: Final = ("spec", "podgroups")
POLICY: Final = Policy(
    seeded=tuple(
        ("spec", name)
        for name in ("schedulingConstraints", "priorityClassName", "workloadRef", "parentCompositePodGroupName", "disruptionMode")
    ),
    until_gone=True,
)
"""All but the minimum is immutable: it is what it was when the group was created. Kubernetes keeps a group until its pods are gone."""


class Form(StrEnum):
    """The objects by which a gang is scheduled."""

    FLAT = "flat"
    HIERARCHY = "hierarchy"
    PODS = "pods"
    """None: its pods are placed one by one."""


class KubePodGroups(GangObjects):
    """The PodGroups of each PodGang, and what is above them in a hierarchy."""

    mapping_failed = "KubeBackendMappingFailed"
    answers = True
    are_built_in = True
    kinds = (kinds.WORKLOAD, kinds.COMPOSITE_POD_GROUP, kinds.POD_GROUP)

    def __init__(self, *, trees: bool) -> None:
        """`trees`: whether the cluster serves hierarchies of groups."""
        self._trees = trees

    def annotations_for(self, spec: Body, gang: GangFacts) -> Mapping[str, str]:
        """The record of the gang's form, and of the API server's refusal of topology; none if its pods are placed one by one."""
        form = self._form({"spec": spec}, gang, constraints_of(spec, gang))
        topology = {labels.GANG_TOPOLOGY: labels.UNSUPPORTED} if lacks_topology(gang) else {}
        return {labels.GANG_FORM: form.value, **topology} if form is not Form.PODS else {}

    def plan_for(self, podgang: Body, gang: GangFacts, metadata: SetMetadata) -> GangPlan:
        """The groups of the gang, and the group of each member. No object if its pods are placed one by one."""
        constraints = constraints_of(podgang["spec"], gang)
        form = self._form(podgang, gang, constraints)
        if form is Form.PODS:
            return GangPlan()
        if is_unsupported := constraints.requires and lacks_topology(gang):
            constraints = replace(constraints, key="", bundles=(), of_cliques={})
        tree = GangTree(podgang, gang, constraints)
        groups = [_as_observed(group, gang) for group in (tree.groups if form is Form.HIERARCHY else (flat(gang, constraints),))]
        above, kept = self._above(tree) if form is Form.HIERARCHY else ((), ())
        gate = _gate(groups, gang)
        terms = affinity(gang, constraints, is_tree=form is Form.HIERARCHY)
        placements = {
            clique.name: _placement(clique, each.group, gate, terms[clique.name]) for each in groups for clique in each.group.cliques
        }
        unanswered = UNANSWERED.format(group=groups[0].group.id.name) if gang.is_unanswered else ""
        objects = (*above, *kept, *(_pod_group(each, podgang, gang) for each in groups))
        notes = (NO_TOPOLOGY,) if is_unsupported else (*self._notes(form, tree), *_notes_on_topology(groups))
        notes = (*notes, *_notes_on_groups(groups), *(PARENT_STAYS.format(group=each.id.name) for each in kept if each.id is not None))
        return GangPlan(objects, placements, notes, unanswered)

    def remark(self, podgang: Live, pods: Iterable[Live]) -> str:
        """How pods of a gang that needs several are placed that have no group, or groups without the parents that they name."""
        form = recorded_form(GangFacts(podgang.id, podgang, {}, (), tuple(pods)))
        groups = mappings(get(podgang.body, PODGROUPS))
        if sum(count(group.get("minReplicas")) for group in groups) <= 1:
            return ""
        return ONE_BY_ONE if form is Form.PODS else WITHOUT_PARENTS if form is Form.HIERARCHY and not self._trees else ""

    def answer(self, gang: GangFacts) -> GangAnswer | None:
        """The first refusal among the groups of a gang; without one that all fit, once the scheduler has said so of each."""
        groups = _groups_of(gang)
        answers = [answer for group in groups if group is not None and (answer := answer_of(group)) is not None]
        refusal = next((answer for answer in answers if not answer.is_scheduled), None)
        return refusal or (answers[0] if answers and len(answers) == len(groups) else None)

    def unanswered_since(self, gang: GangFacts) -> datetime | None:
        """The time since which all members exist and no group has a condition; None if one has, or if a member is or was gated."""
        groups = _groups_of(gang)
        members = [pod for clique in gang.cliques for pod in clique.pods if group_of(pod)]
        exist = [group for group in groups if group is not None]
        has_all = bool(exist) and len(exist) == len(groups) and len(members) >= sum(map(minimum_of, exist))
        if not has_all or any(answer_of(group) is not None for group in exist) or any(map(_is_or_was_gated, members)):
            return None
        return max(live.created_at for live in (*exist, *members))

    def _above(self, tree: GangTree) -> tuple[tuple[GangObject, ...], tuple[GangObject, ...]]:
        """What is above the groups of a hierarchy, and what of it was required earlier. Its Workload alone where parents are not served:

        the API server keeps them unseen, and kube-scheduler goes by the groups alone.
        """
        if self._trees:
            return tuple(tree.objects()), tuple(tree.kept())
        return (tree.workload(),), ()

    def _form(self, podgang: Body, gang: GangFacts, constraints: Constraints) -> Form:
        """Its form, or if it has none the one that it gets: a hierarchy only where one group does not say what it requires."""
        if (form := recorded_form(gang)) is not None:
            return form
        is_tree = self._trees and constraints.is_nested and GangTree(podgang, gang, constraints).fits
        return Form.HIERARCHY if is_tree else Form.FLAT

    def _notes(self, form: Form, tree: GangTree) -> Iterator[str]:
        """The constraints that have no effect."""
        if tree.constraints.prefers:
            yield NO_PREFERENCE
        if tree.constraints.overlaps:
            yield OVERLAPPING
        if form is Form.FLAT and tree.constraints.is_nested:
            why = UNSERVED if not self._trees else TOO_LARGE if not tree.fits else CREATED_FLAT
            yield ONE_LEVEL.format(why=why)


def recorded_form(gang: GangFacts) -> Form | None:
    """The form that a gang has: by its record, else by its pods; None if it has neither."""
    record = annotations_of(gang.live.body).get(labels.GANG_FORM) if gang.live is not None else None
    if record in (Form.FLAT, Form.HIERARCHY):
        return Form(record)
    pods = (*gang.pods, *(pod for clique in gang.cliques for pod in clique.pods))
    if not pods:
        return None
    names = {group_of(pod) for pod in pods} - {""}
    if not names:
        return Form.PODS
    return Form.FLAT if gang.id.name in names else Form.HIERARCHY


def lacks_topology(gang: GangFacts) -> bool:
    """Whether the API server does not take the topology constraints of the gang, or did not when its objects were created."""
    record = annotations_of(gang.live.body).get(labels.GANG_TOPOLOGY) if gang.live is not None else None
    return record == labels.UNSUPPORTED or _is_topology_dropped(gang) or any(map(_is_topology_refused, gang.failed_calls))


def _is_topology_dropped(gang: GangFacts) -> bool:
    """Whether the group has been created without the constraint that the PodGang, which has never changed, requires of it."""
    group = gang.objects.get(kinds.POD_GROUP.id(gang.id.namespace, gang.id.name))
    if gang.live is None or group is None or get(gang.live.body, ("metadata", "generation")) != 1 or key_of(group):
        return False
    return bool(constraints_of(mapping(gang.live.body.get("spec")), replace(gang, islands=())).key)


def _is_topology_refused(call: FailedCall) -> bool:
    if not isinstance(call.error, Invalid):
        return False
    causes = mappings(mapping(call.error.status.get("details")).get("causes"))
    return any(cause.get("reason") == FORBIDDEN and str(cause.get("field")).endswith(".schedulingConstraints") for cause in causes)


def _groups_of(gang: GangFacts) -> Sequence[Live | None]:
    """The PodGroups of a gang as they exist; none if its pods are placed one by one."""
    form = recorded_form(gang)
    if form is None or form is Form.PODS:
        return ()
    groups = [gang.id.name] if form is Form.FLAT else [names.clique_group(clique.name) for clique in gang.cliques]
    return [gang.objects.get(kinds.POD_GROUP.id(gang.id.namespace, name)) for name in groups]


def answer_of(group: Live) -> GangAnswer | None:
    """What the scheduler says of a PodGroup: its condition; None if it has said nothing."""
    condition = find(mappings(mapping(group.body.get("status")).get("conditions")), INITIALLY_SCHEDULED)
    if condition is None:
        return None
    return GangAnswer(
        condition.get("status") == "True", str(condition.get("reason") or "Unschedulable"), str(condition.get("message") or "")
    )


class _ObservedGroup(Struct, frozen=True):
    """A group, and what exists of it."""

    group: KubeGroup
    live: Live | None
    members: Sequence[Live]
    """The pods that carry it."""
    minimum: int
    """Its `minCount`."""
    attainable: int
    """How many pods carry it once all exist."""


def _as_observed(group: KubeGroup, gang: GangFacts) -> _ObservedGroup:
    attainable = group.attainable
    return _ObservedGroup(group, gang.objects.get(group.id), group.members, _minimum(group, attainable), attainable)


def _minimum(group: KubeGroup, attainable: int) -> int:
    """`minCount`: the sum of the minimums, but no more than what carries the group, or will: other pods cannot join it.

    It is raised before new members are created, or the first of them would get a node without the others. It is lowered with a clique that
    has fewer replicas than its minimum.
    """
    return max(1, min(sum(clique.minimum for clique in group.cliques), attainable))


def _pod_group(observed: _ObservedGroup, podgang: Body, gang: GangFacts) -> GangObject:
    """The object of a group."""
    group, policy = observed.group, {"schedulingPolicy": {"gang": {"minCount": observed.minimum}}}
    spec = {**policy, **group.fields, **topology(group.key), **priority(podgang)}
    body = manifest(kinds.POD_GROUP, group.id.namespace, group.id.name, podgang["metadata"]["labels"], spec=spec)
    return GangObject(body, POLICY, id=group.id, own_reasons=((MINIMUM, _why_minimum(observed, gang)),))


def _why_minimum(observed: _ObservedGroup, gang: GangFacts) -> Reason:
    """Why `minCount` changes: the template has another minimum, a clique was below it or is, or other pods carry the group."""
    groups = mappings(get(gang.live.body, PODGROUPS)) if gang.live is not None else ()
    before = {str(group.get("name")): (group.get("minReplicas"), len(list(mappings(group.get("podReferences"))))) for group in groups}
    known = [(clique, *before[clique.name]) for clique in observed.group.cliques if clique.name in before]
    if any(minimum != clique.minimum for clique, minimum, _ in known):
        return Reason.TEMPLATE_CHANGED
    if observed.live is not None and observed.minimum < minimum_of(observed.live):
        is_scaled = any(clique.is_kept and len(clique.pods) + len(clique.new) < clique.minimum for clique, *_ in known)
        return Reason.SCALED_IN if is_scaled else Reason.PODS_CHANGED
    return Reason.SCALED_OUT if any(listed < clique.minimum for clique, _, listed in known) else Reason.PODS_CHANGED


def _gate(groups: Sequence[_ObservedGroup], gang: GangFacts) -> str:
    """Why pods beyond the minimum must not be scheduled yet; empty if they may.

    Members are counted, whatever the condition of the group says: that stays True when members are lost. A scheduler that says nothing
    does not place members first, so nothing is gained by waiting for them. Nor is it by waiting for a group that no pod will carry.
    """
    if gang.is_unanswered:
        return ""
    for group in groups:
        bound = sum(bool(get(pod.body, ("spec", "nodeName"))) for pod in group.members)
        if bound < min(group.minimum, group.attainable):
            return f"{bound} of the {group.minimum} pods that gang {gang.id.name} needs are scheduled; pods beyond them wait"
    return ""


def _notes_on_topology(groups: Sequence[_ObservedGroup]) -> Iterator[str]:
    """Where groups that exist have another topology than the PodGang, which cannot change."""
    for observed in groups:
        group, live = observed.group, observed.live
        if live is not None and (key := key_of(live)) != group.key:
            has = f"keeps its pods to one {key}" if key else "has no topology constraint"
            wanted = f"one {group.key} is" if group.key else "none is"
            yield TOPOLOGY_DIFFERS.format(group=group.id.name, has=has, wanted=wanted)


def _notes_on_groups(groups: Sequence[_ObservedGroup]) -> Iterator[str]:
    """What else groups that exist have otherwise than the PodGang: they are being deleted, or their minimum is not reached yet."""
    for observed in groups:
        if (live := observed.live) is None:
            continue
        group = observed.group
        exist = sum(min(clique.minimum, len(clique.pods) + len(clique.new)) for clique in group.cliques if clique.is_kept)
        if live.deleting_since is not None:
            yield TERMINATING.format(group=group.id.name)
        if observed.minimum < exist:
            yield MINIMUM_DIFFERS.format(group=group.id.name, minimum=observed.minimum, wanted=exist)


def _placement(clique: CliqueOfGang, group: KubeGroup, gate: str, terms: tuple[Body, ...]) -> CliquePlacement:
    return CliquePlacement(member={GROUP_FIELD: {"podGroupName": group.id.name}}, members=clique.minimum, gate=gate, affinity=terms)


def minimum_of(group: Live) -> int:
    """The `minCount` of an existing PodGroup; 0 if it has none."""
    minimum = get(group.body, MINIMUM)
    return minimum if isinstance(minimum, int) else 0


def _is_or_was_gated(pod: Live) -> bool:
    """Whether a pod is gated, or was and the scheduler has not looked at it since."""
    scheduled = find(mappings(mapping(pod.body.get("status")).get("conditions")), "PodScheduled") or {}
    return bool(get(pod.body, ("spec", "schedulingGates"))) or scheduled.get("reason") == "SchedulingGated"
