"""PodGangs: what must be scheduled together. One base gang for each replica, one more for each group replica beyond the minimum."""

from collections.abc import Iterator
from typing import Any

from engine.resource import Policy, Resource
from resources import kinds, labels
from resources.manifest import manifest
from resources.status import podgang as status
from resources.view import CliqueView, GangView, View

POLICY = Policy(exact=(("spec", "podgroups"),), owned=(("spec", "priorityClassName"),))


def render(view: View) -> Iterator[Resource]:
    """The gangs of a replica. A gang names its pods before they are made: their names are known."""
    for gang in view.gangs:
        yield _podgang(view, gang)


def _podgang(view: View, gang: GangView) -> Resource:
    spec: dict[str, Any] = {"podgroups": [_pod_group(view, *group) for group in gang.groups]}
    if view.template.priority_class:
        spec["priorityClassName"] = view.template.priority_class
    body = manifest(
        kinds.PODGANG,
        view.namespace,
        gang.id.name,
        {**view.template.gang_labels, **labels.child(view.root, "podgang"), labels.SCHEDULER_NAME: _scheduler(view)},
        annotations=view.template.gang_annotations,
        spec=spec,
    )
    what = "base gang" if gang.is_base else "scaled gang"
    return Resource(gang.id, body, f"{what} of replica {view.index}", (view.owner,), policy=POLICY, status=status.of(view, gang))


def _scheduler(view: View) -> str:
    named = (clique.scheduler for clique in view.template.cliques if clique.scheduler)
    return next(named, view.setup.default_scheduler)


def _pod_group(view: View, name: str, minimum: int, clique: CliqueView | None) -> dict[str, Any]:
    return {"name": name, "minReplicas": minimum, "podReferences": _references(view, clique) if clique else []}


def _references(view: View, clique: CliqueView) -> list[dict[str, str]]:
    if not view.stays(clique):
        return []
    seated = [pod.name for pod in clique.seating.kept] + [seat.name for seat in clique.seating.fresh]
    return [{"namespace": view.namespace, "name": name} for name in sorted(seated)]
