"""Login: credentials, TLS settings and request headers, as kr8s derives them from a kubeconfig."""

import binascii
import hashlib
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import anyio.lowlevel
import orjson
from kr8s.asyncio import Api

from engine.errors import InputError
from engine.report.printable import clipped
from providers.kubernetes.kubeconfig import ClusterAccess


@dataclass(frozen=True, slots=True, eq=False)
class Login:
    """Credentials for one server. Its repr shows no secrets."""

    api: Api = field(repr=False)
    """kr8s's own object with these credentials. It has sent no request."""
    server: str
    token: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    """The headers for authentication and impersonation."""
    tls: ssl.SSLContext
    server_name: str | None
    """The name in the server's certificate if it differs from the server's host name."""
    proxy: str | None = field(repr=False)
    connection_digest: str = field(repr=False)
    """A digest of all settings of a connection: while it is the same, connections can be kept."""


async def login(access: ClusterAccess) -> Login:
    """Read the credentials (token, certificate or plugin) with kr8s. Raises `InputError` when that fails.

    OpenSSL reads keys from files only: they are in a folder of the login, which is deleted at its end.
    """
    server = access.cluster["server"]
    try:
        credentials = await credentials_of(access.user["exec"]) if access.user.get("exec") else {}
        with tempfile.TemporaryDirectory(prefix="engine-") as folder:
            config = access.config(credentials, Path(folder))
            api = Api(bypass_factory=True, kubeconfig=config, serviceaccount="", namespace=access.namespace)
            await api.reauthenticate()
            tls = await api.auth.ssl_context()  # type: ignore[no-untyped-call]
            digest = _connection_digest(api, access)
    except InputError as error:
        raise InputError(f"{server}: {error}") from None
    except Exception as error:
        # Not chained: the messages of some errors quote what could not be read.
        raise InputError(f"{server}: {_reason(error, access)}") from None
    auth = api.auth
    if tls is True:  # Nothing is configured for TLS.
        tls = ssl.create_default_context()
    elif not auth.server_ca_file and tls.verify_mode is ssl.CERT_REQUIRED:
        tls.load_default_certs()  # kr8s trusts no authority when there is a client certificate and none is configured
    token = (auth.token or "").strip()
    headers = tuple(_headers(token, access.user))
    if not all(value.isascii() and value.isprintable() for _, value in headers):
        raise InputError(f"{auth.server}: the token or an impersonated name contains characters that are not allowed in a header")
    return Login(api, auth.server, token, headers, tls, auth.tls_server_name, auth.proxy, digest)


def _connection_digest(api: Api, access: ClusterAccess) -> str:
    auth, skips = api.auth, bool(access.cluster.get("insecure-skip-tls-verify"))
    digest = hashlib.sha256(repr((auth.server, auth.tls_server_name, auth.proxy, skips)).encode())
    for path in (auth.server_ca_file, auth.client_cert_file, auth.client_key_file):
        digest.update(Path(path).read_bytes() if path else b"-")
    return digest.hexdigest()


def _headers(token: str, user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if token:
        yield "Authorization", f"Bearer {token}"
    for key, header in (("as", "Impersonate-User"), ("as-uid", "Impersonate-Uid")):
        if user.get(key):
            yield header, str(user[key])
    for group in user.get("as-groups") or ():
        yield "Impersonate-Group", str(group)
    for key, values in (user.get("as-user-extra") or {}).items():
        for value in values:
            yield f"Impersonate-Extra-{quote(key, safe='')}", str(value)


def _reason(error: Exception, access: ClusterAccess) -> str:
    """Why a login failed. Never contains what was read."""
    match error:
        case ssl.SSLError():
            return "its certificate, key or authority cannot be used: " + clipped(str(error.reason or "unreadable").lower(), 100)
        case binascii.Error():
            return "its certificate, key or authority is not base64"
    return f"the kubeconfig's credentials cannot be used: {_fields(access)}"


def _fields(access: ClusterAccess) -> str:
    """The names of the fields with which a kubeconfig describes the credentials."""
    return ", ".join(sorted(clipped(key, 60) for key in access.user)) or "none"


TIMEOUT = 60.0
"""Seconds that a plugin may take."""
RETURNED: Mapping[str, str] = {
    "token": "token",
    "clientCertificateData": "client-certificate-data",
    "clientKeyData": "client-key-data",
}
"""Field of what a plugin returns -> field of a user in a kubeconfig."""


async def credentials_of(plugin: Mapping[str, Any]) -> dict[str, str]:
    """The credentials that the plugin of a kubeconfig (`exec`) returns, as fields of a user.

    Raises `InputError`: with the last line that it wrote to stderr if it failed, never with its output. kr8s runs plugins as well, but
    writes the key that one returns to the temporary directory, and leaves it there.
    """
    name = f"the credential plugin {clipped(str(plugin['command']), 200)}"
    added = {str(each["name"]): str(each["value"]) for each in plugin.get("env") or ()}
    command = [str(plugin["command"]), *map(str, plugin.get("args") or ())]
    try:
        with anyio.fail_after(TIMEOUT):
            process = await anyio.run_process(command, check=False, env={**os.environ, **added})
    except FileNotFoundError:
        hint = clipped(" ".join(str(plugin.get("installHint") or "").split()), 300)
        raise InputError(f"{name} is not installed{f': {hint}' if hint else ''}") from None
    except TimeoutError:
        for _ in range(3):
            await anyio.lowlevel.checkpoint()  # The event loop closes the pipes of the process that it has killed.
        raise InputError(f"{name} did not answer within {TIMEOUT:.0f} s") from None
    except OSError as error:
        raise InputError(f"{name} cannot be started: {os.strerror(error.errno or 0).lower()}") from None
    if process.returncode:
        last_line = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise InputError(f"{name} failed: {clipped(last_line, 300) or f'exit code {process.returncode}'}")
    try:
        status = orjson.loads(process.stdout)["status"]
        returned = {field: status[key] for key, field in RETURNED.items() if isinstance(status.get(key), str)}
        return returned if "token" in returned else {field: returned[field] for field in RETURNED.values() if field != "token"}
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{name} returned no usable credentials ({type(error).__name__})") from None
