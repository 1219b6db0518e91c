"""Plan data: what expressions see, as plain values: a report and its forecast in the shape of `DATA_TYPES`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from engine.forecast.cluster_model import Level
from engine.ids import ResourceId
from engine.mask import LAST_APPLIED
from engine.observed import Live, Observed, World, timestamp
from engine.operation import Create, Delete, Operation, Replace, WriteStatus
from engine.paths import get, overlay, spell
from engine.plan import Wait
from engine.report.fields import changed_fields
from engine.report.model import Report, RootReport
from engine.resource import Body
from engine.verb import Verb
from resources.base import kinds, labels
from resources.base.fields import mapping, mappings
from resources.plan_policies.data_types import DATA_TYPES

Data = dict[str, Any]
"""The fields of one data type, each of them."""

EFFECTS: Final[Mapping[str, str]] = {
    "podsRestarted": "pods restarted",
    "podsAdded": "pods added",
    "podsRemoved": "pods removed",
    "gpusRestarted": "GPUs restarted",
    "gpusAdded": "GPUs added",
    "gpusRemoved": "GPUs removed",
    "domainsMade": "domains made",
    "domainsRemoved": "domains removed",
    "domainsReplaced": "domains replaced",
}
"""Field of a summary -> what a forecast counts."""
COUNTED: Final[Mapping[str, Verb]] = {
    "creates": Verb.CREATE,
    "patches": Verb.PATCH,
    "scales": Verb.SCALE,
    "replaces": Verb.REPLACE,
    "releases": Verb.RELEASE,
    "deletes": Verb.DELETE,
}
"""Field of a summary -> the verb of the operations that it counts."""
ENDS: Final = ("unfinished", "repeats", "stuck", "unknown", "settled")
"""How sets end, the worst first."""
UNKNOWN: Final = "unknown"
"""The end without a forecast."""


class SetData(Struct, frozen=True, eq=False):
    """A set for which something is done, and the data that rules see of it."""

    root: ResourceId
    data: Data


class PlanData(Struct, frozen=True, eq=False):
    """The sets for which something is done, and what is known of the plan as a whole."""

    sets: tuple[SetData, ...]
    complete: bool
    now: str
    """The time of the observation, as a Kubernetes timestamp."""

    def plan_of(self, sets: Sequence[SetData]) -> Data:
        """The data of the plan, as far as it concerns these sets."""
        listed = [each.data for each in sets]
        operations = sorted((operation for data in listed for operation in data["operations"]), key=lambda data: data["stage"])
        summaries = [data["summary"] for data in listed]
        return {
            "summary": {field: sum(summary[field] for summary in summaries) for field in DATA_TYPES["Summary"].fields},
            "end": min((data["end"] for data in listed), key=rank, default="settled"),
            "complete": self.complete,
            "sets": listed,
            "operations": operations,
            "deletions": deletions(operations),
            "blocked": [blocked for data in listed for blocked in data["blocked"]],
        }


def plan_data(report: Report, world: World, now: datetime) -> PlanData:
    """The data of a report about this world. Sets for which nothing is done, now or later, are left out."""
    observed = {each.root.id: each for each in world.roots}
    readers = [_SetReader(report, root, observed.get(root.root), world) for root in report.roots]
    sets, forecast = tuple(each for reader in readers for each in reader.read()), report.forecast
    is_complete = not report.incomplete and (forecast.is_finished if forecast else not report.changes)
    return PlanData(sets, is_complete, timestamp(now))


def deletions(operations: Iterable[Data]) -> list[Data]:
    """The operations that delete or replace an object."""
    return [operation for operation in operations if operation["verb"] in (Verb.DELETE, Verb.REPLACE)]


def rank(end: str) -> int:
    """The place of an end in `ENDS`; ends that it does not list are the worst."""
    return ENDS.index(end) if end in ENDS else -1


class _SetReader(Struct, frozen=True, eq=False):
    """Reads the data of one set."""

    report: Report
    root: RootReport
    observed: Observed | None
    """The set as it was observed; None if it does not exist and is not proposed either."""
    world: World

    def read(self) -> Iterator[SetData]:
        """The data of the set; nothing if nothing is done for it."""
        id, forecast = self.root.root, self.report.forecast
        staged = list(self._staged())
        if not staged:
            return
        facts = root_facts(self.observed) if self.observed is not None else GONE
        lives = {live.id: live for live in (self.observed.lives() if self.observed is not None else self.world.orphans)}
        effects = forecast.effects.get(id) if forecast else None
        levels = effects.levels if effects else ()
        is_deleted = facts.is_leaving or any(_deletes(operation, id) for _, operation in staged)
        operations = list(self._operations(staged, lives))
        data = {
            "kind": id.kind,
            "namespace": id.namespace,
            "name": id.name,
            "labels": dict(facts.labels),
            "annotations": dict(facts.annotations),
            "isNew": not facts.exists and self.observed is not None,
            "isDeleted": is_deleted,
            "isPruned": any(_deletes(operation, id) and _reason(operation) == "Pruned" for _, operation in staged),
            "replicas": {"before": facts.replicas_before, "after": 0 if is_deleted else facts.replicas_after},
            "images": list(facts.images),
            "summary": _summary(effects.counts if effects else {}, [operation for _, operation in staged]),
            "end": str(forecast.end_of(id)) if forecast else UNKNOWN,
            "cliques": [self._availability(level, lives) for level in levels if level.id.kind != kinds.SCALING_GROUP.name],
            "groups": [self._availability(level, lives) for level in levels if level.id.kind == kinds.SCALING_GROUP.name],
            "operations": operations,
            "deletions": deletions(operations),
            "blocked": [self._blocked(wait) for wait in self._waits()],
        }
        yield SetData(id, data)

    def _staged(self) -> Iterator[tuple[int, Operation]]:
        """The operations with the numbers of their passes: those of the forecast, or of the first pass if it has none."""
        id, forecast = self.root.root, self.report.forecast
        passes = forecast.passes if forecast else ()
        first = 1 if passes and passes[0].after else 0  # Otherwise the next pass does nothing, and time passes first.
        staged = [(stage, operation) for stage, each in enumerate(passes, first) for operation in each.operations.get(id, ())]
        listed = staged or [(0, step.operation) for step in self.root.steps]
        return ((stage, operation) for stage, operation in listed if not isinstance(operation, WriteStatus))

    def _operations(self, staged: Iterable[tuple[int, Operation]], lives: Mapping[ResourceId, Live]) -> Iterator[Data]:
        """The data of the operations. An object that an earlier one created has the labels and annotations that it got."""
        known: dict[ResourceId, Mapping[str, Any]] = {}
        for stage, operation in staged:
            if isinstance(operation, Create):
                known[operation.id] = operation.manifest["metadata"]
            elif operation.id not in known:
                known[operation.id] = self._metadata(operation.id, lives)
            existing = known[operation.id]
            yield {
                "verb": str(operation.verb),
                "group": operation.id.group,
                "kind": operation.id.kind,
                "namespace": operation.id.namespace,
                "name": operation.id.name,
                "set": self._name,
                "reason": _reason(operation),
                "cause": str(operation.cause),
                "asked": operation.intended,
                "stage": stage,
                "labels": texts(existing.get("labels")),
                "annotations": texts(existing.get("annotations")),
                "fields": [spell(change.path) for change in changed_fields(operation)],
            }
            if isinstance(operation, Replace):
                known[operation.id] = operation.manifest["metadata"]

    def _metadata(self, id: ResourceId, lives: Mapping[ResourceId, Live]) -> Mapping[str, Any]:
        """The metadata of an object as it was observed; empty if it was not."""
        live = lives.get(id) or (self.observed.elsewhere(id) if self.observed is not None else None)
        return mapping(live.body["metadata"]) if live is not None else {}

    def _availability(self, level: Level, lives: Mapping[ResourceId, Live]) -> Data:
        """The data of a clique or scaling group."""
        carried = texts(self._metadata(level.id, lives).get("labels"))
        replica = carried.get(labels.REPLICA_INDEX, "")
        is_group = level.id.kind == kinds.SCALING_GROUP.name
        return {
            "name": level.id.name,
            "replica": int(replica) if replica.isdecimal() else -1,
            "group": level.id.name if is_group else carried.get(labels.SCALING_GROUP, ""),
            "before": level.before,
            "lowest": level.lowest,
            "after": level.after,
            "minAvailable": level.minimum,
            "below": level.falls_below,
        }

    def _waits(self) -> Sequence[Wait]:
        """What is blocked at the end or, without a forecast, now."""
        plan = self.report.forecast.plans.get(self.root.root) if self.report.forecast else None
        return plan.blocked if plan is not None else self.root.blocked

    def _blocked(self, wait: Wait) -> Data:
        return {
            "kind": wait.id.kind,
            "namespace": wait.id.namespace,
            "name": wait.id.name,
            "set": self._name,
            "reason": _reason(wait),
            "message": wait.why,
        }

    @property
    def _name(self) -> str:
        id = self.root.root
        return f"{id.namespace}/{id.name}" if id.namespace else id.name


def _deletes(operation: Operation, id: ResourceId) -> bool:
    return isinstance(operation, Delete) and operation.id == id


def _reason(explained: Operation | Wait) -> str:
    """The reason as one word; empty if there is none."""
    return str(explained.reason or "")


def _summary(effects: Mapping[str, int], operations: Iterable[Operation]) -> Data:
    verbs = Counter(operation.verb for operation in operations)
    counted = {field: effects.get(what, 0) for field, what in EFFECTS.items()}
    return counted | {field: verbs[verb] for field, verb in COUNTED.items()}


CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
"""Fields of pod specs that list containers."""


class RootFacts(Struct, frozen=True):
    """What rules see of a root besides operations."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    images: tuple[str, ...]
    exists: bool
    """Whether the cluster has it."""
    is_leaving: bool
    """Whether it is being deleted."""
    replicas_before: int
    replicas_after: int


