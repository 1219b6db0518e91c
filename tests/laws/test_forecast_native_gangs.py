"""The law of forecasts where kube-scheduler schedules gangs: what is forecast is what a sync does, with room and without."""

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine.forecast.forecast import End
from tests.builders import clique, podcliqueset
from tests.laws.cases import cases
from tests.laws.test_forecast_laws import histories, live_through
from tests.laws.test_forecast_room import CAPACITY, assert_ends_as_forecast, needing
from tests.laws.test_forecast_room import histories as in_little_room
from tests.stories.native import native_stage

pytestmark = pytest.mark.anyio

Body = dict[str, Any]


@given(histories())
@cases(8)
def test_forecast_everything_that_sync_does_and_nothing_else(history: list[Body]) -> None:
    async def story() -> None:
        async with native_stage(nodes=30) as cluster:
            await live_through(cluster, history)

    anyio.run(story)


@given(in_little_room(), some.integers(1, 4))
@cases(8)
def test_a_set_settles_if_and_only_if_that_is_forecast(history: list[Body], nodes: int) -> None:
    async def story() -> None:
        async with native_stage(nodes=nodes, capacity=CAPACITY) as cluster:
            for manifest in history:
                await assert_ends_as_forecast(cluster, manifest)

    anyio.run(story)


@pytest.mark.parametrize(("pods", "end"), [(5, End.STUCK), (4, End.SETTLED)])
async def test_a_gang_without_room_as_a_whole_is_forecast_to_wait(pods: int, end: End) -> None:
    async with native_stage(nodes=4, capacity=CAPACITY) as cluster:
        manifest = podcliqueset("demo", clique("a", pods, minAvailable=pods, pod_spec=needing(4)))
        assert await assert_ends_as_forecast(cluster, manifest) is end
