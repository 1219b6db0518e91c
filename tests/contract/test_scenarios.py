"""The sandbox gives the recorded answers of the real server, and the real server still gives them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engine.runtime.clock import SystemClock
from grove_sandbox.process import sandbox
from tests.contract import golden
from tests.contract.answers import answers_of
from tests.contract.scenario import Scenario
from tests.contract.scenarios import EVERY
from tests.contract.server import Server, described
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import release

pytestmark = pytest.mark.anyio

every_scenario = pytest.mark.parametrize("scenario", EVERY, ids=lambda scenario: scenario.name)


@pytest.fixture(scope="module")
async def quiet_sandbox(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """The sandbox without actors: only the scenario changes objects."""
    folder: Path = tmp_path_factory.mktemp("quiet")
    async with sandbox(SystemClock(), folder, actors=()) as box:
        yield described("sandbox", box.kubeconfig)


@every_scenario
async def test_the_sandbox_answers_as_the_real_server_did(scenario: Scenario, quiet_sandbox: Server) -> None:
    answers = await answers_of(quiet_sandbox, scenario)

    assert golden.answers(scenario) == answers


@pytest.mark.e2e
@every_scenario
async def test_the_real_server_answers_as_it_did(scenario: Scenario, api_server: ControlPlane) -> None:
    answers = await answers_of(described("real", api_server.kubeconfig()), scenario)

    assert golden.answers(scenario, release()) == answers
