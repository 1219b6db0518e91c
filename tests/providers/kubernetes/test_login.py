"""Login: every kind of credentials that a kubeconfig can describe; no key is left on disk."""

import base64
import json
import socket
import ssl
import tempfile
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trustme
from aiohttp import web

from engine.errors import InputError, Unauthorized, Unreachable
from engine.ids import Kind
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import ClusterAccess, Source
from providers.kubernetes.login import login
from tests.providers.kubernetes.loopback import TOKEN, InstantClock, Loopback, client_of, json_response, kubeconfig, refused, serving

pytestmark = pytest.mark.anyio

POD = Kind("", "v1", "Pod", "pods", status=True)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory that only this test uses."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left_in(folder: Path) -> list[Path]:
    """Everything in a folder, however deep."""
    return list(folder.rglob("*"))


def inline(pem: trustme.Blob) -> str:
    return base64.b64encode(pem.bytes()).decode()


def server_side(authority: trustme.CA, name: str = "127.0.0.1", *, client_certificates: bool = False) -> ssl.SSLContext:
    """TLS for a server of that name; with `client_certificates` it accepts only clients that have one."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    if client_certificates:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


def certificate(authority: trustme.CA) -> dict[str, str]:
    issued = authority.issue_cert("client.example")
    return {"client-certificate-data": inline(issued.cert_chain_pems[0]), "client-key-data": inline(issued.private_key_pem)}


def plugin(folder: Path, script: str, **fields: object) -> dict[str, Any]:
    """A user whose credentials come from a program."""
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", **fields}}


def credential(**status: str) -> str:
    return f"cat <<'END'\n{json.dumps({'kind': 'ExecCredential', 'status': status})}\nEND"


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    return json_response({"metadata": {"name": "x"}})


async def get(config: Path) -> None:
    async with client_of(config) as client:
        await client.get(POD, "lab", "x")


async def test_a_client_certificate_is_accepted_and_no_key_is_left_behind(tmp_path: Path, temporary: Path, authority: trustme.CA) -> None:
    async with serving(echo, server_side(authority, client_certificates=True)) as server:
        config = kubeconfig(tmp_path, server.url, user=certificate(authority), certificate_authority_data=inline(authority.cert_pem))
        async with client_of(config) as client:
            assert left_in(temporary) == []
            await client.get(POD, "lab", "x")

    assert len(server.requests) == 1
    assert left_in(temporary) == []


async def test_another_login_leaves_no_key_behind(tmp_path: Path, temporary: Path, authority: trustme.CA) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(401, "Unauthorized")

    async with serving(handler, server_side(authority, client_certificates=True)) as server:
        config = kubeconfig(tmp_path, server.url, user=certificate(authority), certificate_authority_data=inline(authority.cert_pem))
        async with client_of(config) as client:
            for _ in range(3):
                with pytest.raises(Unauthorized):
                    await client.get(POD, "lab", "x")
                assert left_in(temporary) == []


async def test_a_login_that_fails_or_is_cancelled_leaves_no_key_behind(tmp_path: Path, temporary: Path, authority: trustme.CA) -> None:
    user = {**certificate(authority), "client-certificate-data": "not base64!"}
    with pytest.raises(InputError, match="not base64"):
        await get(kubeconfig(tmp_path, "https://127.0.0.1:1", user=user))
    assert left_in(temporary) == []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(login, ClusterAccess({"server": "https://127.0.0.1:1"}, certificate(authority)))
        while len(left_in(temporary)) < 3:  # the folder, with the certificate and the key
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert left_in(temporary) == []


async def test_certificate_and_authority_may_be_files(tmp_path: Path, authority: trustme.CA) -> None:
    issued = authority.issue_cert("client.example")
    issued.cert_chain_pems[0].write_to_path(tmp_path / "client.crt")
    issued.private_key_pem.write_to_path(tmp_path / "client.key")
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    user = {"client-certificate": "client.crt", "client-key": "client.key"}

    async with serving(echo, server_side(authority, client_certificates=True)) as server:
        await get(kubeconfig(tmp_path, server.url, user=user, certificate_authority="ca.crt"))

    assert len(server.requests) == 1


async def test_without_a_configured_authority_those_of_the_system_are_trusted(
    tmp_path: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "system.crt")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.crt"))

    async with serving(echo, server_side(authority)) as server:
        await get(kubeconfig(tmp_path, server.url))

    assert len(server.requests) == 1


async def test_a_certificate_of_an_unknown_authority_is_not_trusted(tmp_path: Path, authority: trustme.CA) -> None:
    async with serving(echo, server_side(authority)) as server:
        with pytest.raises(Unreachable, match="certificate is not trusted"):
            await get(kubeconfig(tmp_path, server.url, certificate_authority_data=inline(trustme.CA().cert_pem)))
        with pytest.raises(Unreachable, match="certificate is not trusted"):
            await get(kubeconfig(tmp_path, server.url, user=certificate(authority)))
        await get(kubeconfig(tmp_path, server.url, insecure_skip_tls_verify=True))

    assert len(server.requests) == 1


async def test_the_kubeconfig_can_name_the_host_in_the_servers_certificate(tmp_path: Path, authority: trustme.CA) -> None:
    async with serving(echo, server_side(authority, "api.example.com")) as server:
        trusted = inline(authority.cert_pem)
        with pytest.raises(Unreachable, match="certificate is not trusted"):
            await get(kubeconfig(tmp_path, server.url, certificate_authority_data=trusted))
        await get(kubeconfig(tmp_path, server.url, certificate_authority_data=trusted, tls_server_name="api.example.com"))

    assert len(server.requests) == 1


async def test_requests_go_through_the_proxy(tmp_path: Path) -> None:
    async with serving(echo) as proxy:
        await get(kubeconfig(tmp_path, "http://api.example.com", proxy_url=proxy.url))

    assert [each.headers["Host"] for each in proxy.requests] == ["api.example.com"]


async def test_errors_do_not_contain_the_password_of_a_proxy(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        proxy = f"http://me:s3cr3t@127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(Unreachable, match="the proxy in front of it does not answer") as caught:
            await get(kubeconfig(tmp_path, "http://api.example.com", proxy_url=proxy))

    assert "s3cr3t" not in f"{caught.value} {caught.value.__cause__!r}"


async def test_a_plugin_returns_a_token_and_gets_a_description_of_the_cluster(tmp_path: Path) -> None:
    script = f'printf %s "$KUBERNETES_EXEC_INFO" > {tmp_path}/info\n{credential(token="from-the-plugin")}'

    async with serving(echo) as server:
        await get(kubeconfig(tmp_path, server.url, user=plugin(tmp_path, script, provideClusterInfo=True)))

    info = json.loads((tmp_path / "info").read_text())
    assert server.requests[0].headers["Authorization"] == "Bearer from-the-plugin"
    assert (info["kind"], info["spec"]) == ("ExecCredential", {"interactive": False, "cluster": {"server": server.url}})


async def test_a_plugin_may_return_a_certificate_and_its_key_is_not_left_behind(
    tmp_path: Path, temporary: Path, authority: trustme.CA
) -> None:
    issued = authority.issue_cert("client.example")
    script = credential(clientCertificateData=text(issued.cert_chain_pems[0]), clientKeyData=text(issued.private_key_pem))

    async with serving(echo, server_side(authority, client_certificates=True)) as server:
        await get(kubeconfig(tmp_path, server.url, user=plugin(tmp_path, script), certificate_authority_data=inline(authority.cert_pem)))

    assert len(server.requests) == 1
    assert left_in(temporary) == []


async def test_a_plugin_whose_certificate_cannot_be_used_leaves_no_key_behind(
    tmp_path: Path, temporary: Path, authority: trustme.CA
) -> None:
    key = text(authority.issue_cert("client.example").private_key_pem)
    user = plugin(tmp_path, credential(clientCertificateData="not base64!", clientKeyData=key))

    with pytest.raises(InputError, match="not base64"):
        await get(kubeconfig(tmp_path, "https://127.0.0.1:1", user=user))

    assert left_in(temporary) == []


async def test_a_plugin_may_return_a_certificate_and_a_token(tmp_path: Path, authority: trustme.CA) -> None:
    issued = authority.issue_cert("client.example")
    script = credential(token="both", clientCertificateData=text(issued.cert_chain_pems[0]), clientKeyData=text(issued.private_key_pem))

    async with serving(echo, server_side(authority, client_certificates=True)) as server:
        await get(kubeconfig(tmp_path, server.url, user=plugin(tmp_path, script), certificate_authority_data=inline(authority.cert_pem)))

    assert server.requests[0].headers["Authorization"] == "Bearer both"


async def test_a_plugin_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    user = plugin(tmp_path, "exit 0")
    (tmp_path / "plugin").chmod(0o600)

    with pytest.raises(InputError, match="plugin cannot be started: permission denied"):
        await get(kubeconfig(tmp_path, "http://127.0.0.1:1", user=user))


async def test_a_plugin_that_does_not_answer_is_ended_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.kubernetes.login.TIMEOUT", 1.0)  # A process that is ended while it starts is not waited for.

    with pytest.raises(InputError, match="plugin did not answer within 1 s"):
        await get(kubeconfig(tmp_path, "http://127.0.0.1:1", user=plugin(tmp_path, "exec sleep 60")))


def text(pem: trustme.Blob) -> str:
    return pem.bytes().decode()


async def test_fields_that_have_no_meaning_here_may_have_any_type(tmp_path: Path) -> None:
    async with serving(echo) as server:
        (tmp_path / "config").write_text(
            f"clusters: [{{name: c, cluster: {{server: '{server.url}', extensions: [{{extension: {{updated: 2026-01-01}}}}]}}}}]\n"
            "users: [{name: u, user: {token: x}}]\n"
            "contexts: [{name: test, context: {cluster: c, user: u}}]\n"
            "current-context: test\n"
        )
        await get(tmp_path / "config")

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo your session has expired >&2; exit 1", "plugin failed: your session has expired"),
        ("echo s3cr3t", r"returned no usable credentials \(JSONDecodeError\)"),
        ('echo \'{"status": {"other": "s3cr3t"}}\'', r"returned no usable credentials \(KeyError\)"),
    ],
)
async def test_a_plugin_that_fails_is_reported_with_its_message_but_not_its_output(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        await get(kubeconfig(tmp_path, "http://127.0.0.1:1", user=plugin(tmp_path, script)))

    assert "s3cr3t" not in str(caught.value)


async def test_a_plugin_that_is_not_installed_is_reported_with_its_install_hint(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin", "installHint": "get it\nthere"}}

    with pytest.raises(InputError, match="the credential plugin no-such-plugin is not installed: get it there"):
        await get(kubeconfig(tmp_path, "http://127.0.0.1:1", user=user))


async def test_a_plugin_that_fails_when_its_token_ran_out_makes_the_request_unauthorized(tmp_path: Path) -> None:
    script = f"[ -e {tmp_path}/used ] && exit 3\ntouch {tmp_path}/used\n{credential(token='short-lived')}"

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(401, "Unauthorized")

    async with serving(handler) as server:
        with pytest.raises(Unauthorized, match="the credential plugin .* failed"):
            await get(kubeconfig(tmp_path, server.url, user=plugin(tmp_path, script)))


async def test_impersonation_of_the_kubeconfig_is_sent_as_headers(tmp_path: Path) -> None:
    user = {"token": TOKEN, "as": "jane", "as-groups": ["dev", "ops"], "as-user-extra": {"why/not": ["so"]}}

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        sent = {name: request.headers.getall(name) for name in request.headers if name.lower().startswith("impersonate")}
        return json_response(sent)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url, user=user)) as client:
        sent = await client.get(POD, "lab", "x")

    assert sent == {"Impersonate-User": ["jane"], "Impersonate-Group": ["dev", "ops"], "Impersonate-Extra-why%2Fnot": ["so"]}


async def test_a_token_that_would_add_headers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="characters that are not allowed in a header") as caught:
        await get(kubeconfig(tmp_path, "http://127.0.0.1:1", user={"token": "s3cr3t\r\nX-Other: 1"}))

    assert "s3cr3t" not in str(caught.value)


async def test_in_a_pod_the_token_is_that_of_its_service_account(tmp_path: Path, authority: trustme.CA) -> None:
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("of-the-pod\n")
    (account / "namespace").write_text("grove-system")
    authority.cert_pem.write_to_path(account / "ca.crt")

    async with serving(echo, server_side(authority)) as server:
        namespace = await as_pod(server, account)

    assert namespace == "grove-system"
    assert server.requests[0].headers["Authorization"] == "Bearer of-the-pod"


async def as_pod(server: Loopback, account: Path) -> str:
    host, port = server.url.removeprefix("https://").split(":")
    environ = {"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    async with connected(Source(environ=environ, account=account), InstantClock()) as client:
        await client.get(POD, "lab", "x")
        return client.namespace
