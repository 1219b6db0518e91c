"""With the engine's webhooks the sandbox gives the recorded answers of a real server that calls them over HTTPS."""

from pathlib import Path

import pytest

from engine.runtime.clock import SystemClock
from grove_sandbox.process import sandbox
from tests.contract import golden
from tests.contract.answers import answers_of
from tests.contract.scenarios.webhooks import WEBHOOKS
from tests.contract.server import described
from tests.contract.webhooks import INSTALLED, real_answers
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import release

pytestmark = pytest.mark.anyio


async def test_the_sandbox_with_webhooks_answers_as_the_real_server_did(tmp_path: Path) -> None:
    async with sandbox(SystemClock(), tmp_path, actors=(), webhooks=INSTALLED) as box:
        answers = await answers_of(described("sandbox", box.kubeconfig), WEBHOOKS)

    assert answers == golden.answers(WEBHOOKS)


@pytest.mark.e2e
async def test_the_real_server_with_webhooks_answers_as_it_did(api_server: ControlPlane) -> None:
    answers = await real_answers(described("real", api_server.kubeconfig()))

    assert answers == golden.answers(WEBHOOKS, release())
