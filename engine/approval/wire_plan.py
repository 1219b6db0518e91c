"""What a saved plan has of the plans and operations of passes, as version 1 of the file spells it: one map of all fields for every verb."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from engine import operation as verbs
from engine import plan as plans
from engine.errors import InputError
from engine.ids import OwnerRef, ResourceId
from engine.operation import BoundOwner, Cause, Change, Expect
from engine.plan import Alarm, Objection, Wait
from engine.reason import Reason
from engine.report import model
from engine.resource import EventGroup
from engine.verb import Verb


class WireOperation(Struct, frozen=True, eq=False):
    """One API call.

    `body` depends on the verb. Create and replace: the manifest without owner references. Patch and status: a JSON merge patch.
    Release: `{"finalizers": […], "of": […]}`, those to remove and all that were observed. Delete: empty.
    A status may contain `NOW`.
    """

    verb: Verb
    id: ResourceId
    why: str
    cause: Cause
    body: Mapping[str, Any] = field(default_factory=dict)
    owners: tuple[BoundOwner, ...] = ()
    changes: tuple[Change, ...] = ()
    expect: Expect = Expect()
    after: frozenset[str] = frozenset()
    intended: bool = True
    controller: OwnerRef | None = None
    event_group: EventGroup | None = None
    target: Mapping[str, Any] | None = None
    urgent: bool = False
    provisional: bool = False
    reason: Reason = Reason.UNSPECIFIED
    seal: str = ""


class WireTrial(Struct, frozen=True, eq=False):
    """A create that a plan relies on."""

    key: str
    about: str
    create: WireOperation


class WireRootPlan(Struct, frozen=True, eq=False):
    """The result of a pass on one root: operations in an order that respects every edge, and everything that is not done now."""

    root: ResourceId
    operations: tuple[WireOperation, ...] = ()
    deferred: tuple[Wait, ...] = ()
    pending: tuple[Wait, ...] = ()
    objections: tuple[Objection, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    alarms: tuple[Alarm, ...] = ()
    wake_at: datetime | None = None
    parent: ResourceId | None = None
    trials: tuple[WireTrial, ...] = ()
    error: Exception | None = None


class WireStep(Struct, frozen=True, eq=False):
    """An operation, and the part of its root that it belongs to."""

    operation: WireOperation
    part: str


class WireRootReport(Struct, frozen=True, eq=False):
    """The report of one root."""

    root: ResourceId
    steps: tuple[WireStep, ...]
    later: tuple[Wait, ...]
    blocked: tuple[Wait, ...]
    pending: tuple[Wait, ...]
    objections: tuple[Objection, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    wake_at: datetime | None
    parent: ResourceId | None = None
    error: str = ""


def written_operation(operation: verbs.Operation) -> WireOperation:
    """The operation as the file has it."""
    status = operation if isinstance(operation, verbs.WriteStatus) else None
    return WireOperation(
        operation.verb,
        operation.id,
        operation.why,
        operation.cause,
        verbs.body_of(operation),
        operation.owners,
        operation.changes,
        operation.expect,
        operation.after,
        operation.intended,
        operation.controller,
        operation.event_group if isinstance(operation, verbs.Delete | verbs.Release) else None,
        urgent=status is not None and status.urgent,
        provisional=status is not None and status.provisional,
        reason=operation.reason,
        seal=operation.seal,
    )


def read_operation(entry: WireOperation) -> verbs.Operation:
    """The operation in the file. Raises `InputError` if its body is not one of its verb."""
    common = entry.id, entry.why, entry.cause, entry.reason, entry.after, entry.expect
    body, changes, owners, controller = entry.body, entry.changes, entry.owners, entry.controller
    match entry.verb:
        case Verb.CREATE:
            return verbs.Create(*common, manifest=body, owners=owners, seal=entry.seal)
        case Verb.REPLACE:
            return verbs.Replace(*common, manifest=body, owners=owners, changes=changes, seal=entry.seal)
        case Verb.PATCH:
            return verbs.Patch(*common, patch=body, changes=changes, controller=controller, target=entry.target, seal=entry.seal)
        case Verb.SCALE:
            return verbs.Scale(*common, replicas=_replicas(entry), changes=changes, controller=controller)
        case Verb.STATUS:
            urgent, provisional = entry.urgent, entry.provisional
            return verbs.WriteStatus(*common, patch=body, changes=changes, controller=controller, urgent=urgent, provisional=provisional)
        case Verb.RELEASE:
            return verbs.Release(
                *common,
                finalizers=_texts(body.get("finalizers")),
                existing=_texts(body.get("of")),
                owners=owners,
                controller=controller,
                intended=entry.intended,
                event_group=entry.event_group,
            )
        case Verb.DELETE:
            return verbs.Delete(*common, owners=owners, controller=controller, intended=entry.intended, event_group=entry.event_group)


def _replicas(entry: WireOperation) -> int:
    spec = entry.body.get("spec")
    replicas = spec.get("replicas") if isinstance(spec, Mapping) else None
    if not isinstance(replicas, int):
        raise InputError(f"not a saved plan: it scales {entry.id} to no number of replicas")
    return replicas


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


UNWRITTEN: Final = frozenset({"restate_at", "denial", "health_types", "is_unplanned"})
"""The fields of a plan that only say what the status of its root is or will be, or that only plans of `engine run` have."""


def written_plan(plan: plans.Plan) -> WireRootPlan:
    """The plan as the file has it: without its error, and without what only planning needs of the operations."""
    changed = {
        "operations": tuple(map(slim, plan.operations)),
        "problems": (*plan.problems, model.error_text(plan.error)) if plan.error else plan.problems,
        "trials": tuple(WireTrial(trial.key, trial.about, written_operation(trial.create)) for trial in plan.trials),
        "error": None,
    }
    known = {name: value for name, value in asdict(plan).items() if name not in UNWRITTEN}
    return WireRootPlan(**known | changed)


def slim(operation: verbs.Operation) -> WireOperation:
    """The operation as the file has it, without what only planning needs. Reports show what a forecast writes, too."""
    return replace(written_operation(operation), after=frozenset())


def read_plan(entry: WireRootPlan) -> plans.Plan:
    """The plan in the file. Raises `InputError` for what is no operation."""
    changed = {
        "operations": tuple(map(read_operation, entry.operations)),
        "trials": tuple(verbs.Trial(trial.key, trial.about, _create(trial.create)) for trial in entry.trials),
        "error": None,
    }
    return plans.Plan(**asdict(entry) | changed)


def _create(entry: WireOperation) -> verbs.Create:
    operation = read_operation(entry)
    if not isinstance(operation, verbs.Create):
        raise InputError(f"not a saved plan: it tries to {operation.verb} {operation.id}")
    return operation


def written_root(root: model.RootReport) -> WireRootReport:
    """The report of a root as the file has it."""
    steps = tuple(WireStep(written_operation(step.operation), step.part) for step in root.steps)
    return WireRootReport(**asdict(root) | {"steps": steps})


def read_root(entry: WireRootReport) -> model.RootReport:
    """The report of a root in the file. Raises `InputError` for what is no operation."""
    steps = tuple(model.Step(read_operation(step.operation), step.part) for step in entry.steps)
    return model.RootReport(**asdict(entry) | {"steps": steps})
