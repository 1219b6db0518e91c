"""Token: default accounts, and Secrets of service accounts."""

import base64
from typing import Any

import pytest

from grove_sandbox.actors.options import ActorOptions
from resources.base.kinds import SECRET, SERVICE_ACCOUNT
from sandbox.tests.actors.stage import running

pytestmark = pytest.mark.anyio


def account(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "ml"}}


def token(name: str, of: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ml", "annotations": {"kubernetes.io/service-account.name": of}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/service-account-token"}


async def test_every_namespace_has_its_default_account_also_after_its_deletion() -> None:
    async with running("token") as stage:
        assert "default" in await stage.names(SERVICE_ACCOUNT)

        await stage.client.delete(SERVICE_ACCOUNT, "ml", "default")
        await stage.turn(0)
        assert "default" in await stage.names(SERVICE_ACCOUNT)


async def test_a_token_is_filled_and_bound_to_its_account() -> None:
    async with running("token", options=ActorOptions(certificate_authority="PEM")) as stage:
        made = await stage.create(account("d"))
        await stage.create(token("d-token", "d"))
        await stage.turn(0)

        secret = await stage.client.get(SECRET, "ml", "d-token")
        data = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
        assert (data["namespace"], data["ca.crt"], data["token"].count(".")) == ("ml", "PEM", 2)
        assert secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == made["metadata"]["uid"]


async def test_a_token_is_deleted_with_its_account_also_if_that_has_a_successor() -> None:
    async with running("token") as stage:
        await stage.create(account("d"), token("d-token", "d"))
        await stage.turn(0)
        await stage.client.delete(SERVICE_ACCOUNT, "ml", "d")
        await stage.create(account("d"))
        await stage.turn(0)

        assert await stage.get(SECRET, "d-token") is None


async def test_secrets_of_other_types_are_not_touched() -> None:
    async with running("token") as stage:
        made = await stage.create({**token("opaque", "d"), "type": "Opaque"})
        await stage.turn(0)

        assert await stage.get(SECRET, "opaque") == made
