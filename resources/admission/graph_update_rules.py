"""Graph update rules: what is forbidden, and what is announced, when a DynamoGraphDeployment changes."""

from collections.abc import Iterator
from typing import Final

from engine.report.printable import counted
from resources.admission.graph_rules import quote, sentence
from resources.dynamo.model.graph import ENABLE_GROVE, KAI_QUEUE, InferenceGraph
from resources.dynamo.model.names import set_name
from resources.schema.issues import Issue

BACKEND: Final = ("spec", "backendFramework")
REMEDY: Final = 'sync does it only with --allow-replace or the annotation engine.grove.io/allow-replace: "true"'


def issues(old: InferenceGraph, new: InferenceGraph) -> Iterator[Issue]:
    """The forbidden changes from `old` to `new`."""
    if _is_other_backend(old, new):
        yield sentence(BACKEND, "spec.backendFramework is immutable and cannot be changed after creation")


def warnings(old: InferenceGraph, new: InferenceGraph, *, replaces_set: bool) -> Iterator[str]:
    """Warnings about changes after which pods are replaced together. `replaces_set`: the PodCliqueSet must be replaced."""
    if _is_other_backend(old, new):
        yield "Changing spec.backendFramework may cause unexpected behavior"
    if old.may_use_grove != new.may_use_grove:
        yield f"changing the annotation {ENABLE_GROVE} may change what runs the services, which replaces all of their pods: {REMEDY}"
    elif replaces_set:
        yield f"this change replaces the PodCliqueSet {quote(set_name(old))} and restarts all of its pods: {_reason(old, new)}; {REMEDY}"
    elif new.may_use_grove and _named_queue(old) != _named_queue(new):
        yield f"changing the annotation {KAI_QUEUE} restarts pods that KAI schedules, and PodGroups that exist keep their queue"


def _reason(old: InferenceGraph, new: InferenceGraph) -> str:
    """What changed that a PodCliqueSet cannot follow."""
    before, after = ({service.name: service for service in graph.services} for graph in (old, new))
    added = [f"service {quote(name)} is added" for name in after if name not in before]
    removed = [f"service {quote(name)} is removed" for name in before if name not in after]
    both = [(before[name], after[name]) for name in after if name in before]
    nodes = [f"{quote(a.name)} has {counted(b.nodes, 'node')} instead of {a.nodes}" for a, b in both if a.nodes != b.nodes]
    scaled = [
        f"{quote(a.name)} is scaled {'up from' if b.replicas else 'down to'} 0" for a, b in both if bool(a.replicas) != bool(b.replicas)
    ]
    return ", ".join([*added, *removed, *nodes, *scaled]) or "it changes fields that a PodCliqueSet keeps as they are"


def _named_queue(graph: InferenceGraph) -> str:
    return graph.annotations.get(KAI_QUEUE, "").strip()


def _is_other_backend(old: InferenceGraph, new: InferenceGraph) -> bool:
    return old.spec.backend_framework != new.spec.backend_framework
