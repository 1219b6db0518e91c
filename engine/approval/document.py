"""The file of a saved plan: written, and read back strictly."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import orjson
from msgspec.structs import replace

from engine.approval.approval import Allowance, Approval, ObjectKey, RootState
from engine.approval.draft import allowances
from engine.approval.ledger import REMOVING
from engine.approval.saved_plan import Circumstances, PlanScope, SavedPlan
from engine.approval.wire import (
    KIND,
    VERSION,
    WireAllowance,
    WireForecast,
    WireObject,
    WirePass,
    WirePlan,
    WireRemoval,
    WireReport,
    WireRoot,
    WireScaler,
    WireScope,
)
from engine.approval.wire_plan import WireOperation, read_operation, read_plan, read_root, slim, written_plan, written_root
from engine.canonical import digest
from engine.errors import InputError
from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import Forecast, ForecastPass
from engine.ids import ResourceId
from engine.intent import Removal
from engine.operation import Operation
from engine.report.fields import json_default
from engine.report.model import Report
from engine.report.printable import clipped
from engine.scalers import Scaler

ALTERED = "its content is not what was saved: it was altered or cut off; make the plan again"
NO_PLAN = "not a saved plan: it must be a file of `engine diff --out` or `engine delete --out`"


def written(plan: SavedPlan) -> bytes:
    """The file of a plan: one JSON document. Its digest is computed here."""
    document: dict[str, Any] = msgspec.to_builtins(_wire(plan), enc_hook=json_default, order="deterministic")
    document["digest"] = digest_of(document)
    return orjson.dumps(document) + b"\n"


def digest_of(document: Mapping[str, Any]) -> str:
    """The digest of everything in the file but the digest itself."""
    return digest({key: value for key, value in document.items() if key != "digest"})


def read(data: bytes) -> SavedPlan:
    """The plan in a file. Raises `InputError` that says in what way it is none."""
    document = _decoded(data)
    if document.get("kind") != KIND:
        raise InputError(NO_PLAN)
    if document.get("version") != VERSION:
        version = clipped(str(document.get("version")), 40)
        raise InputError(f"a saved plan of version {version}, but this engine reads version {VERSION}: make the plan again with it")
    try:
        if document.get("digest") != digest_of(document):
            raise InputError(ALTERED)
        wire = msgspec.convert(document, WirePlan, dec_hook=_refuse_custom)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"not a saved plan: {clipped(str(error), 300)}") from None
    plan = _plan(wire)
    if not _is_consistent(plan):
        raise InputError(ALTERED)
    return plan


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        raise InputError(NO_PLAN) from None
    if not isinstance(document, dict):
        raise InputError(NO_PLAN)
    return document


def _refuse_custom(type_: type, value: Any) -> Any:
    """No value of the file has a type of its own."""
    raise ValueError(f"{type_.__name__} cannot be read from a file")


def _wire(plan: SavedPlan) -> WirePlan:
    approval, circumstances = plan.approval, plan.circumstances
    forecast = plan.report.forecast
    return WirePlan(
        version=VERSION,
        kind=KIND,
        digest="",
        engine=circumstances.engine,
        created_at=plan.created_at,
        expires_at=plan.expires_at,
        cluster=circumstances.cluster,
        settings=dict(circumstances.settings),
        policies=dict(plan.policies),
        waivers=dict(plan.waivers),
        scope=_wire_scope(plan.scope),
        manifests=tuple(dict(manifest) for manifest in approval.manifests),
        removals=tuple(_wire_removal(id, removal) for id, removal in sorted(approval.removals.items())),
        roots=tuple(_wire_root(root) for root in approval.roots),
        allow=tuple(WireAllowance(each.verb, _wire_subject(each.subject), each.uid, each.revision, each.times) for each in approval.allow),
        desired={key: tuple(sorted(digests)) for key, digests in approval.desired.items()},
        pods=tuple((id, _wire_subject(approval.pods[id])) for id in sorted(approval.pods)),
        report=_wire_report(plan.report),
        forecast=_wire_forecast(forecast) if forecast else None,
        scalers=tuple(
            WireScaler(each.root, each.part, each.id, each.asked, each.live) for each in approval.scalers if each.live != each.asked
        ),
    )


def _wire_scope(scope: PlanScope) -> WireScope:
    applyset = _wire_id(scope.applyset) if scope.applyset is not None else None
    return WireScope(scope.namespaces, scope.kinds, scope.focus, scope.allow_replace, applyset, scope.allow_empty, scope.take_over)


def _wire_id(id: ResourceId) -> WireObject:
    return WireObject(id.kind, id.name, id.group, id.namespace)


def _wire_removal(id: ResourceId, removal: Removal) -> WireRemoval:
    return WireRemoval(_wire_id(id), removal.uid, removal.why, removal.after_manifests)


def _wire_root(root: RootState) -> WireRoot:
    spec = dict(root.spec) if root.spec is not None else None
    return WireRoot(_wire_id(root.id), root.uid, root.generation, root.revision, digest(root.spec), spec, root.is_deleting)


def _wire_subject(subject: ObjectKey) -> WireObject:
    return WireObject(subject.kind, subject.name, subject.group, subject.namespace, subject.index)


def _first(report: Report) -> list[Operation]:
    return [step.operation for root in report.roots for step in root.steps]


def _wire_report(report: Report) -> WireReport:
    roots = tuple(map(written_root, report.roots))
    return WireReport(roots, report.objections, dict(report.incomplete), report.judgement, report.others)


def _wire_forecast(forecast: Forecast) -> WireForecast:
    passes = tuple(
        WirePass(each.after, tuple((root, slim(operation)) for root, operations in each.operations.items() for operation in operations))
        for each in forecast.passes
    )
    plans = tuple(map(written_plan, forecast.plans.values()))
    assumptions = tuple(sorted(assumption.name for assumption in forecast.assumptions))
    effects, repeating = tuple(forecast.effects.items()), tuple(sorted(forecast.repeating))
    return WireForecast(
        forecast.began,
        passes,
        forecast.is_finished,
        plans,
        effects,
        assumptions,
        repeating,
        forecast.doubts,
        forecast.unchecked,
        forecast.collected,
    )


def _plan(wire: WirePlan) -> SavedPlan:
    approval = Approval(
        roots=tuple(_root(root) for root in wire.roots),
        allow=tuple(Allowance(each.verb, _subject(each.object), each.uid, each.resource_version, each.times) for each in wire.allow),
        desired={key: frozenset(digests) for key, digests in wire.desired.items()},
        manifests=wire.manifests,
        removals={_id(each.object): Removal(each.uid, each.why, each.after_manifests) for each in wire.removals},
        pods={id: _subject(each) for id, each in wire.pods},
        scalers=tuple(Scaler(each.root, each.part, each.object, each.replicas, each.live) for each in wire.scalers),
    )
    shown = wire.report
    report = Report(tuple(map(read_root, shown.roots)), shown.objections, shown.incomplete, judgement=shown.judgement, others=shown.others)
    return SavedPlan(
        circumstances=Circumstances(wire.engine, wire.cluster, wire.settings),
        created_at=wire.created_at,
        expires_at=wire.expires_at,
        scope=_scope(wire.scope),
        approval=approval,
        report=replace(report, forecast=_forecast(wire.forecast)) if wire.forecast else report,
        policies=wire.policies,
        waivers=wire.waivers,
        digest=wire.digest,
    )


def _scope(wire: WireScope) -> PlanScope:
    applyset = _id(wire.applyset) if wire.applyset is not None else None
    return PlanScope(wire.namespaces, wire.kinds, wire.focus, wire.allow_replace, applyset, wire.allow_empty, wire.take_over)


def _root(wire: WireRoot) -> RootState:
    return RootState(_id(wire.object), wire.uid, wire.generation, wire.resource_version, wire.spec, wire.deleting)


def _id(wire: WireObject) -> ResourceId:
    return ResourceId(wire.group, wire.kind, wire.namespace, wire.name)


def _subject(wire: WireObject) -> ObjectKey:
    return ObjectKey(wire.group, wire.kind, wire.namespace, wire.name, wire.index)


def _forecast(wire: WireForecast) -> Forecast:
    try:
        assumptions = frozenset(Assumption[name] for name in wire.assumptions)
    except KeyError as error:
        raise InputError(f"not a saved plan: it assumes {clipped(str(error), 80)}, which this engine does not know") from None
    return Forecast(
        wire.began,
        tuple(ForecastPass(each.after, _by_root(each.operations)) for each in wire.passes),
        wire.finished,
        {plan.root: read_plan(plan) for plan in wire.plans},
        dict(wire.effects),
        assumptions,
        repeating=frozenset(wire.repeating),
        doubts=wire.doubts,
        unchecked=wire.unchecked,
        collected=wire.collected,
    )


def _by_root(operations: Iterable[tuple[ResourceId, WireOperation]]) -> Mapping[ResourceId, tuple[Operation, ...]]:
    by_root: dict[ResourceId, list[Operation]] = {}
    for root, operation in operations:
        by_root.setdefault(root, []).append(read_operation(operation))
    return {root: tuple(listed) for root, listed in by_root.items()}


def _is_consistent(plan: SavedPlan) -> bool:
    """Whether what is shown of the plan removes exactly what it allows to be removed."""
    forecast = plan.report.forecast
    shown = allowances(_first(plan.report), list(forecast.operations()) if forecast else [], plan.approval.subject)
    return {each for each in shown if each.verb in REMOVING} == {each for each in plan.approval.allow if each.verb in REMOVING}
