"""The forecast of a report as JSON-compatible values."""

from collections import Counter
from collections.abc import Iterable, Sequence

from engine.forecast.cluster_model import Level
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.operation import Operation
from engine.plan import Wait
from engine.report.advice import advice
from engine.report.forecast_text import Stage, stages_of
from engine.report.shapes import Counts, ForecastEntry, LeftEntry, LevelEntry, PassOperations, RootForecast, StageEntry, identity
from engine.verb import Verb


def forecast_document(forecast: Forecast) -> ForecastEntry:
    """The whole forecast: whether its end was reached, what it assumes, and the operations of all roots by verb."""
    return {
        "complete": forecast.is_finished and not forecast.repeating,
        "assumptions": sorted(assumption.name for assumption in forecast.assumptions),
        "mayNotFit": list(forecast.doubts),
        "roomNotChecked": forecast.unchecked,
        "operations": counts_by_verb(forecast.operations()),
        "collected": forecast.collected,
    }


def root_forecast(forecast: Forecast, root: ResourceId) -> RootForecast:
    """The forecast of one root, from the first pass on."""
    effects, plan = forecast.effects.get(root), forecast.plans.get(root)
    return {
        "end": str(forecast.end_of(root)),
        "stages": [stage_entry(stage) for stage in stages_of(forecast, root)],
        "operations": counts_by_verb(forecast.operations_of(root)),
        "effects": dict(effects.counts) if effects else {},
        "availability": [level_entry(level) for level in (effects.levels if effects else ())],
        "left": [left_entry(wait, advice(wait, forecast, root)) for wait in ((*plan.deferred, *plan.pending) if plan else ())],
    }


def counts_by_verb(operations: Iterable[Operation]) -> Counts:
    """The number of operations of every verb but status."""
    counts = Counter[Verb](operation.verb for operation in operations)
    return {
        "create": counts[Verb.CREATE],
        "patch": counts[Verb.PATCH],
        "scale": counts[Verb.SCALE],
        "replace": counts[Verb.REPLACE],
        "release": counts[Verb.RELEASE],
        "delete": counts[Verb.DELETE],
    }


def stage_entry(stage: Stage) -> StageEntry:
    """A stage: seconds since the first pass, how often its passes repeat, and each pass of the first time."""
    return {
        "after": int(stage.after.total_seconds()),
        "times": stage.times,
        "passes": [pass_entry(operations) for operations in stage.passes[: stage.period]],
    }


def pass_entry(operations: Sequence[Operation]) -> list[PassOperations]:
    """The operations of a pass by verb, kind and reason."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for operation in operations:
        key = str(operation.verb), operation.id.group, operation.id.kind, str(operation.reason)
        groups.setdefault(key, []).append(operation.id.name)
    return [
        {"verb": verb, "group": group, "kind": kind, "reason": reason, "names": names}
        for (verb, group, kind, reason), names in groups.items()
    ]


def level_entry(level: Level) -> LevelEntry:
    """How many members of an object are ready."""
    return {
        "object": identity(level.id),
        "unit": level.unit,
        "before": level.before,
        "lowest": level.lowest,
        "after": level.after,
        "minAvailable": level.minimum,
        "below": level.falls_below,
    }


def left_entry(wait: Wait, to_do: str) -> LeftEntry:
    """An object that is still deferred or pending at the end, and what to do about it."""
    return {"object": identity(wait.id), "why": wait.why, "blocked": wait.blocked, "advice": to_do}
