"""Login: credentials, TLS settings and request headers, as kr8s derives them from a kubeconfig."""

import binascii
import hashlib
import ssl
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import kr8s._auth
from kr8s._auth import KubeAuth

from engine.errors import InputError
from engine.report.printable import clipped
from providers.kubernetes.kubeconfig import ClusterAccess

PLUGIN_TIMEOUT = 60.0
"""Seconds that a credential plugin may take."""

_key_folder: ContextVar[str] = ContextVar("key_folder")


@asynccontextmanager
async def _file_in_key_folder(*_: Any, **__: Any) -> AsyncGenerator[anyio.Path]:
    """Replaces kr8s's temporary files: an empty file in the folder of the current login."""
    handle, name = tempfile.mkstemp(dir=_key_folder.get())
    with open(handle, "wb"):  # noqa: ASYNC230  an empty file, in a folder of our own
        pass
    yield anyio.Path(name)


# kr8s writes keys and certificates to the temporary directory at every login, and leaves them there. OpenSSL can read keys only from files,
# so they are written to a folder of our own, which is deleted as soon as they have been read.
setattr(kr8s._auth, "NamedTemporaryFile", _file_in_key_folder)  # noqa: B010  a name that kr8s does not export


@dataclass(frozen=True, slots=True, eq=False)
class Login:
    """Credentials for one server. Its repr shows no secrets."""

    auth: KubeAuth = field(repr=False)
    server: str
    token: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    """The headers for authentication and impersonation."""
    tls: ssl.SSLContext | bool
    server_name: str | None
    """The name in the server's certificate if it differs from the server's host name."""
    proxy: str | None = field(repr=False)
    connection_digest: str = field(repr=False)
    """A digest of all settings of a connection: while it is the same, connections can be kept."""


async def login(access: ClusterAccess) -> Login:
    """Read the credentials (token, certificate or plugin) with kr8s. Raises `InputError` when that fails."""
    auth = KubeAuth(kubeconfig=access.config(), serviceaccount="", namespace=access.namespace)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="engine-") as folder:
        scope = _key_folder.set(folder)
        try:
            with anyio.fail_after(PLUGIN_TIMEOUT):
                await auth
            tls = await auth.ssl_context()  # type: ignore[no-untyped-call]
            digest = _connection_digest(auth)
        except Exception as error:
            # Not chained: the messages of some errors quote what could not be read.
            raise InputError(f"{access.cluster['server']}: {_reason(error, access)}") from None
        finally:
            _key_folder.reset(scope)
    if isinstance(tls, ssl.SSLContext) and not auth.server_ca_file and tls.verify_mode is ssl.CERT_REQUIRED:
        tls.load_default_certs()  # kr8s trusts no authority when there is a client certificate and none is configured
    token = (auth.token or "").strip()
    headers = tuple(_headers(token, access.user))
    if not all(value.isascii() and value.isprintable() for _, value in headers):
        raise InputError(f"{auth.server}: the token or an impersonated name contains characters that are not allowed in a header")
    return Login(auth, auth.server, token, headers, tls, auth.tls_server_name, auth.proxy, digest)


def _connection_digest(auth: KubeAuth) -> str:
    digest = hashlib.sha256(repr((auth.server, auth.tls_server_name, auth.proxy, auth._insecure_skip_tls_verify)).encode())
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
    plugin = access.user.get("exec")
    if isinstance(plugin, dict):
        command = clipped(str(plugin["command"]), 200)
        match error:
            case FileNotFoundError():
                hint = clipped(" ".join(str(plugin.get("installHint") or "").split()), 300)
                return f"the credential plugin {command} is not installed{f': {hint}' if hint else ''}"
            case TimeoutError():
                return f"the credential plugin {command} did not answer within {PLUGIN_TIMEOUT:.0f} s"
            case RuntimeError():
                last_line = clipped(str(error).strip().rpartition("\n")[2], 300)
                return f"the credential plugin {command} failed: {last_line}"
        return f"the credential plugin {command} returned no usable credentials ({type(error).__name__})"
    match error:
        case ssl.SSLError():
            return "its certificate, key or authority cannot be used: " + clipped(str(error.reason or "unreadable").lower(), 100)
        case binascii.Error():
            return "its certificate, key or authority is not base64"
    return f"the kubeconfig's credentials cannot be used: {_fields(access)}"


def _fields(access: ClusterAccess) -> str:
    """The names of the fields with which a kubeconfig describes the credentials."""
    return ", ".join(sorted(clipped(key, 60) for key in access.user)) or "none"
