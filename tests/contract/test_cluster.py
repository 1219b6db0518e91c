"""The cluster behind a client: what it sees, and what becomes of each operation, on an API server."""

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine.errors import AlreadyExists, Conflict
from engine.event import Event
from engine.ids import Kind, Owner, ResourceId
from engine.operation import BoundOwner, Cause, Expect, Operation, Unknown
from engine.runtime.clock import SystemClock
from engine.runtime.provider import Scope
from engine.verb import Verb
from providers.cluster import Cluster
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base.kinds import EVENT, NAMESPACE, POD, SECRET, SERVICE, SERVICE_ACCOUNT
from tests.contract.server import Server
from tests.operations import operation_of

pytestmark = pytest.mark.anyio

KEPT = "example.com/kept"
OURS = {"app.kubernetes.io/managed-by": "grove-operator"}


@pytest.fixture
async def client(server: Server) -> AsyncIterator[KubernetesClient]:
    async with connected(Source(str(server.kubeconfig)), SystemClock()) as connection:
        yield connection


@pytest.fixture
def cluster(client: KubernetesClient) -> Cluster:
    return Cluster(client, SystemClock())


@pytest.fixture
async def namespace(client: KubernetesClient) -> str:
    """A namespace of the test's own."""
    name = f"cluster-{uuid.uuid4().hex[:8]}"
    await client.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def service(namespace: str, name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": OURS, **metadata},
        "spec": {"clusterIP": "None", "selector": {"a": "b"}},
    }


def operation(verb: Verb, id: ResourceId, body: dict[str, Any] | None = None, **fields: Any) -> Operation:
    return operation_of(verb, id, why="the test says so", cause=Cause.INTENT, body=body or {}, **fields)


def judged(body: Any) -> Expect:
    return Expect(body["metadata"]["uid"], body["metadata"]["resourceVersion"])


async def test_a_look_sees_roots_and_what_bears_our_label_and_misses_no_kind_that_is_not_served(
    client: KubernetesClient, cluster: Cluster, namespace: str
) -> None:
    await client.create(SERVICE, namespace, service(namespace, "ours"))
    await client.create(SERVICE, namespace, service(namespace, "theirs", labels={}))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "root"}}
    await client.create(SERVICE_ACCOUNT, namespace, account)
    unknown = Kind("nobody.example.com", "v1", "Thing", "things")

    seen = await cluster.observe(
        Scope((SERVICE_ACCOUNT,), (SERVICE, SECRET, unknown), "app.kubernetes.io/managed-by=grove-operator", (namespace,))
    )

    assert SERVICE_ACCOUNT.id(namespace, "root") in {live.id for live in seen.roots}
    assert [live.id for live in seen.children] == [SERVICE.id(namespace, "ours")]
    assert seen.incomplete == {}
    assert seen.children[0].body["kind"] == "Service"


async def test_that_a_secret_holds_something_is_seen_and_what_it_holds_never(
    client: KubernetesClient, cluster: Cluster, namespace: str
) -> None:
    metadata = {"name": "token", "labels": OURS}
    made = await client.create(SECRET, namespace, {"metadata": metadata, "data": {"token": "c2VjcmV0", "none": ""}})
    id = SECRET.id(namespace, "token")

    seen = await cluster.observe(Scope((), (SECRET,), "app.kubernetes.io/managed-by=grove-operator", (namespace,)))
    found = await cluster.get(id)
    patched = await cluster.execute(operation(Verb.PATCH, id, {"metadata": {"labels": {"a": "b"}}}, expect=judged(made)), {})

    assert found and patched
    for body in (seen.children[0].body, found.body, patched):
        assert body["data"] == {"token": "(masked)", "none": ""}
    assert (await client.get(SECRET, namespace, "token"))["data"]["token"] == "c2VjcmV0"


async def test_an_object_is_made_with_the_owner_that_was_made_before_it(client: KubernetesClient, cluster: Cluster, namespace: str) -> None:
    parent = SERVICE_ACCOUNT.id(namespace, "parent")
    child = SERVICE.id(namespace, "child")
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "parent", "namespace": namespace}}
    first = await cluster.execute(operation(Verb.CREATE, parent, body), {})
    assert first is not None
    create = operation(Verb.CREATE, child, service(namespace, "child"), owners=(BoundOwner(Owner(parent, "v1"), Unknown(parent)),))

    await cluster.execute(create, {parent: first["metadata"]["uid"]})
    seen = await cluster.get(child)

    assert seen is not None
    assert [(owner.name, owner.uid, owner.controller) for owner in seen.owners] == [("parent", first["metadata"]["uid"], True)]
    with pytest.raises(AlreadyExists):
        await cluster.execute(create, {parent: first["metadata"]["uid"]})


async def test_a_patch_holds_for_what_was_judged_and_for_nothing_later(client: KubernetesClient, cluster: Cluster, namespace: str) -> None:
    id = SERVICE.id(namespace, "one")
    made = await client.create(SERVICE, namespace, service(namespace, "one"))
    patch = operation(Verb.PATCH, id, {"spec": {"selector": {"a": "c"}}}, expect=judged(made))

    patched = await cluster.execute(patch, {})

    assert patched is not None
    assert patched["spec"]["selector"] == {"a": "c"}
    with pytest.raises(Conflict):
        await cluster.execute(patch, {})


