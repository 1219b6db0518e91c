"""PodGangs: the pods to schedule together. One base gang for each replica, and a scaled gang for each group replica beyond minAvailable."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from engine.answer import FailedCall
from engine.observed import Live
from engine.paths import get, overlay
from engine.plan import Alarm
from engine.reason import Because, Reason
from engine.resource import Body, Hold, Policy, Want
from engine.verb import Verb
from resources.base import kinds, labels, names
from resources.base.fields import annotations_of, manifest, mappings
from resources.children import absence
from resources.children.child_kind import DeletionGroup, EventTexts, unexpected
from resources.children.podclique import deleted_by_user, scaled_in
from resources.domains.placement import required_islands
from resources.model.epochs import is_epoch_name, is_of_epoch
from resources.model.gang_scheduling import gang_objects, gang_of, pods_of_gang, scheduler_name
from resources.model.growth_limit import KEPT
from resources.model.topology import Constraint
from resources.model.view import CliqueView, GangView, View
from resources.ports.scheduler import CliqueOfGang, GangAnswer, GangFacts, Island
from resources.status import podgang as status

TAKEN_OVER: Final = DeletionGroup(Because(Reason.TAKEN_OVER, "the set is taken over from another release of Grove"))
TERMINATION = ("metadata", "annotations", labels.GANG_TERMINATION)
CONSTRAINT, GROUP_CONSTRAINTS = "topologyConstraint", "topologyConstraintGroupConfigs"
POLICY = Policy(
    exact=(("spec", "podgroups"), ("spec", CONSTRAINT), ("spec", GROUP_CONSTRAINTS)),
    owned=(("spec", "priorityClassName"), ("spec", CONSTRAINT), ("spec", GROUP_CONSTRAINTS)),
)

MOST_BYTES: Final = 1_536 * 1024
"""The size of the largest object that an API server stores, as etcd is configured by default (`--max-request-bytes`)."""
OTHER_BYTES: Final = 32 * 1024
"""What is kept free for everything in a PodGang but its pods: labels, constraints, conditions, managed fields."""
BYTES_PER_POD: Final = len('{"namespace":"","name":""},')
"""Bytes of a reference to a pod besides the names of the pod and its namespace."""
LONGEST_NAMES: Final = 63 + 63
"""Characters of a namespace and a pod's name (N1)."""
CERTAINLY_FIT: Final = (MOST_BYTES - OTHER_BYTES) // (BYTES_PER_POD + LONGEST_NAMES)
"""The number of pods that fit into a PodGang, whatever their names are."""

MOST_PODS: Final = MOST_BYTES // (BYTES_PER_POD + len("n") + len("s-0-c-abcde"))
"""More pods than these fit into no PodGang, however short their names are."""

_WRITTEN = EventTexts(
    "PodGangCreateOrUpdateSuccessful",
    "Created/Updated PodGang {key}",
    "PodGangCreateOrUpdateFailed",
    "Error Creating/Updating PodGang {key}: {error}",
)
EVENTS = {
    (kinds.PODCLIQUESET, Verb.CREATE): _WRITTEN,
    (kinds.PODCLIQUESET, Verb.PATCH): _WRITTEN,
    (kinds.PODCLIQUESET, Verb.DELETE): EventTexts(
        "PodGangDeleteSuccessful", "Deleted PodGang {key}", "PodGangDeleteFailed", "Error deleting PodGang {key}: {error}"
    ),
}


def render(view: View) -> Iterator[Want | Hold]:
    """The gangs of a replica. A gang refers to its pods before they exist: their names are computed."""
    for gang in view.gangs:
        yield _podgang(view, gang)


def _podgang(view: View, gang: GangView) -> Want | Hold:
    topology = view.template.topology
    if topology.blocker and gang.live is None:
        why = f"its topology constraints are not known: {topology.blocker}"
        return Hold(gang.id, why, (view.owner,), blocked=True)
    if too_large := size_blocker(view, gang):
        return Hold(gang.id, too_large, (view.owner,), blocked=True)
    why = f"{'base' if gang.is_base else 'scaled'} gang of replica {view.index}"
    follows = absence.follows_pods(view, gang)
    return Want(
        gang.id,
        why,
        (view.owner,),
        body=_with_termination(view, gang, bodies(view)[gang.id.name]),
        policy=POLICY,
        status=status.of(view, gang, answer_on(view, gang)),
        provisional=status.is_coming_up(gang),
        own_reasons=((("spec", "podgroups"), follows), (TERMINATION, follows)),
        reason=absence.of_gang(view, gang),
    )


