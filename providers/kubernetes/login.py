"""Login: what kr8s makes of a kubeconfig, held together for as long as the server accepts it."""

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
from providers.kubernetes.kubeconfig import Target

PLUGIN_PATIENCE = 60.0
"""Seconds that a credential plugin may take."""

_vault: ContextVar[str] = ContextVar("vault")


@asynccontextmanager
async def _file_in_vault(*_: Any, **__: Any) -> AsyncGenerator[anyio.Path]:
    handle, name = tempfile.mkstemp(dir=_vault.get())
    with open(handle, "wb"):  # noqa: ASYNC230  an empty file, in a folder of our own
        pass
    yield anyio.Path(name)


# kr8s writes keys and certificates to the temporary directory, on every login anew, and leaves them there. OpenSSL wants a file to
# read a key from, so files there must be: they go to a folder that is gone, with everything in it, once they have been read.
setattr(kr8s._auth, "NamedTemporaryFile", _file_in_vault)  # noqa: B010  a name that kr8s does not export


@dataclass(frozen=True, slots=True, eq=False)
class Login:
    """Who we are to one server. What is secret in it shows in no repr."""

    auth: KubeAuth = field(repr=False)
    server: str
    token: str = field(repr=False)
    identity: tuple[tuple[str, str], ...] = field(repr=False)
    """The headers that say who asks, and in whose place."""
    tls: ssl.SSLContext | bool
    server_name: str | None
    """Whose certificate to expect, when it is not the server's own name."""
    proxy: str | None = field(repr=False)
    seal: str = field(repr=False)
    """A digest of everything that a connection is made with: while it stays, connections may stay."""


async def login(target: Target) -> Login:
    """Credentials for the target, as kr8s reads them: tokens, certificates, plugins. Raises `InputError` when there are none to be had."""
    auth = KubeAuth(kubeconfig=target.config(), serviceaccount="", namespace=target.namespace)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory(prefix="engine-") as folder:
        scope = _vault.set(folder)
        try:
            with anyio.fail_after(PLUGIN_PATIENCE):
                await auth
            tls = await auth.ssl_context()  # type: ignore[no-untyped-call]
            seal = _seal(auth)
        except Exception as error:
            # Not chained: the texts of some of these quote what they could not read.
            raise InputError(f"{target.cluster['server']}: {_why(error, target)}") from None
        finally:
            _vault.reset(scope)
    if isinstance(tls, ssl.SSLContext) and not auth.server_ca_file and tls.verify_mode is ssl.CERT_REQUIRED:
        tls.load_default_certs()  # kr8s trusts nobody when there is a client certificate and no authority
    token = (auth.token or "").strip()
    identity = tuple(_identity(token, target.user))
    if not all(value.isascii() and value.isprintable() for _, value in identity):
        raise InputError(f"{auth.server}: the token, or a name beside it, holds characters that no header can carry")
    return Login(auth, auth.server, token, identity, tls, auth.tls_server_name, auth.proxy, seal)


def _seal(auth: KubeAuth) -> str:
    seal = hashlib.sha256(repr((auth.server, auth.tls_server_name, auth.proxy, auth._insecure_skip_tls_verify)).encode())
    for path in (auth.server_ca_file, auth.client_cert_file, auth.client_key_file):
        seal.update(Path(path).read_bytes() if path else b"-")
    return seal.hexdigest()


def _identity(token: str, user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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


def _why(error: Exception, target: Target) -> str:
    """What to tell of a failed login: what it was about, never what it read."""
    plugin = target.user.get("exec")
    if isinstance(plugin, dict):
        command = clipped(str(plugin["command"]), 200)
        match error:
            case FileNotFoundError():
                hint = clipped(" ".join(str(plugin.get("installHint") or "").split()), 300)
                return f"the credential plugin {command} is not installed{f': {hint}' if hint else ''}"
            case TimeoutError():
                return f"the credential plugin {command} did not answer within {PLUGIN_PATIENCE:.0f} s"
            case RuntimeError():
                said = clipped(str(error).strip().rpartition("\n")[2], 300)
                return f"the credential plugin {command} failed: {said}"
        return f"the credential plugin {command} gave no credentials that can be used ({type(error).__name__})"
    match error:
        case ssl.SSLError():
            return "its certificate, key or authority cannot be used: " + clipped(str(error.reason or "unreadable").lower(), 100)
        case binascii.Error():
            return "its certificate, key or authority is not base64"
    return f"the kubeconfig's credentials cannot be used: {_kind(target)}"


def _kind(target: Target) -> str:
    """Which sort of credentials a kubeconfig holds, by the names of its fields."""
    return ", ".join(sorted(clipped(key, 60) for key in target.user)) or "none"
