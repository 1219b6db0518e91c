"""Shapes: the keys of the documents for programs and what they mean. Builders return them, and the published schemas are made of them.

Within a version of a document, keys and values of enumerations are only added: readers of a document ignore those that they do not know.
"""

from collections.abc import Iterable
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import End
from engine.ids import ResourceId
from engine.operation import Cause, Outcome
from engine.plan import Enforcement
from engine.reason import Reason
from engine.report.printable import PatternName
from engine.verb import Verb

CAUSES = "Why there is a difference: intent (what is desired has changed), drift (another writer) or status (what is reported)."


def one_of(values: Iterable[str], description: str) -> Meta:
    """The annotation of a text that is one of these values."""
    return Meta(description=description, extra_json_schema={"enum": sorted(values)})


VerbText = Annotated[str, one_of(map(str, Verb), "What is done to the object.")]
CauseText = Annotated[str, one_of(map(str, Cause), CAUSES)]
EndText = Annotated[str, one_of(map(str, End), "How it ends.")]
AssumptionText = Annotated[str, one_of((assumption.name for assumption in Assumption), "What a forecast takes for granted.")]
ReasonText = Annotated[str, one_of(map(str, Reason), "For programs: why, as one word. More words may be added.")]
OutcomeText = Annotated[str, one_of(map(str, Outcome), "How an operation ended.")]
Time = Annotated[str, Meta(description="A time in UTC, to the second.", extra_json_schema={"format": "date-time"})]


class Identity(TypedDict):
    """The identity of an object; the group is empty for core kinds, the namespace for cluster-scoped ones."""

    group: str
    kind: str
    namespace: str
    name: str
    clique: NotRequired[Annotated[str, Meta(description="Of a pod whose name is not known yet, and ends in `?????`: its PodClique.")]]
    index: NotRequired[Annotated[str, Meta(description="The index of such a pod in its clique; empty if it is not known.")]]


class Summary(TypedDict):
    """Numbers of operations of the next pass, and of objects that wait."""

    create: int
    patch: int
    scale: int
    replace: int
    release: int
    delete: int
    status: int
    later: Annotated[int, Meta(description="Objects that a later pass writes.")]
    blocked: Annotated[int, Meta(description="Objects for which a user or another controller has to act first.")]
    pending: Annotated[int, Meta(description="Objects that the cluster has still to act on.")]
    changes: Annotated[int, Meta(description="Operations that are not status writes.")]


class Counts(TypedDict):
    """Numbers of operations by verb, without statuses."""

    create: int
    patch: int
    scale: int
    replace: int
    release: int
    delete: int


class ForecastEntry(TypedDict):
    """What follows the next pass, of all workloads."""

    complete: Annotated[bool, Meta(description="Whether the end was reached; otherwise all numbers mean: at least.")]
    assumptions: list[AssumptionText]
    mayNotFit: Annotated[
        list[str], Meta(description="Pods that may have no room on the nodes, and why. For people: the wording may change.")
    ]
    roomNotChecked: Annotated[
        str, Meta(description="Why it is not known whether nodes have room for new pods; empty if it is, or offline.")
    ]
    operations: Counts
    collected: Annotated[int, Meta(description="Objects that Kubernetes' garbage collector deletes, without an operation.")]


class Precondition(TypedDict):
    """The object that an operation was planned for; empty texts if it does not exist."""

    uid: str
    resourceVersion: str


class ChangeEntry(TypedDict):
    """A changed field; null is an absent value."""

    path: str
    old: Any
    new: Any
    cause: CauseText
    order: NotRequired[
        Annotated[bool, Meta(description="True: entries of the list have changed places; old and new are their keys, or the entries.")]
    ]


class OperationEntry(TypedDict):
    """One API call."""

    verb: VerbText
    key: Annotated[str, Meta(description="Its name within the plan.")]
    object: Identity
    part: Annotated[str, Meta(description="The part of the workload, e.g. a replica; empty for the workload itself.")]
    why: Annotated[str, Meta(description="For people: the wording may change.")]
    reason: ReasonText
    cause: CauseText
    intended: Annotated[bool, Meta(description="Whether a user asked for it; others count against the delete budget.")]
    expect: Precondition
    after: Annotated[list[str], Meta(description="Keys of operations that must succeed first.")]
    changes: list[ChangeEntry]
    manifest: NotRequired[Annotated[dict[str, Any], Meta(description="What a create or replace sends.")]]
    finalizers: NotRequired[Annotated[list[str], Meta(description="What a release removes.")]]


class WaitEntry(TypedDict):
    """An object that is not written now."""

    object: Identity
    why: str
    reason: Annotated[ReasonText | None, Meta(description="Of a blocked object: what it waits for.")]
    until: Time | None


class ObjectionEntry(TypedDict):
    """A guard's refusal."""

    rule: str
    message: str


