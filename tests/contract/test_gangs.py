"""The sandbox serves and schedules gangs as recorded on a real control plane, and the real one still does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from engine.runtime.clock import SystemClock
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.clock import VirtualClock
from grove_sandbox.process import sandbox
from tests.contract import golden
from tests.contract.answers import answers_of, namespaced, sending
from tests.contract.gang_pictures import Picture, play, recorded
from tests.contract.gang_scenarios import EVERY, GangScenario
from tests.contract.scenario import Scenario
from tests.contract.scenarios.gangs import SCENARIOS
from tests.contract.server import Server, described
from tests.controlplane.cluster import ControlPlane
from tests.waiting import eventually

pytestmark = pytest.mark.anyio

SERVED = ActorOptions(gangs=True)
every_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
every_gang = pytest.mark.parametrize("scenario", EVERY, ids=lambda scenario: scenario.name)


@pytest.fixture(scope="module")
async def quiet_sandbox(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The sandbox without actors: only the scenario changes objects."""
    async with sandbox(SystemClock(), tmp_path_factory.mktemp("quiet"), actors=(), options=SERVED) as box:
        yield described("sandbox", box.kubeconfig)


@every_scenario
async def test_the_sandbox_serves_the_kinds_as_the_real_server_did(scenario: Scenario, quiet_sandbox: Server) -> None:
    answers = await answers_of(quiet_sandbox, scenario)

    assert golden.answers(scenario) == answers


@pytest.mark.e2e
@every_scenario
async def test_the_real_server_serves_the_kinds_as_it_did(scenario: Scenario, gang_plane: ControlPlane) -> None:
    answers = await answers_of(described("real", gang_plane.kubeconfig()), scenario)

    assert golden.answers(scenario) == answers


@every_gang
async def test_the_sandbox_schedules_as_kube_scheduler_did(scenario: GangScenario, tmp_path: Path) -> None:
    clock = VirtualClock()

    async def rest(take: Callable[[], Awaitable[Picture]], _: int) -> Picture:
        await clock.advance(10)
        return await take()

    async with sandbox(clock, tmp_path, actors=("scheduler", "protection"), options=SERVED) as box:
        async with sending(described("sandbox", box.kubeconfig)) as send:
            await send("POST", "/api/v1/namespaces", {"metadata": {"name": "gangs"}}, "application/json")
            assert await play(scenario, send, "gangs", rest) == recorded(scenario)


TRIES = 3
"""How often a scenario is played. On a busy machine kube-scheduler may try a group before it knows all of its members, and what it says of
that try then stays."""


@pytest.mark.e2e
@every_gang
async def test_kube_scheduler_schedules_as_it_did(scenario: GangScenario, gang_plane: ControlPlane) -> None:
    expected = recorded(scenario)

    async def rest(take: Callable[[], Awaitable[Picture]], number: int) -> Picture:
        """The expected picture, once it is there, or what there is when patience ends."""
        latest: Picture = {}

        async def is_expected() -> bool:
            nonlocal latest
            latest = await take()
            return {"act": expected[number]["act"], **latest} == expected[number]

        with suppress(TimeoutError):
            await eventually(is_expected)
        return latest

    seen: object = None
    for _ in range(TRIES):
        async with sending(described("real", gang_plane.kubeconfig())) as send, namespaced(send) as namespace:
            seen = await play(scenario, send, namespace, rest)
        if seen == expected:
            break
    assert seen == expected