def answer_on(view: View, gang: GangView) -> GangAnswer | None:
    """What the scheduler has answered for a gang; None without an answer."""
    gangs = gang_objects(view.template, view.configuration)
    return gangs.answer(gang_facts(view, gang)) if gangs is not None and gangs.answers else None


def _with_termination(view: View, gang: GangView, body: dict[str, Any]) -> dict[str, Any]:
    """The manifest, annotated if the gang is being terminated. The annotation stays until all pods exist: it explains missing cliques."""
    is_removed = any(
        because.reason is Reason.GANG_TERMINATED for name, *_ in gang.groups if (because := view.removals.cliques.get(name)) is not None
    )
    is_left = absence.is_terminated(gang.live) and not status.has_all_pods(gang)
    annotation = {"metadata": {"annotations": {labels.GANG_TERMINATION: labels.IN_PROGRESS}}}
    return overlay(body, annotation) if is_removed or is_left else body


@lru_cache(maxsize=1)
def bodies(view: View) -> Mapping[str, dict[str, Any]]:
    """PodGang name -> its manifest. Cached because the scheduler's objects for the gangs are made from it."""
    return {gang.id.name: _body(view, gang) for gang in view.gangs}


def _body(view: View, gang: GangView) -> dict[str, Any]:
    clique_constraints = dict(_clique_constraints(view, gang))
    groups = sorted(gang.groups, key=_position(gang))
    spec: dict[str, Any] = {"podgroups": [_pod_group(view, *group, clique_constraints.get(group[0])) for group in groups]}
    if gang_constraint := _gang_constraint(view, gang):
        spec[CONSTRAINT] = gang_constraint
    if group_constraints := list(_group_constraints(view, gang)) if gang.is_base else []:
        spec[GROUP_CONSTRAINTS] = group_constraints
    if view.template.priority_class:
        spec["priorityClassName"] = view.template.priority_class
    gangs = gang_objects(view.template, view.configuration)
    return manifest(
        kinds.PODGANG,
        view.namespace,
        gang.id.name,
        {
            **view.template.gang_labels,
            **labels.child(view.root, "podgang"),
            labels.SCHEDULER_NAME: scheduler_name(view.template, view.configuration),
        },
        annotations={
            **view.template.gang_annotations,
            **(gangs.annotations_for(spec, gang_facts(view, gang)) if gangs is not None else _form(gang)),
            **({labels.TOPOLOGY_NAME: view.template.topology.name} if _is_constrained(spec) else {}),
            **_record(view, gang),
        },
        spec=spec,
    )


def _form(gang: GangView) -> dict[str, str]:
    """How a gang was expressed for a scheduler that has no objects for gangs now: it stays recorded while the gang lives."""
    form = annotations_of(gang.live.body).get(labels.GANG_FORM) if gang.live is not None else None
    return {labels.GANG_FORM: form} if isinstance(form, str) else {}


def _record(view: View, gang: GangView) -> dict[str, str]:
    """The record of a base gang (N24). A gang of another operator gets it when the set is edited, because only then it counts."""
    record = view.template.gang_record if gang.is_base else ""
    is_ours = gang.live is None or labels.DOMAIN_MEMBERSHIP in annotations_of(gang.live.body)
    return {labels.DOMAIN_MEMBERSHIP: record} if record and (is_ours or view.template.is_edited) else {}


def _pod_group(view: View, name: str, minimum: int, clique: CliqueView | None, constraint: Constraint | None) -> dict[str, Any]:
    group = {"name": name, "minReplicas": minimum, "podReferences": _references(view, clique) if clique else []}
    return group | {CONSTRAINT: constraint} if constraint else group


def size_blocker(view: View, gang: GangView) -> str:
    """Why the PodGang cannot list its pods; empty if it can, or if it lists as many already."""
    pods = _pods(gang)
    if pods <= CERTAINLY_FIT or pods <= listed_pods(gang) or (size := _bytes(view, gang)) <= MOST_BYTES - OTHER_BYTES:
        return ""
    return (
        f"its {pods} pods take {size / 1024 / 1024:.1f} MiB in one PodGang, and an API server stores at most {MOST_BYTES / 1024 / 1024:g} "
        "MiB of one object: ask for fewer pods in a replica, or put them into a scaling group with a smaller minAvailable"
    )


