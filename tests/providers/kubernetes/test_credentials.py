"""Credentials that are refused, that change, that run out: nobody else is disturbed by it."""

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
from tests.providers.kubernetes.loopback import POD, Turned, client_of, json_answer, kubeconfig, made, pod, refused, serving

pytestmark = pytest.mark.anyio


async def create_many(client: KubernetesClient, count: int) -> tuple[list[str], list[ClusterError]]:
    """Creates side by side: the names made, and the refusals."""
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


async def test_one_forbidden_create_disturbs_none_of_forty_others(tmp_path: Path) -> None:
    all_there, waiting = anyio.Event(), 0

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal waiting
        waiting += 1
        if waiting == 41:
            all_there.set()
        await all_there.wait()
        return refused(403, "Forbidden") if (await request.json())["metadata"]["name"] == "p7" else await made(request)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        names, errors = await create_many(client, 41)

    assert (len(names), [type(error) for error in errors]) == (40, [Forbidden])
    assert len(server.seen) == 41, "the refusal is not asked for twice"


async def test_a_rotated_token_costs_one_login_and_no_create(tmp_path: Path) -> None:
    logins = tmp_path / "logins"
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho run >> {logins}\ncat {tmp_path}/credential\n")
    plugin.chmod(0o700)
    credential(tmp_path, "old")

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return await made(request) if request.headers["Authorization"] == "Bearer new" else refused(401, "Unauthorized", "Unauthorized")

    async with serving(handler) as server:
        config = kubeconfig(tmp_path, server.url, user={"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}})
        async with client_of(config) as client:
            credential(tmp_path, "new")
            names, errors = await create_many(client, 40)

    assert (len(names), errors) == (40, [])
    assert logins.read_text().count("run") == 2, "once to come in, once when the token had gone stale"


async def test_a_refusal_that_comes_late_finds_the_new_token_there_already(tmp_path: Path) -> None:
    """The answer to a request sent with the old token may arrive when all others have moved on."""
    token, others_are_done, refusals = tmp_path / "token", anyio.Event(), 0
    token.write_text("old")

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal refusals
        if request.headers["Authorization"] == "Bearer new":
            return json_answer(pod("x"))
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

    assert refusals == 2, "and it needs no file for that"


async def until(condition: Callable[[], bool]) -> None:
    """Let the server, which runs on the same loop, have its turns until that holds."""
    while not condition():
        await anyio.lowlevel.checkpoint()


def credential(folder: Path, token: str) -> None:
    (folder / "credential").write_text(json.dumps({"kind": "ExecCredential", "status": {"token": token}}))


async def test_requests_in_flight_finish_on_the_old_connections_when_certificates_change(tmp_path: Path) -> None:
    """A new login over new TLS must not take away the line from under those who still use the old one."""
    authority, later = trustme.CA(), trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    slow_one_is_in, let_go = anyio.Event(), anyio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith("/slow"):
            slow_one_is_in.set()
            await let_go.wait()
        elif request.headers["Authorization"] == "Bearer old":
            return refused(401, "Unauthorized")
        return json_answer(pod("x"))

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
                await slow_one_is_in.wait()
                (tmp_path / "ca.crt").write_bytes(both)
                kubeconfig(tmp_path, server.url, user={"token": "new"}, certificate_authority="ca.crt")
                assert (await client.get(POD, "lab", "quick"))["metadata"]["name"] == "x"
                assert finished == []
                let_go.set()

    assert finished == ["x"]


async def test_credentials_that_stay_refused_are_asked_about_once_and_named_expired(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(401, "Unauthorized", "Unauthorized")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(Unauthorized, match="expired: log in again"):
            await client.get(POD, "lab", "x")

    assert len(server.seen) == 1, "the same token is not tried again"


async def test_a_token_file_is_read_again_every_minute(tmp_path: Path) -> None:
    token, clock = tmp_path / "token", Turned()
    token.write_text("first\n")

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return json_answer(pod("x"))

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

    said = [one.headers["Authorization"].removeprefix("Bearer ") for one in server.seen]
    assert said == ["first", "first", "second", "second"], "a file that is gone for a moment changes nothing"
    assert len({one.peer for one in server.seen}) == 1, "a new token needs no new connection"
