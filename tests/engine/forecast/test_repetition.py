"""A forecast that would go on for ever: operations that follow again and again."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from engine.blueprint import Desired
from engine.forecast.cluster_model import Assumption, Effects
from engine.forecast.forecast import End, Forecast
from engine.forecast.simulation import FROM, forecast
from engine.forecast.store import ForecastStore
from engine.graph import graph, part
from engine.ids import Owner, ResourceId
from engine.intent import Intent
from engine.memo import Memo
from engine.observed import Live, Observed, World
from engine.operation import Operation
from engine.resource import Want
from tests.engine.runtime.fakes import LEAF, ROOT, body
from tests.engine.runtime.toy import Toy, root_body

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Idle:
    """A cluster that does nothing."""

    def is_graceful(self, live: Live) -> bool:
        """Nothing is."""
        return False

    def begin(self, store: ForecastStore) -> None:
        """Nothing."""

    def sent(self, root: ResourceId, operation: Operation, existing: Live | None) -> None:
        """Nothing."""

    def answer(self, store: ForecastStore) -> frozenset[Assumption]:
        """Nothing."""
        return frozenset()

    def is_known(self, store: ForecastStore) -> bool:
        """Nobody is missing."""
        return True

    def effects(self) -> Mapping[ResourceId, Effects]:
        """None."""
        return {}


class Undecided(Toy):
    """Wants a leaf with another name whenever there is one: `spec.names` names, one after the other, for ever if `spec.endless`."""

    def desire(self, observed: Observed, now: datetime, configuration: Any, memo: Memo) -> Desired:
        """The leaf that follows the one there is."""
        manifest = observed.proposal or observed.root.body
        count, root = manifest["spec"]["names"], observed.root.id
        existing = [int(live.id.name) for part in observed.slices.values() for live in part.objects.values()]
        following = existing[0] + 1 if existing else 0
        name = following % count if manifest["spec"]["endless"] else min(following, count - 1)
        leaf = body(LEAF, str(name), labels={"app": "ours", "root": root.name})
        leaf["metadata"]["annotations"] = {"at": f"{now:%Y-%m-%dT%H:%M:%SZ}"} if not existing or name != existing[0] else {}
        resource = Want(LEAF.id(root.namespace, str(name)), "leaf", (Owner(root, ROOT.api_version),), body=leaf)
        metadata = {"name": root.name, "namespace": root.namespace}
        frame = {**{key: manifest[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata}
        return Desired(graph([part("", [Want(root, "root", body=frame), resource])]))


def forecast_of(**spec: Any) -> tuple[Forecast, ResourceId]:
    """The forecast of a new root, and its id."""
    manifest = root_body(**spec)
    end = forecast((Undecided(),), World(()), Intent((manifest,)), NOW, None, Idle())
    return end, ROOT.id("default", "root")


def test_operations_that_follow_again_and_again_are_noticed() -> None:
    end, root = forecast_of(names=3, endless=True)

    assert end.end_of(root) is End.REPEATS
    assert end.repeating == {root}
    assert FROM < len(end.passes) < 4 * FROM


def test_a_long_forecast_that_comes_to_an_end_does_not_repeat() -> None:
    end, root = forecast_of(names=5 * FROM, endless=False)

    assert end.end_of(root) is End.SETTLED
    assert len(end.passes) > 5 * FROM


def test_a_repetition_of_many_passes_is_noticed() -> None:
    end, root = forecast_of(names=3 * FROM, endless=True)

    assert end.end_of(root) is End.REPEATS