def too_large(view: View) -> Mapping[str, str]:
    """PodGang name -> why it cannot list its pods, for those that cannot."""
    return {gang.id.name: why for gang in view.gangs if (why := size_blocker(view, gang))}


def alarms(view: View) -> Iterator[Alarm]:
    """One alarm for each PodGang that cannot list its pods."""
    for name, why in too_large(view).items():
        about = kinds.PODGANG.id(view.namespace, name) if kinds.PODGANG.id(view.namespace, name) in view.lives.objects else None
        yield Alarm("PodGangTooLarge", f"PodGang {view.namespace}/{name}: {why}", blocking=True, about=about)


def _position(gang: GangView) -> Callable[[tuple[str, int, CliqueView | None]], int]:
    """The key that keeps pod groups in the order of the live PodGang, new ones last: the order means nothing to schedulers."""
    listed = mappings(get(gang.live.body, ("spec", "podgroups"))) if gang.live is not None else ()
    places = {str(group.get("name")): number for number, group in enumerate(listed)}
    return lambda group: places.get(group[0], len(places))


def listed_pods(gang: GangView) -> int:
    """How many pods the live PodGang lists; 0 without one."""
    if gang.live is None:
        return 0
    groups = (gang.live.body.get("spec") or {}).get("podgroups") or ()
    return sum(len(group.get("podReferences") or ()) for group in groups)


def _pods(gang: GangView) -> int:
    return sum(clique.replicas for clique in gang.cliques)


def _bytes(view: View, gang: GangView) -> int:
    """How many bytes the references to the pods of the gang take."""
    fixed = BYTES_PER_POD + len(view.namespace)
    return sum(fixed + len(name) for clique in gang.cliques for name in _listed(clique))


def _clique_constraints(view: View, gang: GangView) -> Iterator[tuple[str, Constraint | None]]:
    """PodClique name -> topology constraint, for the pod groups of a gang. Some pod groups of a base gang have no clique now."""
    of_cliques = view.template.topology.of_cliques
    if not of_cliques:
        return
    if not gang.is_base:
        yield from ((clique.name, of_cliques.get(clique.clique.name)) for clique in gang.cliques)
        return
    for clique in view.template.standalone:
        yield names.podclique(view.root, view.index, clique.name), of_cliques.get(clique.name)
    for group in view.groups:
        for replica in range(group.group.min_available):
            for clique in group.group.cliques:
                yield names.member(group.name, replica, clique.name), of_cliques.get(clique.name)


def _gang_constraint(view: View, gang: GangView) -> Constraint | None:
    """A base gang has the constraint of the set; a scaled one that of its group or, if the group has none, of the set."""
    topology = view.template.topology
    group = None if gang.is_base else next(clique.group for clique in gang.cliques)
    return topology.of_groups.get(group.group.name, topology.of_set) if group else topology.of_set


def _group_constraints(view: View, gang: GangView) -> Iterator[dict[str, Any]]:
    """One entry of a base gang for each replica of a scaling group with a topology constraint."""
    of_groups = view.template.topology.of_groups
    pod_groups = {name for name, *_ in gang.groups} if of_groups else set[str]()
    for group in view.groups:
        for replica in range(group.group.min_available) if group.group.name in of_groups else ():
            members = [names.member(group.name, replica, clique.name) for clique in group.group.cliques]
            entry = {"name": f"{group.name}-{replica}", "podGroupNames": members}
            constraint = of_groups[group.group.name]
            if pod_groups.issuperset(members):
                yield entry | {CONSTRAINT: constraint} if constraint else entry


def _is_constrained(spec: Body) -> bool:
    return CONSTRAINT in spec or any(CONSTRAINT in entry for entry in (*spec.get(GROUP_CONSTRAINTS, ()), *spec["podgroups"]))


def _references(view: View, clique: CliqueView) -> list[dict[str, str]]:
    """The pods of a clique, sorted by name: serving and new ones. Empty while the clique is deleted."""
    if not view.keeps(clique):
        return []
    return [{"namespace": view.namespace, "name": name} for name in sorted(_listed(clique))]


def _listed(clique: CliqueView) -> list[str]:
    """The names of the pods of a clique that its gang lists."""
    return [*(pod.name for pod in clique.assignment.kept), *(pod.name for pod in clique.assignment.new)]


