"""Forecasts beside what a sync then does, on the sandbox."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from engine.forecast.forecast import Forecast
from engine.guard import Limits
from engine.ids import ResourceId
from engine.operation import Operation
from engine.removal import Removal
from engine.result import Outcome
from engine.runtime.sync_report import Ending
from engine.verb import Verb
from enginectl.actions.forecasting import forecast_of
from tests.builders import applying
from tests.stories.stage import Stage

COUNTED = frozenset({Verb.CREATE, Verb.REPLACE, Verb.RELEASE, Verb.DELETE})
"""The verbs whose operations are compared one by one. Of patches the changed fields are: how many patches there are depends on timing."""

Signature = Mapping[tuple[str, str, str], int]
"""(Verb, kind, name) -> how often. The names of pods are without their suffix: it depends on uids."""


@dataclass(frozen=True)
class Comparison:
    """What was forecast, and what was done."""

    forecast: Forecast | None
    forecast_operations: Signature
    operations: Signature
    forecast_fields: frozenset[tuple[str, str, str]]
    fields: frozenset[tuple[str, str, str]]
    ending: Ending

    def assert_equal(self) -> None:
        """Exactly what was forecast was done."""
        assert self.forecast_operations == self.operations
        assert self.forecast_fields == self.fields


async def forecast_then_sync(
    cluster: Stage, manifests: Sequence[Mapping[str, Any]] = (), removals: Mapping[ResourceId, Removal] = MappingProxyType({})
) -> Comparison:
    """Forecast, then sync in the same state."""
    current = await cluster.look(manifests, removals)
    forecast = forecast_of(current, applying(manifests, removals), cluster.setup, Limits())
    report = await cluster.sync(manifests=manifests, removals=removals)
    done = [result.operation for result in report.results if result.outcome is Outcome.DONE]
    expected = list(forecast.operations()) if forecast else []
    return Comparison(forecast, signature(expected), signature(done), patched_fields(expected), patched_fields(done), report.ending)


def signature(operations: Iterable[Operation]) -> Signature:
    """The operations that are compared one by one."""
    return Counter((str(each.verb), each.id.kind, stable_name(each)) for each in operations if each.verb in COUNTED)


def stable_name(operation: Operation) -> str:
    """The name of the object, of a pod that of its clique."""
    return operation.id.name if operation.id.kind != "Pod" else operation.id.name.rpartition("-")[0]


def patched_fields(operations: Iterable[Operation]) -> frozenset[tuple[str, str, str]]:
    """(Kind, name, field) of everything that is patched. Not the pods that a gang refers to: they pass through more states or fewer."""
    return frozenset(
        (each.id.kind, stable_name(each), ".".join(change.path))
        for each in operations
        if each.verb in (Verb.PATCH, Verb.SCALE) and each.id.kind != "PodGang"
        for change in each.changes
    )
