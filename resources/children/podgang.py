"""PodGangs: the pods to schedule together. One base gang for each replica, and a scaled gang for each group replica beyond minAvailable."""

from collections.abc import Iterator
from typing import Any

from engine.resource import Body, Policy, Resource, Stance
from resources.base import kinds, labels, names
from resources.base.manifest import manifest
from resources.model.topology import Constraint
from resources.model.view import CliqueView, GangView, View
from resources.status import podgang as status

WHOLE, PARTS = "topologyConstraint", "topologyConstraintGroupConfigs"
POLICY = Policy(
    exact=(("spec", "podgroups"), ("spec", WHOLE), ("spec", PARTS)),
    owned=(("spec", "priorityClassName"), ("spec", WHOLE), ("spec", PARTS)),
)


def render(view: View) -> Iterator[Resource]:
    """The gangs of a replica. A gang refers to its pods before they exist: their names are computed."""
    for gang in view.gangs:
        yield _podgang(view, gang)


def _podgang(view: View, gang: GangView) -> Resource:
    topology = view.template.topology
    if topology.blocker and gang.live is None:
        why = f"its topology constraints are not known: {topology.blocker}"
        return Resource(gang.id, {}, why, (view.owner,), stance=Stance.HOLD, blocked=True)
    constraints = dict(_constraints(view))
    spec: dict[str, Any] = {"podgroups": [_pod_group(view, *group, constraints.get(group[0])) for group in gang.groups]}
    if whole := _whole(view, gang):
        spec[WHOLE] = whole
    if parts := list(_parts(view)) if gang.is_base else []:
        spec[PARTS] = parts
    if view.template.priority_class:
        spec["priorityClassName"] = view.template.priority_class
    body = manifest(
        kinds.PODGANG,
        view.namespace,
        gang.id.name,
        {**view.template.gang_labels, **labels.child(view.root, "podgang"), labels.SCHEDULER_NAME: _scheduler(view)},
        annotations={**view.template.gang_annotations, **({labels.TOPOLOGY_NAME: topology.name} if _is_constrained(spec) else {})},
        spec=spec,
    )
    why = f"{'base' if gang.is_base else 'scaled'} gang of replica {view.index}"
    return Resource(gang.id, body, why, (view.owner,), policy=POLICY, status=status.of(view, gang))


def _scheduler(view: View) -> str:
    schedulers = (clique.scheduler for clique in view.template.cliques if clique.scheduler)
    return next(schedulers, view.configuration.default_scheduler)


def _pod_group(view: View, name: str, minimum: int, clique: CliqueView | None, constraint: Constraint | None) -> dict[str, Any]:
    group = {"name": name, "minReplicas": minimum, "podReferences": _references(view, clique) if clique else []}
    return group | {WHOLE: constraint} if constraint else group


def _constraints(view: View) -> Iterator[tuple[str, Constraint | None]]:
    """PodClique name -> topology constraint."""
    of_cliques = view.template.topology.of_cliques
    for clique in view.template.standalone if of_cliques else ():
        yield names.podclique(view.root, view.index, clique.name), of_cliques.get(clique.name)
    for group in view.groups if of_cliques else ():
        for replica in range(max(group.replicas, group.group.min_available)):
            for clique in group.group.cliques:
                yield names.member(group.name, replica, clique.name), of_cliques.get(clique.name)


def _whole(view: View, gang: GangView) -> Constraint | None:
    """A base gang has the constraint of the set; a scaled one that of its group or, if the group has none, of the set."""
    topology = view.template.topology
    group = None if gang.is_base else next(clique.group for clique in gang.cliques)
    return topology.of_groups.get(group.group.name, topology.of_set) if group else topology.of_set


def _parts(view: View) -> Iterator[dict[str, Any]]:
    """One entry of a base gang for each replica of a scaling group with a topology constraint."""
    of_groups = view.template.topology.of_groups
    for group in view.groups:
        for replica in range(group.group.min_available) if group.group.name in of_groups else ():
            members = [names.member(group.name, replica, clique.name) for clique in group.group.cliques]
            part = {"name": f"{group.name}-{replica}", "podGroupNames": members}
            constraint = of_groups[group.group.name]
            yield part | {WHOLE: constraint} if constraint else part


def _is_constrained(spec: Body) -> bool:
    return WHOLE in spec or any(WHOLE in part for part in (*spec.get(PARTS, ()), *spec["podgroups"]))


def _references(view: View, clique: CliqueView) -> list[dict[str, str]]:
    if not view.keeps(clique):
        return []
    pods = [pod.name for pod in clique.assignment.kept] + [pod.name for pod in clique.assignment.new]
    return [{"namespace": view.namespace, "name": name} for name in sorted(pods)]
