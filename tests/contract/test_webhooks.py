"""With our webhooks before it the sandbox answers as a real server does that asks them over HTTPS."""

from pathlib import Path

import pytest

from engine.runtime.clock import SystemClock
from providers.sandbox.process import sandbox
from tests.contract import golden
from tests.contract.asking import told
from tests.contract.scenarios.webhooks import WEBHOOKS
from tests.contract.server import described
from tests.contract.webhooks import INSTALLED, said
from tests.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.anyio


async def test_the_sandbox_asks_our_webhooks_when_and_as_the_real_server_did(tmp_path: Path) -> None:
    async with sandbox(SystemClock(), tmp_path, actors=(), webhooks=INSTALLED) as box:
        answers = await told(described("sandbox", box.kubeconfig), WEBHOOKS)

    assert answers == golden.answers(WEBHOOKS)


@pytest.mark.e2e
async def test_the_real_server_takes_our_answers_as_it_did(api_server: ControlPlane) -> None:
    answers = await said(described("real", api_server.kubeconfig()))

    assert answers == golden.answers(WEBHOOKS)
