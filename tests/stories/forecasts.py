"""Forecasts beside what a sync then does, on the sandbox."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import End, Forecast
from engine.guard import Limits
from engine.ids import ResourceId
from engine.intent import NOTHING, Removal
from engine.operation import Operation, Outcome
from engine.runtime.clock import SystemClock
from engine.runtime.passes import Engine, preview
from engine.runtime.provider import Client
from engine.runtime.sync_report import Ending, SyncReport
from engine.verb import Verb
from enginectl.actions.planning import first_pass_of
from enginectl.wiring.scope import scope_of
from grove_sandbox.actors.script import FAIL
from providers.cluster import Cluster
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.preview.forecasting import forecast_of
from resources.registry import BLUEPRINTS
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
        assert self.forecast is None or not self.forecast.repeating


async def forecast_then_sync(
    cluster: Stage, manifests: Sequence[Mapping[str, Any]] = (), removals: Mapping[ResourceId, Removal] = MappingProxyType({})
) -> Comparison:
    """Forecast, then sync in the same state."""
    current = await cluster.look(manifests, removals)
    forecast = forecast_of(first_pass_of(current, applying(manifests, removals)))
    report = await cluster.sync(manifests=manifests, removals=removals)
    return comparison(forecast, report)


def comparison(forecast: Forecast | None, report: SyncReport[Configuration]) -> Comparison:
    """A forecast beside the report of what was done."""
    done = [result.operation for result in report.results if result.outcome is Outcome.DONE]
    expected = list(forecast.operations()) if forecast else []
    return Comparison(forecast, signature(expected), signature(done), patched_fields(expected), patched_fields(done), report.ending)


Sync = Callable[..., Awaitable[SyncReport[Configuration]]]


def compared(sync: Sync) -> Sync:
    """`Stage.sync` that forecasts first and, if the story lets the assumptions of forecasts hold, compares afterwards.

    They hold if the session is left alone (no process, lease or end of the story's own, no engine or actor beside it), if no pod was told
    to fail, nor one to recover that had failed, if the session waits until everything is settled, and if every call succeeds on the way.
    """

    async def sync_as_forecast(cluster: Stage, *arguments: Any, **options: Any) -> SyncReport[Configuration]:
        is_left_alone = (
            not arguments and options.keys() <= {"manifests", "removals", "limits"} and not cluster.busy and not is_failing(cluster)
        )
        if not is_left_alone:
            return await sync(cluster, *arguments, **options)
        manifests, removals = tuple(options.get("manifests", ())), options.get("removals", {})
        current = await cluster.look(manifests, removals)
        forecast = forecast_of(first_pass_of(current, applying(manifests, removals), options.get("limits") or Limits()))
        report = await sync(cluster, **options)
        assert_as_forecast(forecast, report)
        return report

    return sync_as_forecast


def assert_as_forecast(forecast: Forecast | None, report: SyncReport[Configuration], *, rivalled: bool = False) -> None:
    """What a session did is what was forecast, if it settled everything and every call succeeded: then the assumptions have held.

    `rivalled`: some of it may have been done by somebody else.
    """
    is_done = report.ending is Ending.DONE and all(result.outcome is Outcome.DONE for result in report.results)
    if forecast is not None and is_done and not recovers(forecast):
        outcome = comparison(forecast, report)
        if rivalled:
            assert Counter(outcome.operations) <= Counter(outcome.forecast_operations)
        else:
            outcome.assert_equal()
        assert all(forecast.end_of(root) is End.SETTLED for root in forecast.plans)


async def forecast_on(client: Client, setup: Configuration, namespace: str) -> Forecast | None:
    """What `engine diff` forecasts for a namespace of a cluster that cannot be looked at from inside."""
    clock = SystemClock()
    scope = replace(scope_of(setup), namespaces=(namespace,))
    current = await preview(Engine(Cluster(client, clock), clock, scope, BLUEPRINTS, setup))
    return forecast_of(first_pass_of(current, NOTHING))


def recovers(forecast: Forecast) -> bool:
    """Whether a session that settles everything shows that a pod recovered that the forecast assumes to have failed for good."""
    return Assumption.FAILURES_STAY in forecast.assumptions


def is_failing(cluster: Stage) -> bool:
    """Whether the kubelet plays a failure on a pod."""
    return any(FAIL in (pod["metadata"].get("annotations") or {}) for pod in cluster.there(kinds.POD).values())


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
