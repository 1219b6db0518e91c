"""A sandbox as a block: its actors work while it lasts, under names of their own, and nothing outlives it."""

import ssl
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.errors import NotFound
from engine.runtime.clock import SystemClock
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.clients import kubeconfig
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from grove_sandbox.http.tls import loopback_identity
from grove_sandbox.process import sandbox
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base.kinds import CRD, DEVICE_CLASS, NODE, PODCLIQUESET, RESOURCE_SLICE
from sandbox.tests.web import web
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


async def until_ready(client: InProcessClient, name: str) -> dict[str, Any]:
    """The node, once its kubelet has said that it is Ready."""
    listing = await client.list(NODE)
    for node in listing.items:
        if node.get("status", {}).get("conditions"):
            return node
    async for _, node in client.watch(NODE, since=listing.revision):
        if node["metadata"]["name"] == name and node.get("status", {}).get("conditions"):
            return node
    raise AssertionError("the watch has ended")


async def test_each_actor_writes_under_a_name_of_its_own(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with sandbox(SystemClock(), tmp_path, actors=("kubelet",), options=ActorOptions(nodes=1)) as box:
            node = await until_ready(box.client(), "node-0000")

    assert {"sandbox-kubelet"} == {entry["manager"] for entry in node["metadata"]["managedFields"]}


async def test_an_actor_that_is_left_out_does_nothing(tmp_path: Path) -> None:
    async with sandbox(SystemClock(), tmp_path, actors=("scheduler",), options=ActorOptions(nodes=1)) as box:
        assert [] == (await box.client().list(NODE)).items


async def test_our_kinds_are_defined_from_the_start_unless_others_are_asked_for(tmp_path: Path) -> None:
    async with sandbox(VirtualClock(), tmp_path, actors=()) as ours:
        assert [] == (await ours.client().list(PODCLIQUESET)).items
    async with sandbox(VirtualClock(), tmp_path, actors=(), definitions=()) as bare:
        assert [] == (await bare.client().list(CRD)).items
        with pytest.raises(NotFound):
            await bare.client().list(PODCLIQUESET)


async def test_the_driver_of_domains_is_installed_even_where_nobody_plays_it(tmp_path: Path) -> None:
    async with sandbox(VirtualClock(), tmp_path, actors=(), options=ActorOptions(nodes=2)) as box:
        client = box.client()

        assert [] == (await client.list(COMPUTE_DOMAIN)).items
        slices = [(one["spec"]["nodeName"], len(one["spec"]["devices"])) for one in (await client.list(RESOURCE_SLICE)).items]
        assert [("node-0000", 2), ("node-0001", 2)] == slices
        assert 4 == len((await client.list(DEVICE_CLASS)).items)


async def test_addons_are_installed_by_name_and_grove_may_be_left_out(tmp_path: Path) -> None:
    async with sandbox(VirtualClock(), tmp_path, actors=(), addons=("lws", "volcano"), grove=False) as box:
        groups = {kind.group for kind in await box.client().kinds()}

    assert {"leaderworkerset.x-k8s.io", "scheduling.volcano.sh", COMPUTE_DOMAIN.group} <= groups
    assert not groups & {"grove.io", "scheduler.grove.io", "scheduling.run.ai"}


async def test_what_goes_wrong_in_the_block_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="mine"):
        async with sandbox(SystemClock(), tmp_path):
            raise LookupError("mine")


async def test_what_goes_in_without_http_is_seen_over_http(tmp_path: Path) -> None:
    async with sandbox(VirtualClock(), tmp_path, actors=()) as box, web(box) as http:
        await box.client().create(NODE, "", {"metadata": {"name": "a"}})

        assert 200 == (await http.ask("GET", "/api/v1/nodes/a")).code


async def test_its_token_is_not_told_by_accident(tmp_path: Path) -> None:
    async with sandbox(VirtualClock(), tmp_path, actors=()) as box:
        assert box.token not in repr(box)


def test_a_kubeconfig_replaces_the_one_before_and_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    path.chmod(0o644)

    kubeconfig.write(path, server="https://127.0.0.1:1", authority=b"pem", logins={"c": kubeconfig.Login("ann", "secret")})

    assert 0o600 == path.stat().st_mode & 0o777
    assert "secret" in path.read_text()
    assert [path] == list(tmp_path.iterdir())


def test_every_sandbox_has_an_authority_of_its_own() -> None:
    one, other = loopback_identity(), loopback_identity()

    assert one.authority != other.authority
    assert "PRIVATE" not in repr(one)
    assert isinstance(one.context(), ssl.SSLContext)
