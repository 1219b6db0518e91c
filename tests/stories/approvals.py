"""Approvals beside what a sync then does within them, on the sandbox."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.approval.approval import Approval
from engine.approval.draft import PlanInputs, approval_of
from engine.approval.ledger import Ledger
from engine.forecast.forecast import Forecast
from engine.intent import Intent
from engine.observed import World
from engine.operation import Outcome
from engine.runtime.sync_report import SyncReport
from engine.tick import Plans
from enginectl.actions.planning import first_pass_of
from resources.ports.configuration import Configuration
from resources.preview.forecasting import forecast_of
from resources.preview.pod_recognition import RECOGNITION
from resources.registry import BLUEPRINTS
from tests.stories.forecasts import Comparison, patched_fields, signature
from tests.stories.stage import Stage

Manifests = Sequence[Mapping[str, Any]]


async def approve(cluster: Stage, manifests: Manifests = ()) -> tuple[Approval, Forecast | None]:
    """The approval of what a sync would do now, and the forecast of it."""
    intent = Intent(tuple(manifests))
    current = await cluster.look(manifests)
    forecast = forecast_of(first_pass_of(current, intent))
    rules = PlanInputs(BLUEPRINTS, cluster.setup, RECOGNITION)
    return approval_of(current.world, current.planned, forecast, intent, current.now, rules), forecast


class StrictLedger(Ledger):
    """A ledger of a cluster in which nothing unforeseen happens: no pass may plan more than was approved, not even for a moment."""

    def limited(self, world: World, planned: Plans) -> Plans:
        """The same plans."""
        result = super().limited(world, planned)
        assert [str(each.deviation) for each in self.excess] == []
        return result


async def sync_within(cluster: Stage, approval: Approval) -> SyncReport[Configuration]:
    """`engine sync` within the approval."""
    return await cluster.sync(manifests=approval.manifests, ledger=Ledger(approval, RECOGNITION))


async def approve_then_sync(cluster: Stage, manifests: Manifests = ()) -> Comparison:
    """Approve, then sync in the same state. Fails if a pass plans what was not approved."""
    approval, forecast = await approve(cluster, manifests)
    report = await cluster.sync(manifests=approval.manifests, ledger=StrictLedger(approval, RECOGNITION))
    done = [result.operation for result in report.results if result.outcome is Outcome.DONE]
    expected = list(forecast.operations()) if forecast else []
    return Comparison(forecast, signature(expected), signature(done), patched_fields(expected), patched_fields(done), report.ending)