GONE: Final = RootFacts({}, {}, (), exists=False, is_leaving=True, replicas_before=0, replicas_after=0)
"""A root that does not exist and that no manifest specifies: objects of it are left."""


def root_facts(observed: Observed) -> RootFacts:
    """The facts of one root, as if its proposal were applied."""
    root = observed.root
    exists, is_leaving = bool(root.uid), root.deleting_since is not None
    body = overlay(root.body, observed.proposal) if observed.proposal is not None else root.body
    return RootFacts(
        texts(get(body, ("metadata", "labels"))),
        texts(get(body, ("metadata", "annotations"))),
        tuple(sorted(set(images(body.get("spec"))))),
        exists,
        is_leaving,
        replicas_of(root.id.kind, root.body) if exists else 0,
        0 if is_leaving else replicas_of(root.id.kind, body),
    )


def texts(value: Any) -> dict[str, str]:
    """The entries of labels or annotations that are texts, without kubectl's copy of the manifest, which has the data of Secrets."""
    return {str(key): each for key, each in mapping(value).items() if isinstance(each, str) and key != LAST_APPLIED}


def replicas_of(kind: str, body: Body) -> int:
    """How many replicas a root asks for; 1 if its kind has none."""
    replicas = mapping(body.get("spec")).get("replicas", 1) if kind == kinds.PODCLIQUESET.name else 1
    return replicas if isinstance(replicas, int) else 1


def images(value: Any) -> Iterator[str]:
    """The images of every container in a value, at any depth, and of volumes that are images."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from images(item)
    elif isinstance(value, Mapping):
        named = [container.get("image") for field in CONTAINERS for container in mappings(value.get(field))]
        named += [mapping(value.get("mainContainer")).get("image")]
        named += [mapping(volume.get("image")).get("reference") for volume in mappings(value.get("volumes"))]
        yield from (image for image in named if isinstance(image, str) and image)
        for item in value.values():
            yield from images(item)