def obsolete(view: View, live: Live) -> DeletionGroup | str:
    """A scaled gang is deleted with its replica of the scaling group: gang 0 is that of the first replica beyond minAvailable.

    A gang of an epoch, or the scheduler's object for one, is kept until the engine's PodGangs have its cliques and pods (M20).
    """
    if is_of_epoch(view.template.id, live, view.lives):
        return _obsolete_of_epoch(view, live)
    name = gang_of(live)
    for group in view.groups:
        number = name.removeprefix(f"{group.name}-")
        if number.isascii() and number.isdigit():
            if group.live is not None and group.terminating:
                return deleted_by_user(group.live)
            index = int(number) + group.group.min_available
            is_kept = group.is_beyond_limits(index) and any(
                kinds.PODCLIQUE.id(view.namespace, names.member(group.name, index, clique.name)) in view.lives.objects
                for clique in group.group.cliques
            )
            return KEPT if is_kept else scaled_in(view, group, index)
    return unexpected(f"the template has no gang {name}")


def _obsolete_of_epoch(view: View, live: Live) -> DeletionGroup | str:
    if missing := _missing_gang(view):
        return missing
    user = next((user for user, gang in _gangs_of_users(view) if gang == live.id.name), "")
    return f"it is kept until {user} is in a PodGang of the engine" if user else TAKEN_OVER


def obsolete_map(view: View, live: Live) -> DeletionGroup | str:
    """A PodGangMap goes last: as long as it exists, an interrupted take-over is known as one. One that is left when the set is given back
    would tell the other release that it has made the engine's PodGangs (M21)."""
    if missing := _missing_gang(view):
        return missing
    root = view.template.id
    if gang := next((gang for gang in view.lives.of(kinds.PODGANG.name) if is_of_epoch(root, gang, view.lives)), None):
        return f"it is kept until PodGang {gang.id.name} is gone"
    user = next((user for user, gang in _gangs_of_users(view) if is_epoch_name(root, gang, view.lives)), "")
    return f"it is kept until {user} is in a PodGang of the engine" if user else TAKEN_OVER


def _missing_gang(view: View) -> str:
    """Why nothing of an epoch is deleted yet: a PodGang that takes its place does not exist; empty if all do."""
    return next((f"it is kept until PodGang {gang.id.name} exists" for gang in view.gangs if gang.live is None), "")


def _gangs_of_users(view: View) -> Iterator[tuple[str, str]]:
    """Each clique and pod of the replica with the name of its PodGang."""
    for kind in (kinds.PODCLIQUE.name, kinds.POD.name):
        yield from ((f"{kind} {live.id.name}", live.labels.get(labels.PODGANG, "")) for live in view.lives.of(kind))


def gang_facts(view: View, gang: GangView) -> GangFacts:
    """The facts about one PodGang of a replica and its pods that a scheduler back end gets."""
    return _facts_of_gangs(view)[gang.id.name]


@lru_cache(maxsize=1)
def _facts_of_gangs(view: View) -> Mapping[str, GangFacts]:
    failed_calls: dict[str, list[FailedCall]] = {}
    for call in view.failed_calls:
        if call.parent is not None and call.parent[0] == kinds.PODGANG.name:
            failed_calls.setdefault(call.parent[1], []).append(call)
    return {gang.id.name: _facts(view, gang, tuple(failed_calls.get(gang.id.name, ()))) for gang in view.gangs}


def _facts(view: View, gang: GangView, failed_calls: tuple[FailedCall, ...]) -> GangFacts:
    return GangFacts(
        gang.id,
        gang.live,
        view.lives.objects,
        tuple(_clique_of(view, name, minimum, clique) for name, minimum, clique in gang.groups),
        tuple(pod for pod in pods_of_gang(gang.id.name, view.lives) if pod.deleting_since is None),
        tuple(Island(key, frozenset(members)) for key, members in required_islands(view, gang.cliques).values()),
        is_unanswered=gang.id.name in view.unanswered,
        failed_calls=failed_calls,
    )


def _clique_of(view: View, name: str, minimum: int, clique: CliqueView | None) -> CliqueOfGang:
    if clique is None:
        return CliqueOfGang(name, minimum)
    pods, new = clique.assignment.kept, clique.assignment.new
    return CliqueOfGang(name, minimum, tuple(pod.live for pod in pods), tuple(pod.index for pod in new), view.keeps(clique))