class PassOperations(TypedDict):
    """Operations of one pass that have the same verb, kind and reason."""

    verb: VerbText
    group: str
    kind: str
    reason: ReasonText
    names: list[str]


class StageEntry(TypedDict):
    """Passes that repeat."""

    after: Annotated[int, Meta(description="Seconds from the first pass to the beginning of the stage.")]
    times: int
    passes: Annotated[list[list[PassOperations]], Meta(description="Each pass of the first repetition.")]


class LevelEntry(TypedDict):
    """How many members of an object are ready."""

    object: Identity
    unit: Annotated[str, Meta(description="What its members are, in the plural.")]
    before: int
    lowest: int
    after: int
    minAvailable: int
    below: Annotated[bool, Meta(description="Whether it falls below its minimum.")]


class LeftEntry(TypedDict):
    """What is left at the end."""

    object: Identity
    why: str
    blocked: bool
    advice: Annotated[str, Meta(description="What to do if the root gets stuck; empty if `why` says it.")]


class RootForecast(TypedDict):
    """What follows, of one workload, from the first pass on."""

    end: EndText
    stages: list[StageEntry]
    operations: Counts
    effects: Annotated[dict[str, int], Meta(description="What happens to pods, GPUs and domains -> how often, without zeros.")]
    availability: list[LevelEntry]
    left: list[LeftEntry]


class RootEntry(TypedDict):
    """One workload."""

    root: Identity
    parent: Annotated[Identity | None, Meta(description="The root that it is a part of.")]
    operations: list[OperationEntry]
    later: list[WaitEntry]
    blocked: list[WaitEntry]
    pending: list[WaitEntry]
    objections: list[ObjectionEntry]
    problems: Annotated[list[str], Meta(description="Mistakes in what the user asked for.")]
    error: Annotated[str | None, Meta(description="The internal error that kept it from being planned.")]
    notes: list[str]
    wakeAt: Annotated[Time | None, Meta(description="When time alone changes the plan.")]
    forecast: RootForecast | None


class ViolationEntry(TypedDict):
    """A rule that is violated."""

    rule: str
    object: Annotated[Identity | None, Meta(description="What it is about; null: the plan as a whole.")]
    message: str
    action: NotRequired[Annotated[str, one_of(map(str, Enforcement), "Of a waived rule: what it would do.")]]
    reason: NotRequired[Annotated[str, Meta(description="Of a waived rule: why it was waived.")]]


class PolicyEntry(TypedDict):
    """What guards and policies say."""

    denied: list[ViolationEntry]
    warned: list[ViolationEntry]
    audited: list[ViolationEntry]
    waived: list[ViolationEntry]
    notes: list[str]


class DiffDocument(TypedDict):
    """What a sync would do: `engine diff -o json`."""

    version: Annotated[int, Meta(description="Increased when a key is removed or changes its meaning.")]
    kind: Annotated[str, one_of(["Diff"], "What the document is.")]
    complete: Annotated[bool, Meta(description="Whether everything could be listed and every workload could be planned.")]
    applicable: Annotated[bool, Meta(description="Whether a sync would begin to write: nothing is denied and nothing is wrong.")]
    summary: Summary
    forecast: Annotated[ForecastEntry | None, Meta(description="Null if nothing follows, or if it was not computed.")]
    roots: list[RootEntry]
    objections: Annotated[list[ObjectionEntry], Meta(description="The guards' refusals of the plan as a whole.")]
    policy: PolicyEntry
    incomplete: Annotated[dict[str, str], Meta(description="Kind -> why it could not be listed completely.")]
    others: Annotated[list[Identity], Meta(description="Workloads outside the scope of the command that have changes.")]


class ResultEntry(TypedDict):
    """An operation and its outcome."""

    verb: VerbText
    object: Identity
    root: Identity | None
    why: str
    reason: ReasonText
    cause: CauseText
    outcome: OutcomeText
    error: str | None


class SyncDocument(TypedDict):
    """What a sync did, and what is left: `engine sync -o json`."""

    version: int
    kind: Annotated[str, one_of(["Sync"], "What the document is.")]
    ending: Annotated[str, Meta(description="How it ended.")]
    timedOut: bool
    error: str | None
    leaseTaken: Annotated[str | None, Meta(description="Who took the lease.")]
    results: list[ResultEntry]
    unapproved: NotRequired[Annotated[list[dict[str, Any]], Meta(description="Where it differs from the plan that was approved.")]]
    left: Annotated[DiffDocument, Meta(description="What the last plan still has.")]


def identity(id: ResourceId) -> Identity:
    """An object's group, kind, namespace and name; empty strings for the core group and cluster-scoped objects. A pod whose name is not
    known yet has its clique and its index as well."""
    known: Identity = {"group": id.group, "kind": id.kind, "namespace": id.namespace, "name": str(id.name)}
    return {**known, "clique": id.name.owner, "index": id.name.number} if isinstance(id.name, PatternName) else known
