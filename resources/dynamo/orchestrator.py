"""Orchestrator choice: what runs a graph, given what the cluster serves."""

from collections.abc import Collection
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.ids import Kind
from engine.observed import Observed
from resources.base import kinds
from resources.base.fields import annotations_of
from resources.dynamo.model.form import PROVIDER, PodForm, is_new
from resources.dynamo.model.graph import ENABLE_GROVE, KAI_QUEUE, VOLCANO_QUEUE, InferenceGraph, Orchestrator
from resources.ports.configuration import KAI_SCHEDULER, ONLY, VOLCANO_SCHEDULER

NOT_AVAILABLE = "no multinode orchestrator available"
NAMES = {Orchestrator.GROVE: "Grove's objects", Orchestrator.COMPONENTS: "LeaderWorkerSets and Deployments"}
"""What the objects are called by which an orchestrator runs a graph."""
DEFAULT_QUEUE = "dynamo"
"""The KAI queue of graphs that name none."""

PROVIDERS: Final = {"grove": Orchestrator.GROVE, "component": Orchestrator.COMPONENTS}
COMPONENTS: Final = (kinds.LEADER_WORKER_SET, kinds.DEPLOYMENT)


class Choice(Struct, frozen=True):
    """What runs a graph, or why nothing can."""

    orchestrator: Orchestrator | None
    error: str = ""
    note: str = ""
    """A note about the choice for the author of the graph; empty if it is the one that the graph asks for."""
    asked: Orchestrator | None = None
    """What the graph asks for by its annotation although another one runs it and is kept; None if there is no such thing."""
    to_do: str = ""
    """What its author can do about that; empty: allow the replacement."""


def choose(
    graph: InferenceGraph,
    unserved: Collection[str],
    recorded: Orchestrator | None = None,
    *,
    runs: bool = True,
    may_replace: bool = False,
    groups: Collection[Kind] = (kinds.VOLCANO_POD_GROUP,),
) -> Choice:
    """The orchestrator of a graph; `unserved` are the keys of the kinds that the cluster does not serve.

    Grove runs every graph if it is served and the graph does not disable it. Otherwise services on several nodes need LeaderWorkerSet and
    their kinds of PodGroup (`groups`), and services on one node need nothing. What is recorded is kept, whatever the cluster serves besides
    and the annotation says: another choice replaces all pods, and must be allowed (`may_replace`). Of a graph of which nothing `runs` yet
    the record is what its author asks for.
    """
    wished = _wished(graph, unserved, groups, is_new=recorded is not Orchestrator.COMPONENTS)
    if recorded is None or wished.orchestrator in (recorded, None) or may_replace:
        return wished
    missing = _unserved_groups(recorded, graph, unserved, groups)
    says = f"{NAMES[recorded]} run the graph" if runs else f"the annotation {PROVIDER} asks for {NAMES[recorded]}"
    if missing:
        return Choice(None, f"{NOT_AVAILABLE}: {says}, and the cluster does not serve {' and '.join(missing)}")
    asked = wished.orchestrator if ENABLE_GROVE in graph.annotations else None
    if runs:
        why = f"{says} and stay: {NAMES[wished.orchestrator]} instead would replace all of its pods"
    else:
        why = f"{says}: without it, {NAMES[wished.orchestrator]} would run the graph"
        why = f"{why}, as {ENABLE_GROVE} says" if asked is not None else why
    return replace(wished, orchestrator=recorded, note=why, asked=asked)


def _wished(graph: InferenceGraph, unserved: Collection[str], groups: Collection[Kind], *, is_new: bool) -> Choice:
    """The orchestrator if none runs the graph. A new graph gets the only one that the cluster has, even if its annotation excludes it."""
    has_grove = kinds.PODCLIQUESET.key not in unserved
    if graph.may_use_grove and has_grove:
        return Choice(Orchestrator.GROVE)
    missing = _unserved_groups(Orchestrator.COMPONENTS, graph, unserved, groups)
    if not missing:
        return Choice(Orchestrator.COMPONENTS)
    needs = f"LeaderWorkerSets need {' and '.join(missing)}, which it does not serve"
    if has_grove and is_new:
        return Choice(Orchestrator.GROVE, note=f'the annotation {ENABLE_GROVE}: "false" has no effect: the cluster has only Grove; {needs}')
    unserved_grove, disabled = f"the cluster does not serve {kinds.PODCLIQUESET.group}", f'Grove is disabled by {ENABLE_GROVE}: "false"'
    return Choice(None, f"{NOT_AVAILABLE}: {unserved_grove if graph.may_use_grove else disabled}; {needs}")


def _unserved_groups(orchestrator: Orchestrator, graph: InferenceGraph, unserved: Collection[str], groups: Collection[Kind]) -> list[str]:
    """The API groups that an orchestrator needs for a graph and that the cluster does not serve."""
    needed = (kinds.LEADER_WORKER_SET, *groups) if graph.is_multinode else ()
    of_orchestrator = (kinds.PODCLIQUESET,) if orchestrator is Orchestrator.GROVE else needed
    return [kind.group for kind in of_orchestrator if kind.key in unserved]


def recorded_orchestrator(observed: Observed) -> Orchestrator | None:
    """What was chosen to run a graph: what runs it, else what it records. None if nothing does, or both while one replaces the other.

    What runs counts first, so that an edit of the record replaces nothing; what is being deleted counts as well only without a record.
    """
    provider = PROVIDERS.get(annotations_of(observed.root.body).get(PROVIDER, ""))
    sets = [nested.root for nested in observed.nested.values()]
    components = [live for kind in COMPONENTS for live in observed.slice(ONLY).of(kind.name)]
    runs = {Orchestrator.GROVE: sets, Orchestrator.COMPONENTS: components}
    running = [each for each, lives in runs.items() if any(provider is None or live.deleting_since is None for live in lives)]
    return running[0] if len(running) == 1 else provider


def is_decided(observed: Observed) -> bool:
    """Whether it has been decided what runs a graph. What a new graph records is what its author asks for."""
    return bool(observed.root.uid) and not is_new(observed.root.body)


def queue_of(graph: InferenceGraph) -> str:
    """The KAI queue that the graph names, else the default one."""
    return graph.annotations.get(KAI_QUEUE, "").strip() or DEFAULT_QUEUE


def volcano_queue(graph: InferenceGraph, schedulers: Collection[str]) -> str | None:
    """The queue in which Volcano schedules the pods of a graph on Grove: the one that it names, if Volcano is enabled; else None.

    Graphs of older forms of pods keep their scheduler.
    """
    queue = graph.annotations.get(VOLCANO_QUEUE, "").strip()
    return queue if queue and graph.form.includes(PodForm.FOURTH) and graph.may_use_grove and VOLCANO_SCHEDULER in schedulers else None


def uses_kai(schedulers: Collection[str], unserved: Collection[str]) -> bool:
    """Whether pods of Grove are scheduled by KAI: the cluster serves its queues and the configuration enables its profile."""
    return KAI_SCHEDULER in schedulers and kinds.KAI_QUEUE.key not in unserved


def queue_missing(queue: str) -> str:
    """The reason why nothing is created for a graph whose queue does not exist."""
    return f"queue '{queue}' not found in cluster. Ensure the queue exists before using {KAI_SCHEDULER}"
