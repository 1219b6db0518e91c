"""The client against an API server: verbs, refusals, paged lists and watches."""

import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from msgspec.structs import replace

from engine.errors import AlreadyExists, ClusterError, Conflict, Expired, Forbidden, Invalid, NotFound, Unauthorized
from engine.ids import Kind
from engine.runtime.clock import SystemClock
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base.kinds import CRD, EVENT, NAMESPACE, NODE, POD, SECRET, SERVICE_ACCOUNT
from tests.contract.server import Server
from tests.controlplane.cluster import ControlPlane
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")


@pytest.fixture
async def client(server: Server) -> AsyncIterator[KubernetesClient]:
    async with connected(Source(str(server.kubeconfig)), SystemClock()) as connection:
        yield connection


@pytest.fixture
async def namespace(client: KubernetesClient) -> str:
    """A namespace of the test's own."""
    name = f"client-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"of": "the-test"}}, "data": data}


async def test_an_object_lives_through_every_verb(client: KubernetesClient, namespace: str) -> None:
    made = await client.create(CONFIG_MAP, namespace, config_map("one", a="1"))
    replaced = await client.replace(CONFIG_MAP, namespace, "one", {**made, "data": {"a": "2"}})
    merged = await client.patch(CONFIG_MAP, namespace, "one", {"data": {"b": "3"}})
    patched = await client.patch(CONFIG_MAP, namespace, "one", [{"op": "remove", "path": "/data/b"}], how="json")
    strategic = await client.patch(CONFIG_MAP, namespace, "one", {"data": {"c": "4"}}, how="strategic")
    seen = await client.get(CONFIG_MAP, namespace, "one")
    await client.delete(CONFIG_MAP, namespace, "one", uid=made["metadata"]["uid"])

    assert [each["data"] for each in (made, replaced, merged, patched, strategic)] == [
        {"a": "1"},
        {"a": "2"},
        {"a": "2", "b": "3"},
        {"a": "2"},
        {"a": "2", "c": "4"},
    ]
    assert seen == strategic
    with pytest.raises(NotFound, match='configmaps "one" not found'):
        await client.get(CONFIG_MAP, namespace, "one")


async def test_what_is_written_is_written_under_our_name(client: KubernetesClient, namespace: str) -> None:
    made = await client.create(CONFIG_MAP, namespace, config_map("one"))

    assert {entry["manager"] for entry in made["metadata"]["managedFields"]} == {"engine"}


async def test_applying_takes_a_field_from_another_only_by_force(client: KubernetesClient, namespace: str) -> None:
    other = KubernetesClient(client._api, "somebody-else")
    await other.patch(CONFIG_MAP, namespace, "one", config_map("one", a="theirs"), how="apply")

    with pytest.raises(Conflict, match="somebody-else"):
        await client.patch(CONFIG_MAP, namespace, "one", config_map("one", a="ours"), how="apply")
    forced = await client.patch(CONFIG_MAP, namespace, "one", config_map("one", a="ours"), how="apply", force=True)

    assert forced["data"] == {"a": "ours"}


async def test_a_dry_run_leaves_nothing(client: KubernetesClient, namespace: str) -> None:
    await client.trying().create(CONFIG_MAP, namespace, config_map("one"))

    assert (await client.list(CONFIG_MAP, namespace, labels="of=the-test")).items == []


async def test_every_refusal_is_the_situation_it_should_be(client: KubernetesClient, namespace: str) -> None:
    made = await client.create(CONFIG_MAP, namespace, config_map("one"))
    stale = {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}

    with pytest.raises(AlreadyExists, match='"one" already exists'):
        await client.create(CONFIG_MAP, namespace, config_map("one"))
    with pytest.raises(Conflict, match="modified"):
        await client.replace(CONFIG_MAP, namespace, "one", stale)
    with pytest.raises(Conflict, match="modified"):
        await client.patch(CONFIG_MAP, namespace, "one", {"metadata": {"resourceVersion": "1"}, "data": {"a": "x"}})
    with pytest.raises(Conflict, match="UID"):
        await client.delete(CONFIG_MAP, namespace, "one", uid="another")
    with pytest.raises(Conflict, match="ResourceVersion"):
        await client.delete(CONFIG_MAP, namespace, "one", revision="1")
    with pytest.raises(Invalid, match="metadata.name"):
        await client.create(CONFIG_MAP, namespace, config_map("Not A Name"))
    with pytest.raises(NotFound):
        await client.list(Kind("no.such.group", "v1", "Thing", "things"))


