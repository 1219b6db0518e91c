"""Token: gives every namespace its default service account, and fills the token Secrets of service accounts."""

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import anyio

from grove_sandbox.actors.body import Body, Key, annotations_of, is_deleting, key_of, uid_of
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import InformerStore, delete, run_informers
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import AlreadyExists, Client, Clock, NotFound, kinds

DEFAULT: Final = "default"
TOKEN_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"


class AccountItem(NamedTuple):
    """A namespace whose default account may be missing (no secret named), or a Secret whose token may be missing."""

    namespace: str
    secret: str = ""


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Create default service accounts, fill token Secrets, and delete those whose account is gone."""
    await TokenController(client, clock, options).run()


class TokenController:
    """Knows namespaces, service accounts and token Secrets, all of it from the API."""

    def __init__(self, client: Client, clock: Clock, options: ActorOptions) -> None:
        self._client, self._clock, self._options = client, clock, options
        self._queue: WorkQueue[AccountItem] = WorkQueue(clock)
        self._namespaces = InformerStore(kinds.NAMESPACE, lambda key, old, new: self._queue.add(AccountItem(key[1])))
        self._accounts = InformerStore(kinds.SERVICE_ACCOUNT, self._on_account)
        self._secrets = InformerStore(kinds.SECRET, self._on_secret)
        self._secrets_of: dict[Key, dict[Key, None]] = {}
        """Token Secrets by their account."""

    async def run(self) -> None:
        """Run the controller until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_informers, self._client, self._clock, self._namespaces, self._accounts, self._secrets)
            tasks.start_soon(self._queue.run, self._process)

    def _on_account(self, key: Key, old: Body | None, new: Body | None) -> None:
        if key[1] == DEFAULT and new is None:
            self._queue.add(AccountItem(key[0]))
        if old is None or new is None or uid_of(old) != uid_of(new):
            for secret in self._secrets_of.get(key, ()):
                self._queue.add(AccountItem(*secret))

    def _on_secret(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None and (account := _account_of(old)):
            self._secrets_of.get(account, {}).pop(key, None)
        if new is not None and (account := _account_of(new)):
            self._secrets_of.setdefault(account, {})[key] = None
            self._queue.add(AccountItem(*key))

    async def _process(self, item: AccountItem) -> None:
        if not item.secret:
            return await self._ensure_default_account(item.namespace)
        secret = self._secrets.get(*item)
        account_key = _account_of(secret) if secret else None
        if secret is None or account_key is None or is_deleting(secret):
            return
        account = await self._account(account_key)
        if account is None or annotations_of(secret).get(ACCOUNT_UID, uid_of(account)) != uid_of(account):
            await delete(self._client, kinds.SECRET, secret)
        elif missing := self._missing_data(secret, account):
            patch = {"metadata": {"annotations": {ACCOUNT_UID: uid_of(account)}}, "data": missing}
            await self._secrets.patch(self._client, secret, patch)

    async def _ensure_default_account(self, name: str) -> None:
        namespace = self._namespaces.get("", name)
        if namespace is None or is_deleting(namespace) or self._accounts.get(name, DEFAULT):
            return
        body = {"apiVersion": kinds.SERVICE_ACCOUNT.api_version, "kind": kinds.SERVICE_ACCOUNT.name, "metadata": {"name": DEFAULT}}
        with suppress(AlreadyExists, NotFound):
            await self._client.create(kinds.SERVICE_ACCOUNT, name, body)

    async def _account(self, key: Key) -> Body | None:
        """The account. One that is not in the store is read from the server, because the Secret of a missing one is deleted."""
        if known := self._accounts.get(*key):
            return known
        try:
            return await self._client.get(kinds.SERVICE_ACCOUNT, *key)
        except NotFound:
            return None

    def _missing_data(self, secret: Body, account: Body) -> dict[str, str]:
        namespace, _ = key_of(account)
        data = {"token": _unsigned_token(secret, account), "namespace": namespace, "ca.crt": self._options.certificate_authority}
        live = secret.get("data") or {}
        return {key: base64.b64encode(text.encode()).decode() for key, text in data.items() if text and not live.get(key)}


def _account_of(secret: Body) -> Key | None:
    """The service account whose token the Secret holds; None if it is no token Secret."""
    name = annotations_of(secret).get(ACCOUNT)
    return (secret["metadata"]["namespace"], name) if secret.get("type") == TOKEN_TYPE and name else None


def _unsigned_token(secret: Body, account: Body) -> str:
    """A token with the claims of a real one and without a signature: no server accepts it."""
    namespace, name = key_of(account)
    claims = {
        "iss": "kubernetes/serviceaccount",
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": secret["metadata"]["name"],
        "kubernetes.io/serviceaccount/service-account.name": name,
        "kubernetes.io/serviceaccount/service-account.uid": uid_of(account),
        "sub": f"system:serviceaccount:{namespace}:{name}",
    }
    return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{_encoded(claims)}."


def _encoded(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part, sort_keys=True).encode()).decode().rstrip("=")
