"""Tokens: every namespace has its default service account, and the Secrets of service accounts are filled."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import anyio

from engine.errors import AlreadyExists, NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, annotations_of, is_deleting, key_of, uid_of
from providers.sandbox.actors.reflector import Reflection, reflect
from providers.sandbox.actors.settings import Settings
from resources.base.kinds import NAMESPACE, SECRET, SERVICE_ACCOUNT

DEFAULT: Final = "default"
TOKEN_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"


class Errand(NamedTuple):
    """A namespace whose default account may be missing (no secret named), or a Secret that may want filling."""

    namespace: str
    secret: str = ""


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Keep default service accounts there; fill token Secrets, and delete those whose account is gone."""
    await Tokens(client, clock, settings).run()


class Tokens:
    """What the actor knows: namespaces, accounts and token Secrets. All of it can be read anew from the API."""

    def __init__(self, client: Client, clock: Clock, settings: Settings) -> None:
        self._client, self._clock, self._settings = client, clock, settings
        self._agenda: Agenda[Errand] = Agenda(clock)
        self._namespaces = Reflection(NAMESPACE, lambda key, old, new: self._agenda.add(Errand(key[1])))
        self._accounts = Reflection(SERVICE_ACCOUNT, self._saw_account)
        self._secrets = Reflection(SECRET, self._saw_secret)
        self._of_account: dict[Key, dict[Key, None]] = {}

    async def run(self) -> None:
        """Serve, for ever."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reflect, self._client, self._clock, self._namespaces, self._accounts, self._secrets)
            tasks.start_soon(self._agenda.work, self._look)

    def _saw_account(self, key: Key, old: Body | None, new: Body | None) -> None:
        if key[1] == DEFAULT and new is None:
            self._agenda.add(Errand(key[0]))
        if old is None or new is None or uid_of(old) != uid_of(new):
            for secret in self._of_account.get(key, ()):
                self._agenda.add(Errand(*secret))

    def _saw_secret(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is not None and (account := _account_of(old)):
            self._of_account.get(account, {}).pop(key, None)
        if new is not None and (account := _account_of(new)):
            self._of_account.setdefault(account, {})[key] = None
            self._agenda.add(Errand(*key))

    async def _look(self, errand: Errand) -> None:
        if not errand.secret:
            return await self._look_at_namespace(errand.namespace)
        secret = self._secrets.get(*errand)
        account_key = _account_of(secret) if secret else None
        if secret is None or account_key is None or is_deleting(secret):
            return
        account = await self._account(account_key)
        if account is None or annotations_of(secret).get(ACCOUNT_UID, uid_of(account)) != uid_of(account):
            await self._delete(secret)
        elif lacking := self._lacking(secret, account):
            await self._fill(secret, account, lacking)

    async def _look_at_namespace(self, name: str) -> None:
        namespace = self._namespaces.get("", name)
        if namespace is None or is_deleting(namespace) or self._accounts.get(name, DEFAULT):
            return
        try:
            body = {"apiVersion": SERVICE_ACCOUNT.api_version, "kind": SERVICE_ACCOUNT.name, "metadata": {"name": DEFAULT}}
            await self._client.create(SERVICE_ACCOUNT, name, body)
        except (AlreadyExists, NotFound):
            return

    async def _account(self, key: Key) -> Body | None:
        """The account; asked for where the watch has not told of it, because a Secret without one is deleted."""
        if seen := self._accounts.get(*key):
            return seen
        try:
            return await self._client.get(SERVICE_ACCOUNT, *key)
        except NotFound:
            return None

    def _lacking(self, secret: Body, account: Body) -> dict[str, str]:
        namespace, name = key_of(account)
        data = {"token": _unsigned_token(secret, account), "namespace": namespace, "ca.crt": self._settings.certificate_authority}
        there = secret.get("data") or {}
        return {key: base64.b64encode(text.encode()).decode() for key, text in data.items() if text and not there.get(key)}

    async def _fill(self, secret: Body, account: Body, lacking: Mapping[str, str]) -> None:
        metadata = {"resourceVersion": secret["metadata"]["resourceVersion"], "annotations": {ACCOUNT_UID: uid_of(account)}}
        self._secrets.assume(await self._client.patch(SECRET, *key_of(secret), {"metadata": metadata, "data": dict(lacking)}))

    async def _delete(self, secret: Body) -> None:
        try:
            await self._client.delete(SECRET, *key_of(secret), uid=uid_of(secret))
        except NotFound:
            return


def _account_of(secret: Body) -> Key | None:
    """The service account whose token the Secret holds, if that is what it is for."""
    name = annotations_of(secret).get(ACCOUNT)
    return (secret["metadata"]["namespace"], name) if secret.get("type") == TOKEN_TYPE and name else None


def _unsigned_token(secret: Body, account: Body) -> str:
    """A token with the claims that the real one would have and no signature: it opens nothing."""
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