async def test_a_patch_of_another_incarnation_is_a_conflict(client: KubernetesClient, namespace: str) -> None:
    """The preconditions in the engine's merge patches: uid and revision of the observed object."""
    first = await client.create(CONFIG_MAP, namespace, config_map("one"))
    await client.delete(CONFIG_MAP, namespace, "one")
    await client.create(CONFIG_MAP, namespace, config_map("one"))
    judged = {key: first["metadata"][key] for key in ("uid", "resourceVersion")}

    with pytest.raises(Conflict):
        await client.patch(CONFIG_MAP, namespace, "one", {"metadata": judged, "data": {"a": "x"}})


async def test_a_list_goes_on_over_its_pages_and_raw_lists_say_the_same(client: KubernetesClient, namespace: str) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(510):
            tasks.start_soon(client.create, CONFIG_MAP, namespace, config_map(f"c{number:03}", n=str(number)))

    listing = await client.list(CONFIG_MAP, namespace, labels="of=the-test")
    raw, _ = await client.lives(CONFIG_MAP, namespace, "of=the-test", lambda _, content: content)
    one = await client.list(CONFIG_MAP, namespace, fields="metadata.name=c007")

    assert [item["metadata"]["name"] for item in listing.items] == [f"c{number:03}" for number in range(510)]
    assert [live.body for live in raw] == listing.items
    assert [(live.id, live.uid) for live in raw] == [
        (CONFIG_MAP.id(namespace, item["metadata"]["name"]), item["metadata"]["uid"]) for item in listing.items
    ]
    assert [item["data"] for item in one.items] == [{"n": "7"}]
    assert listing.revision.isdecimal()


async def test_a_watch_goes_on_from_a_list_and_misses_nothing(client: KubernetesClient, namespace: str) -> None:
    await client.create(CONFIG_MAP, namespace, config_map("before"))
    revision = (await client.list(CONFIG_MAP, namespace, labels="of=the-test")).revision
    await client.create(CONFIG_MAP, namespace, config_map("one"))
    await client.patch(CONFIG_MAP, namespace, "one", {"data": {"a": "1"}})
    await client.patch(CONFIG_MAP, namespace, "before", {"metadata": {"labels": {"of": "nobody"}}})
    await client.delete(CONFIG_MAP, namespace, "one")

    events: list[tuple[str, str]] = []
    with anyio.fail_after(PATIENCE):
        async with aclosing(client.watch(CONFIG_MAP, namespace, since=revision, labels="of=the-test")) as stream:
            async for type, body in stream:
                if type != "BOOKMARK":
                    events.append((type, body["metadata"]["name"]))
                if len(events) == 4:
                    break

    assert events == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "before"), ("DELETED", "one")]


async def test_a_revision_from_before_the_servers_memory_is_expired(client: KubernetesClient, namespace: str) -> None:
    """The server keeps no changes of a new kind from before its definition."""
    thing = Kind(f"{namespace}.example.com", "v1", "Thing", "things")
    await client.create(CRD, "", definition(thing))
    with anyio.fail_after(PATIENCE):
        await served(client, thing)

        with pytest.raises(Expired):
            async with aclosing(client.watch(thing, namespace, since="1")) as stream:
                async for _ in stream:
                    pass
    await client.delete(CRD, "", f"things.{thing.group}")


