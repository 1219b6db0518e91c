"""Credentials that are refused, change or expire: other requests are not affected."""

import json
import ssl
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
import trustme
from aiohttp import web

from engine.errors import ClusterError, Forbidden, Unauthorized
from providers.kubernetes.client import KubernetesClient
from tests.providers.kubernetes.loopback import POD, InstantClock, client_of, created, json_response, kubeconfig, pod, refused, serving

pytestmark = pytest.mark.anyio


async def create_many(client: KubernetesClient, count: int) -> tuple[list[str], list[ClusterError]]:
    """Concurrent creates: the names created, and the errors."""
    names: list[str] = []
    errors: list[ClusterError] = []

    async def create(name: str) -> None:
        try:
            names.append((await client.create(POD, "lab", pod(name)))["metadata"]["name"])
        except ClusterError as error:
            errors.append(error)

    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(create, f"p{number}")
    return names, errors


async def test_one_forbidden_create_does_not_affect_forty_others(tmp_path: Path) -> None:
    all_received, waiting = anyio.Event(), 0

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal waiting
        waiting += 1
        if waiting == 41:
            all_received.set()
        await all_received.wait()
        return refused(403, "Forbidden") if (await request.json())["metadata"]["name"] == "p7" else await created(request)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        names, errors = await create_many(client, 41)

    assert (len(names), [type(error) for error in errors]) == (40, [Forbidden])
    assert len(server.requests) == 41, "a 403 is not repeated"


async def test_a_rotated_token_costs_one_login_and_fails_no_create(tmp_path: Path) -> None:
    logins = tmp_path / "logins"
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho run >> {logins}\ncat {tmp_path}/credential\n")
    plugin.chmod(0o700)
    credential(tmp_path, "old")

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return await created(request) if request.headers["Authorization"] == "Bearer new" else refused(401, "Unauthorized", "Unauthorized")

    async with serving(handler) as server:
        config = kubeconfig(tmp_path, server.url, user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}})
        async with client_of(config) as client:
            credential(tmp_path, "new")
            names, errors = await create_many(client, 40)

    assert (len(names), errors) == (40, [])
    assert logins.read_text().count("run") == 2, "once at the start, once after the token was rotated"


async def test_a_late_401_uses_the_new_token_without_another_login(tmp_path: Path) -> None:
    """The response to a request with the old token may arrive after the token was renewed."""
    token, others_are_done, refusals = tmp_path / "token", anyio.Event(), 0
    token.write_text("old")

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal refusals
        if request.headers["Authorization"] == "Bearer new":
            return json_response(pod("x"))
        refusals += 1
        if request.path.endswith("/late"):
            await others_are_done.wait()
        return refused(401, "Unauthorized")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url, user={"tokenFile": "token"})) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.get, POD, "lab", "late")
            await until(lambda: refusals == 1)
            token.write_text("new")
            await client.get(POD, "lab", "early")
            token.unlink()
            others_are_done.set()

    assert refusals == 2, "the token file is not read again"


async def until(condition: Callable[[], bool]) -> None:
    """Let the server, which runs in the same event loop, run until the condition holds."""
    while not condition():
        await anyio.lowlevel.checkpoint()


def credential(folder: Path, token: str) -> None:
    (folder / "credential").write_text(json.dumps({"kind": "ExecCredential", "status": {"token": token}}))


async def test_requests_in_progress_finish_on_the_old_connections_when_certificates_change(tmp_path: Path) -> None:
    authority, later = trustme.CA(), trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    slow_received, slow_may_end = anyio.Event(), anyio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith("/slow"):
            slow_received.set()
            await slow_may_end.wait()
        elif request.headers["Authorization"] == "Bearer old":
            return refused(401, "Unauthorized")
        return json_response(pod("x"))

    both = authority.cert_pem.bytes() + later.cert_pem.bytes()
    async with serving(handler, tls) as server:
        (tmp_path / "ca.crt").write_bytes(authority.cert_pem.bytes())
        config = kubeconfig(tmp_path, server.url, user={"token": "old"}, certificate_authority="ca.crt")
        finished: list[str] = []
        async with client_of(config) as client:

            async def slow() -> None:
                finished.append((await client.get(POD, "lab", "slow"))["metadata"]["name"])

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(slow)
                await slow_received.wait()
                (tmp_path / "ca.crt").write_bytes(both)
                kubeconfig(tmp_path, server.url, user={"token": "new"}, certificate_authority="ca.crt")
                assert (await client.get(POD, "lab", "quick"))["metadata"]["name"] == "x"
                assert finished == []
                slow_may_end.set()

    assert finished == ["x"]


async def test_credentials_that_stay_refused_are_sent_once_and_reported_as_expired(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(401, "Unauthorized", "Unauthorized")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(Unauthorized, match="expired: log in again"):
            await client.get(POD, "lab", "x")

    assert len(server.requests) == 1, "the same token is not tried again"


async def test_a_token_file_is_read_again_every_minute(tmp_path: Path) -> None:
    token, clock = tmp_path / "token", InstantClock()
    token.write_text("first\n")

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return json_response(pod("x"))

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url, user={"tokenFile": "token"}), clock) as client:
        await client.get(POD, "lab", "x")
        token.write_text("second\n")
        clock.elapsed += 59
        await client.get(POD, "lab", "x")
        clock.elapsed += 1
        await client.get(POD, "lab", "x")
        token.unlink()
        clock.elapsed += 60
        await client.get(POD, "lab", "x")

    tokens = [each.headers["Authorization"].removeprefix("Bearer ") for each in server.requests]
    assert tokens == ["first", "first", "second", "second"], "while the file is missing the old token is used"
    assert len({each.peer for each in server.requests}) == 1, "a new token needs no new connection"