async def test_a_state_goes_to_its_subresource(client: KubernetesClient, cluster: Cluster, namespace: str) -> None:
    made = await client.create(SERVICE, namespace, service(namespace, "one"))
    condition = {"type": "Told", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    body = {"status": {"conditions": [condition]}, "spec": {"selector": {"a": "ignored"}}}

    answer = await cluster.execute(operation(Verb.STATUS, SERVICE.id(namespace, "one"), body, expect=judged(made)), {})

    assert answer is not None
    assert [each["type"] for each in answer["status"]["conditions"]] == ["Told"]
    assert answer["spec"]["selector"] == {"a": "b"}


async def test_our_finalizer_is_released_and_others_stay(client: KubernetesClient, cluster: Cluster, namespace: str) -> None:
    id = SERVICE.id(namespace, "one")
    made = await client.create(SERVICE, namespace, service(namespace, "one", finalizers=[KEPT, "example.com/theirs"]))
    await cluster.execute(operation(Verb.DELETE, id, expect=Expect(judged(made).uid)), {})
    release = operation(Verb.RELEASE, id, {"finalizers": [KEPT], "of": [KEPT, "example.com/theirs"]}, expect=Expect(judged(made).uid))

    await cluster.execute(release, {})

    assert (await client.get(SERVICE, namespace, "one"))["metadata"]["finalizers"] == ["example.com/theirs"]
    with pytest.raises(Conflict):
        await cluster.execute(release, {})
    await client.patch(SERVICE, namespace, "one", {"metadata": {"finalizers": None}})


async def test_what_others_do_to_their_finalizers_meanwhile_is_no_conflict(
    client: KubernetesClient, cluster: Cluster, namespace: str
) -> None:
    id, theirs = SERVICE.id(namespace, "one"), "example.com/theirs"
    made = await client.create(SERVICE, namespace, service(namespace, "one", finalizers=[KEPT, theirs]))
    await cluster.execute(operation(Verb.DELETE, id, expect=Expect(judged(made).uid)), {})
    await client.patch(SERVICE, namespace, "one", {"metadata": {"finalizers": [KEPT]}})

    await cluster.execute(operation(Verb.RELEASE, id, {"finalizers": [KEPT], "of": [KEPT, theirs]}, expect=Expect(judged(made).uid)), {})

    assert await cluster.get(id) is None


async def test_the_last_finalizer_lets_an_object_go_and_to_release_it_again_is_no_fault(
    client: KubernetesClient, cluster: Cluster, namespace: str
) -> None:
    id = SERVICE.id(namespace, "one")
    made = await client.create(SERVICE, namespace, service(namespace, "one", finalizers=[KEPT]))
    await cluster.execute(operation(Verb.DELETE, id, expect=Expect(judged(made).uid)), {})
    release = operation(Verb.RELEASE, id, {"finalizers": [KEPT], "of": [KEPT]}, expect=Expect(judged(made).uid))

    await cluster.execute(release, {})

    assert await cluster.get(id) is None
    assert await cluster.execute(release, {}) is None


async def test_a_delete_means_one_incarnation_and_a_vanished_one_is_gone(
    client: KubernetesClient, cluster: Cluster, namespace: str
) -> None:
    id = SERVICE.id(namespace, "one")
    first = await client.create(SERVICE, namespace, service(namespace, "one"))
    await client.delete(SERVICE, namespace, "one")
    second = await client.create(SERVICE, namespace, service(namespace, "one"))

    with pytest.raises(Conflict):
        await cluster.execute(operation(Verb.DELETE, id, expect=Expect(judged(first).uid)), {})
    for _ in range(2):
        assert await cluster.execute(operation(Verb.DELETE, id, expect=Expect(judged(second).uid)), {}) is None
    assert await cluster.get(id) is None


async def test_an_object_is_replaced_by_another_incarnation(client: KubernetesClient, cluster: Cluster, namespace: str) -> None:
    made = await client.create(SERVICE, namespace, service(namespace, "one"))
    body = service(namespace, "one", labels={**OURS, "new": "yes"})

    fresh = await cluster.execute(operation(Verb.REPLACE, SERVICE.id(namespace, "one"), body, expect=judged(made)), {})

    assert fresh is not None
    assert fresh["metadata"]["uid"] != made["metadata"]["uid"]
    assert fresh["metadata"]["labels"]["new"] == "yes"


async def test_an_event_that_repeats_is_counted(client: KubernetesClient, cluster: Cluster, namespace: str) -> None:
    made = await client.create(SERVICE, namespace, service(namespace, "one"))
    event = Event(SERVICE.id(namespace, "one"), judged(made).uid, "Tested", "a test was here", warning=True)

    for _ in range(3):
        await cluster.record(event)
    [recorded] = (await client.list(EVENT, namespace, fields="involvedObject.name=one")).items

    assert (recorded["count"], recorded["reason"], recorded["message"], recorded["type"]) == (3, "Tested", "a test was here", "Warning")
    assert recorded["involvedObject"]["uid"] == judged(made).uid


async def test_a_kind_is_served_or_it_is_not(cluster: Cluster) -> None:
    assert await cluster.serves(POD)
    assert not await cluster.serves(Kind("nobody.example.com", "v1", "Thing", "things"))