def definition(kind: Kind) -> dict[str, Any]:
    """A CRD for objects with any fields."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.name, "listKind": f"{kind.name}List", "plural": kind.plural, "singular": kind.name.lower()},
            "versions": [{"name": kind.version, "served": True, "storage": True, "schema": schema}],
        },
    }


async def served(client: KubernetesClient, kind: Kind) -> None:
    """Wait until the server serves the kind."""
    while True:
        try:
            await client.list(kind)
        except NotFound:
            continue
        return


async def test_a_pod_is_bound_once(client: KubernetesClient, namespace: str) -> None:
    node = f"node-of-{namespace}"
    await client.create(NODE, "", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    await account(client, namespace)
    containers = [{"name": "main", "image": "example/none"}]
    await client.create(POD, namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": target}

    bound = await client.create(POD, namespace, binding, name="p", subresource="binding")
    again = None
    try:
        await client.create(POD, namespace, binding, name="p", subresource="binding")
    except ClusterError as error:
        again = error
    await client.delete(POD, namespace, "p", grace=0)

    assert (bound["kind"], bound["status"]) == ("Status", "Success")
    assert isinstance(again, Conflict)
    with pytest.raises(NotFound):
        await client.get(POD, namespace, "p")
    await client.delete(NODE, "", node)


async def account(client: KubernetesClient, namespace: str) -> None:
    """Create the default service account unless it exists: the real server accepts no pod without it."""
    try:
        await client.create(SERVICE_ACCOUNT, namespace, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    except AlreadyExists:
        return


async def test_what_is_served_is_known_with_its_subresources(client: KubernetesClient) -> None:
    kinds = await client.kinds()
    found = await client.discover()

    assert {POD, NODE, NAMESPACE, SECRET, EVENT} <= set(kinds)
    assert found.incomplete == {}
    assert found.serves(POD)
    assert not found.serves(replace(POD, version="v9"))


async def test_kr8s_speaks_through_the_same_session(client: KubernetesClient, namespace: str) -> None:
    """Its lookups and its objects work with our session."""
    await client.create(CONFIG_MAP, namespace, config_map("one", a="1"))

    found = [one async for one in client._api.get("configmaps", namespace=namespace, label_selector="of=the-test", raw=True)]

    assert [one["data"] for one in found if isinstance(one, dict)] == [{"a": "1"}]
    assert "gitVersion" in await client._api.version()


async def test_a_token_that_the_server_does_not_know_is_unauthorized_and_is_not_told(server: Server, tmp_path: Path) -> None:
    config = yaml.load(server.kubeconfig.read_text(), yaml.CSafeLoader)
    config["users"][0]["user"] = {"token": "s3cr3t-and-stale"}
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))

    async with connected(Source(str(tmp_path / "kubeconfig")), SystemClock()) as stranger:
        with pytest.raises(Unauthorized, match="log in again") as caught:
            await stranger.list(CONFIG_MAP)

    assert "s3cr3t" not in f"{caught.value} {caught.value.status}"


@pytest.mark.e2e
async def test_an_api_service_that_nobody_answers_for_is_a_hole_and_hides_nothing_else(api_server: ControlPlane) -> None:
    service = Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)
    group = f"broken-{uuid.uuid4().hex[:8]}.example.com"
    registration = {
        "apiVersion": service.api_version,
        "kind": service.name,
        "metadata": {"name": f"v1.{group}"},
        "spec": {
            "group": group,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": "nobody", "namespace": "default"},
        },
    }
    async with connected(Source(str(api_server.kubeconfig())), SystemClock()) as client:
        await client.create(service, "", registration)
        try:
            with anyio.fail_after(PATIENCE):
                while f"{group}/v1" not in (found := await client.discover()).incomplete:
                    pass
        finally:
            await client.delete(service, "", f"v1.{group}")

    assert found.serves(POD)


@pytest.mark.e2e
async def test_who_may_do_nothing_is_told_so_at_once(api_server: ControlPlane) -> None:
    async with connected(Source(str(api_server.kubeconfig("guest"))), SystemClock()) as guest:
        with pytest.raises(Forbidden, match='User "guest" cannot list resource "pods"'):
            await guest.list(POD)
        with pytest.raises(Forbidden):
            await guest.create(CONFIG_MAP, "default", config_map("one"))
