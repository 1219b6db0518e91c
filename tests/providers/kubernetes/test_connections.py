"""Connections of a client that ends while the server does not answer: none outlives the client."""

from base64 import b64encode
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, get_args

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from anyio.from_thread import start_blocking_portal

from engine.errors import Unreachable
from engine.runtime.clock import SystemClock
from grove_sandbox.process import sandbox
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connection_pool import RequestLimits
from tests.open_sockets import left_open
from tests.providers.kubernetes.loopback import POD, client_of, kubeconfig
from tests.silent_server import SilentServer, Stage, silent_server

MANY = 22
"""Requests at the same time: a pass lists so many kinds."""
LARGE = 1_000_000
"""Bytes of a request of which a part waits in the client until the server reads."""
PATIENT = RequestLimits(connect=30.0, total=30.0, silence=30.0)
TURNS = 120
"""Turns of the event loop in which a request to the sandbox is opened, secured, sent and answered."""


def config_of(folder: Path, server: SilentServer) -> Path:
    """A kubeconfig for the server."""
    return kubeconfig(folder, server.url, certificate_authority_data=b64encode(server.authority).decode())


async def read(client: KubernetesClient) -> None:
    await client.list(POD)


async def create(client: KubernetesClient) -> None:
    await client.create(POD, "lab", {"metadata": {"name": "x", "annotations": {"large": "x" * LARGE}}})


async def watch(client: KubernetesClient) -> None:
    async for _ in client.watch(POD, since=(await client.list(POD)).revision):
        pass


@pytest.mark.parametrize("call", [read, create])
@pytest.mark.parametrize(
    ("stage", "tls"),
    [("connected", True), ("secured", True), ("asked", True), ("answering", True), ("connected", False), ("answering", False)],
)
def test_requests_that_are_cancelled_leave_no_connection_open(
    tmp_path: Path, stage: Stage, tls: bool, call: Callable[[KubernetesClient], Coroutine[Any, Any, None]]
) -> None:
    with silent_server(stage, tls=tls) as server:

        async def work() -> None:
            async with client_of(config_of(tmp_path, server), limits=PATIENT) as client, anyio.create_task_group() as requests:
                for _ in range(MANY):
                    requests.start_soon(call, client)
                await anyio.to_thread.run_sync(server.wait, MANY)
                requests.cancel_scope.cancel()

        anyio.run(work)

        assert left_open(server.url) == []


@pytest.mark.parametrize("stage", get_args(Stage))
def test_requests_that_time_out_leave_no_connection_open(tmp_path: Path, stage: Stage) -> None:
    limits = RequestLimits(connect=0.1, total=0.2)
    with silent_server(stage) as server:

        async def work() -> None:
            async with client_of(config_of(tmp_path, server), limits=limits) as client:
                with pytest.raises(Unreachable):
                    await client.get(POD, "lab", "x")

        anyio.run(work)

        assert left_open(server.url) == []


@pytest.mark.parametrize("stage", ["connected", "secured", "asked"])
def test_a_client_that_is_closed_under_its_requests_closes_their_connections(tmp_path: Path, stage: Stage) -> None:
    with silent_server(stage) as server:

        async def ask(client: KubernetesClient) -> None:
            with pytest.raises(Unreachable):
                await client.create(POD, "lab", {"metadata": {"name": "x"}})

        async def work() -> None:
            limits = RequestLimits(connect=0.5) if stage == "connected" else PATIENT
            async with client_of(config_of(tmp_path, server), limits=limits) as client, anyio.create_task_group() as requests:
                for _ in range(MANY):
                    requests.start_soon(ask, client)
                await anyio.to_thread.run_sync(server.wait, MANY)
                await client.aclose()
            with pytest.raises(Unreachable, match="has been closed"):
                await read(client)

        anyio.run(work)

        assert left_open(server.url) == []


@pytest.mark.parametrize("call", [read, watch])
def test_requests_that_are_cancelled_at_any_turn_of_the_event_loop_leave_no_connection_open(
    tmp_path: Path, call: Callable[[KubernetesClient], Coroutine[Any, Any, None]]
) -> None:
    left = dict[int, list[str]]()
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(sandbox(SystemClock(), tmp_path, actors=())) as box:
            for turns in range(0, TURNS, 5):

                async def work(turns: int = turns) -> None:
                    async with client_of(box.kubeconfig, limits=PATIENT) as client, anyio.create_task_group() as requests:
                        for _ in range(5):
                            requests.start_soon(call, client)
                        for _ in range(turns):
                            await anyio.lowlevel.checkpoint()
                        requests.cancel_scope.cancel()

                anyio.run(work)
                left[turns] = left_open(box.url)

    assert {turns: each for turns, each in left.items() if each} == {}
