"""Graph records: what is decided once for a graph and then kept: the form of its pods, and what runs it. It has them as annotations."""

from collections.abc import Iterator, Mapping
from typing import Final

from engine.memo import is_equal
from engine.observed import Observed
from engine.report.printable import printable
from engine.resource import Body
from resources.base import kinds, labels
from resources.base.fields import annotations_of
from resources.dynamo.model.form import PROVIDER, PodForm, form_of
from resources.dynamo.model.graph import ENABLE_GROVE, InferenceGraph, Orchestrator
from resources.dynamo.objects.spread import spread_notes
from resources.dynamo.orchestrator import PROVIDERS
from resources.model import withdrawn
from resources.ports.configuration import ONLY

_KEPT: Final = {
    ENABLE_GROVE: "; what runs the graph stays: another orchestrator replaces all of its pods, which sync does with --allow-replace only",
    "grove.io/auto-mnnvl": "; its PodCliqueSet keeps it, for it cannot change",
}


def is_new(graph: Body) -> bool:
    """Whether nothing has been decided about a graph: it has not got its finalizer yet, which comes with its records."""
    return labels.GRAPH_FINALIZER not in (graph["metadata"].get("finalizers") or ())


def unrecorded_form(observed: Observed) -> PodForm:
    """The form of the pods of a graph that records none: the current one if it is new, else that of what runs its services.

    What runs carries the record as well, so that a graph that has lost its annotations keeps the form of its pods.
    """
    if not observed.root.uid or is_new(observed.root.body):
        return PodForm.CURRENT
    runners = (*(nested.root for nested in observed.nested.values()), *observed.slice(ONLY).of(kinds.LEADER_WORKER_SET.name))
    return PodForm.CURRENT if any(form_of(annotations_of(live.body)) is PodForm.CURRENT for live in runners) else PodForm.FIRST


def records(graph: InferenceGraph, orchestrator: Orchestrator | None) -> Mapping[str, str]:
    """The annotations by which a graph records what is decided; none in the first form, so that an upgrade writes nothing."""
    if not graph.is_current:
        return {}
    provider = next((name for name, each in PROVIDERS.items() if each is orchestrator), "")
    return {labels.POD_FORM: PodForm.CURRENT.value, **({PROVIDER: provider} if provider else {})}


def form_notes(observed: Observed, graph: InferenceGraph) -> Iterator[str]:
    """That the pods of a graph keep their form although new graphs have another one, and how to ask for that one."""
    names = [service.name for service in graph.services if service.is_multinode]
    written = (annotations_of(body).get(labels.POD_FORM) for body in (observed.root.body, observed.proposal or {}))
    if names and not graph.is_current and not any(written):
        yield (
            f"the pods of {', '.join(map(printable, names))} keep their form, without what new graphs have (different nodes for pods of a "
            f'replica, among others); the annotation {labels.POD_FORM}: "{PodForm.CURRENT}" asks for it, and replaces pods that differ'
        )


def withdrawal_notes(observed: Observed) -> Iterator[str]:
    """What follows for each annotation that a manifest no longer has: ours are removed, and what runs stays."""
    if observed.proposal is None or not observed.root.uid:
        return
    for key in withdrawn.withdrawn(observed.root.body, observed.proposal, labels.STEERING_GRAPHS):
        yield f"the annotation {printable(key)} is removed, as the manifest no longer has it{_KEPT.get(key, '')}"
    for key in withdrawn.foreign(observed.root.body, observed.proposal, labels.STEERING_GRAPHS):
        yield f"the annotation {printable(key)} stays, although the manifest does not have it: another writer has set it"


def own_notes(observed: Observed, graph: InferenceGraph) -> tuple[str, ...]:
    """What is said of the graph itself, besides its objects; of a change of it also the nodes that its services need."""
    stored, proposed = observed.root.body, observed.proposal
    is_changing = is_new(stored) or (proposed is not None and not is_equal(proposed.get("spec"), stored.get("spec")))
    return (*form_notes(observed, graph), *withdrawal_notes(observed), *(spread_notes(graph) if is_changing else ()))
