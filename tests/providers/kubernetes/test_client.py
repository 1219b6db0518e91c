"""KubernetesClient: the request of each verb; lists and watches that miss nothing."""

import json
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web

from engine.errors import ClusterError, Expired, Forbidden, Invalid, ServerFault, Unreachable
from engine.ids import Kind
from engine.observed import live
from engine.runtime.provider import Client, PatchType
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connection_pool import RequestLimits
from tests.providers.kubernetes.loopback import Handler, client_of, json_response, kubeconfig, refused, serving
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

POD = Kind("", "v1", "Pod", "pods", status=True)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False, status=True)
GANG = Kind("scheduler.grove.io", "v1alpha1", "PodGang", "podgangs", status=True)


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    return json_response({"kind": "Pod", "metadata": {"name": "x"}})


async def test_it_implements_the_engines_client(tmp_path: Path) -> None:
    async with client_of(kubeconfig(tmp_path, "http://127.0.0.1:1")) as client:
        typed: Client = client

        assert (typed is client, client.namespace) == (True, "lab")


async def test_every_verb_has_its_method_path_and_parameters(tmp_path: Path) -> None:
    async with serving(echo) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        await client.get(NODE, "ignored", "n1")
        await client.get(GANG, "lab", "g", subresource="scale")
        await client.trying().create(GANG, "lab", {"a": 1})
        await client.create(POD, "lab", {"a": 1}, name="p", subresource="binding")
        await client.replace(POD, "lab", "p", {"a": 1}, subresource="status")
        await client.patch(POD, "lab", "p", {"a": 1}, how="apply", force=True)

    assert [(each.method, each.path, dict(each.query)) for each in server.requests] == [
        ("GET", "/api/v1/nodes/n1", {}),
        ("GET", "/apis/scheduler.grove.io/v1alpha1/namespaces/lab/podgangs/g/scale", {}),
        ("POST", "/apis/scheduler.grove.io/v1alpha1/namespaces/lab/podgangs", {"fieldManager": "engine", "dryRun": "All"}),
        ("POST", "/api/v1/namespaces/lab/pods/p/binding", {"fieldManager": "engine"}),
        ("PUT", "/api/v1/namespaces/lab/pods/p/status", {"fieldManager": "engine"}),
        ("PATCH", "/api/v1/namespaces/lab/pods/p", {"fieldManager": "engine", "force": "true"}),
    ]
    assert {each.body for each in server.requests[2:]} == {b'{"a":1}'}


@pytest.mark.parametrize(
    ("how", "content_type"),
    [
        ("merge", "application/merge-patch+json"),
        ("json", "application/json-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
        ("apply", "application/apply-patch+yaml"),
    ],
)
async def test_every_type_of_patch_has_its_content_type(tmp_path: Path, how: PatchType, content_type: str) -> None:
    async with serving(echo) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        await client.patch(POD, "lab", "p", [], how=how)

    assert server.requests[0].headers["Content-Type"] == content_type


async def test_a_delete_carries_its_preconditions(tmp_path: Path) -> None:
    async with serving(echo) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        await client.delete(POD, "lab", "p", uid="u", revision="7", propagation="Foreground", grace=0)
        await client.delete(POD, "lab", "p")

    full, empty = (each.json for each in server.requests)
    assert full == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
    }
    assert empty == {"apiVersion": "v1", "kind": "DeleteOptions"}


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_a_name_that_would_change_the_path_is_not_sent(tmp_path: Path, name: str) -> None:
    async with serving(echo) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(Invalid, match="no object can be named"):
            await client.delete(POD, "lab", name)

    assert server.requests == []


async def test_a_name_is_one_segment_of_the_path_whatever_it_contains(tmp_path: Path) -> None:
    async with serving(echo) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        await client.get(POD, "lab", "../../secrets?x=#y")

    assert server.calls() == [("GET", "/api/v1/namespaces/lab/pods/../../secrets?x=#y")], "the name is percent-encoded"


class Pages:
    """A list of pods in pages; with `expires` the revision is no longer available after the first page."""

    def __init__(self, count: int, expires: bool = False) -> None:
        self.items = [
            {"metadata": {"name": f"p{number}", "resourceVersion": str(number)}, "spec": {"n": number}} for number in range(count)
        ]
        self.expires = expires

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        start = int(request.query.get("continue", "0"))
        end = start + int(request.query.get("limit", len(self.items)))
        if start and self.expires:
            return refused(410, "Expired", "the provided continue parameter is too old")
        meta = {"resourceVersion": "900", **({"continue": str(end)} if end < len(self.items) else {})}
        return json_response({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": self.items[start:end]})


async def test_a_list_is_joined_from_its_pages_and_keeps_its_revision(tmp_path: Path) -> None:
    async with serving(Pages(1200)) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        listing = await client.list(POD, labels="a=b", fields="spec.nodeName=n")

    assert [item["metadata"]["name"] for item in listing.items] == [f"p{number}" for number in range(1200)]
    assert listing.revision == "900"
    assert (listing.items[0]["kind"], listing.items[0]["apiVersion"]) == ("Pod", "v1")
    assert [each.query.get("continue") for each in server.requests] == [None, "500", "1000"]
    assert all(each.query["labelSelector"] == "a=b" and each.query["fieldSelector"] == "spec.nodeName=n" for each in server.requests)


async def test_a_list_whose_revision_expires_between_pages_is_read_in_one_page(tmp_path: Path) -> None:
    async with serving(Pages(1200, expires=True)) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        listing = await client.list(POD, "lab")

    assert len({item["metadata"]["name"] for item in listing.items}) == len(listing.items) == 1200
    assert [each.query.get("limit") for each in server.requests] == ["500", "500", None]


async def test_a_raw_list_has_the_same_objects_as_bytes(tmp_path: Path) -> None:
    async with serving(Pages(700)) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        listing = await client.list(POD)
        kept: list[bytes] = []

        def keep(_: Mapping[str, str], content: bytes) -> bytes:
            kept.append(content)
            return content

        lives, revision = await client.lives(POD, "", "", keep)

    assert [json.loads(content) for content in kept] == listing.items
    assert [(live.id.name, live.revision) for live in lives] == [(f"p{number}", str(number)) for number in range(700)]
    assert revision == "900"


async def test_a_list_without_items_is_empty(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return json_response({"metadata": {"resourceVersion": "3"}, "items": None})

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        lives, _ = await client.lives(POD, "", "", lambda _, content: content)
        assert ((await client.list(POD)).items, lives) == ([], [])


async def test_a_raw_list_keeps_the_kind_of_an_item(tmp_path: Path) -> None:
    gang = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": {"name": "g", "labels": {"a": "b"}}}

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return json_response({"metadata": {"resourceVersion": "3"}, "items": [gang]})

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        [live], _ = await client.lives(GANG, "lab", "", lambda _, content: content)

    assert (live.body, live.labels) == (gang, {"a": "b"})


def event(type: str, revision: int, **fields: Any) -> bytes:
    body = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "resourceVersion": str(revision)}, **fields}
    return json.dumps({"type": type, "object": body}).encode() + b"\n"


def failure(code: int, reason: str) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "message": "too old", "reason": reason, "code": code}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


def sending(*chunks: bytes, then: str = "end") -> Handler:
    """A watch that sends these chunks, and then ends, breaks or is silent."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await anyio.lowlevel.checkpoint()
        if then == "break":
            assert request.transport is not None
            request.transport.abort()
        elif then == "silence":
            await anyio.sleep_forever()
        return response

    return handler


async def watched(client: KubernetesClient, since: str = "5") -> list[tuple[str, str]]:
    """Type and revision of every event until the watch ends."""
    events: list[tuple[str, str]] = []
    async with aclosing(client.watch(POD, "lab", since=since, labels="a=b")) as stream:
        async for type, body in stream:
            events.append((type, body["metadata"]["resourceVersion"]))
    return events


async def test_a_watch_returns_every_event_and_bookmark_until_the_server_ends_it(tmp_path: Path) -> None:
    sent = [event("ADDED", 6), event("BOOKMARK", 7), event("MODIFIED", 8), event("DELETED", 9)]

    async with serving(sending(*sent)) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        events = await watched(client)

    assert events == [("ADDED", "6"), ("BOOKMARK", "7"), ("MODIFIED", "8"), ("DELETED", "9")]
    query = server.requests[0].query
    assert (query["watch"], query["allowWatchBookmarks"], query["resourceVersion"], query["labelSelector"]) == ("1", "true", "5", "a=b")
    assert 270 <= int(query["timeoutSeconds"]) <= 330


async def test_events_are_read_however_the_network_splits_them(tmp_path: Path) -> None:
    text = event("ADDED", 6, note="ä" * 50) + event("MODIFIED", 7) + event("DELETED", 8)
    for size in (1, 3, 64):
        chunks: Iterable[bytes] = (text[start : start + size] for start in range(0, len(text), size))

        async with serving(sending(*chunks)) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
            assert await watched(client) == [("ADDED", "6"), ("MODIFIED", "7"), ("DELETED", "8")]


async def test_an_expired_revision_ends_a_watch_and_is_not_retried(tmp_path: Path) -> None:
    async with serving(sending(event("ADDED", 6), failure(410, "Expired"), then="silence")) as server:
        async with client_of(kubeconfig(tmp_path, server.url)) as client:
            with pytest.raises(Expired, match="too old"):
                await watched(client)

    assert len(server.requests) == 1


async def test_a_revision_that_has_expired_before_the_watch_is_not_retried(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(410, "Expired", "too old resource version")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(Expired):
            await watched(client)

    assert len(server.requests) == 1


async def test_a_watch_is_reported_as_open_once_the_server_has_accepted_it_and_not_before(tmp_path: Path) -> None:
    opened = anyio.Event()
    async with serving(sending(then="silence")) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        async with aclosing(client.watch(POD, since="5", on_open=opened.set)) as stream, anyio.create_task_group() as tasks:
            tasks.start_soon(anext, stream)
            with anyio.fail_after(PATIENCE):
                await opened.wait()
            tasks.cancel_scope.cancel()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(403, "Forbidden")

    opened = anyio.Event()
    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        async with aclosing(client.watch(POD, since="5", on_open=opened.set)) as stream:
            with pytest.raises(Forbidden):
                await anext(stream)
    assert not opened.is_set()


@pytest.mark.parametrize(("code", "error"), [(500, ServerFault), (403, Forbidden)])
async def test_any_other_error_in_a_watch_is_raised_as_its_own_type(tmp_path: Path, code: int, error: type[ClusterError]) -> None:
    async with serving(sending(failure(code, "whatever"))) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(error, match="too old"):
            await watched(client)


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (sending(event("ADDED", 6), then="break"), "closed the connection"),
        (sending(event("ADDED", 6)[:-20]), "in the middle of an event"),
        (sending(event("ADDED", 6), then="silence"), "does not answer in time"),
    ],
)
async def test_a_watch_that_breaks_or_is_silent_is_unreachable(tmp_path: Path, handler: Handler, message: str) -> None:
    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), limits=RequestLimits(silence=0.05)) as client:
        with pytest.raises(Unreachable, match=message):
            await watched(client)


async def test_watches_do_not_count_as_requests_in_flight(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return await (sending(event("ADDED", 6), then="silence") if "watch" in request.query else echo)(request)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), limits=RequestLimits(in_flight=1)) as client:
        first, second = client.watch(POD, since="5"), client.watch(NODE, since="5")
        async with aclosing(first), aclosing(second):
            await anext(first)
            await anext(second)
            assert (await client.get(POD, "lab", "x"))["metadata"]["name"] == "x"


async def test_leaving_a_watch_closes_its_connection(tmp_path: Path) -> None:
    closed = anyio.Event()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await sending(event("ADDED", 6), then="silence")(request)
        finally:
            closed.set()

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        async with aclosing(client.watch(POD, since="5")) as stream:
            await anext(stream)
        with anyio.fail_after(PATIENCE):
            await closed.wait()


async def test_the_kinds_of_a_server_come_from_its_discovery(tmp_path: Path) -> None:
    answers = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list", "watch"]}]},
        "/apis": {"kind": "APIGroupList", "groups": []},
    }

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return json_response(answers[request.path])

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        assert await client.kinds() == (Kind("", "v1", "Pod", "pods"),)


async def test_objects_of_a_raw_list_equal_those_of_a_parsed_list(tmp_path: Path) -> None:
    meta = {
        "name": "x",
        "namespace": "lab",
        "uid": "u1",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "deletionTimestamp": "2026-01-02T03:05:00Z",
        "labels": {"a": "b"},
        "finalizers": ["kept.example/by-us"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u0", "controller": True, "blockOwnerDeletion": True},
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u9"},
        ],
    }

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return json_response(
            {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": meta, "spec": {}}, {"metadata": {"name": "bare"}}]}
        )

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        raw, _ = await client.lives(POD, "lab", "", lambda _, content: content)
        parsed = [live(item) for item in (await client.list(POD, "lab")).items]

    fields = ("id", "uid", "revision", "generation", "created_at", "deleting_since", "owners", "labels", "finalizers", "body")
    for live_of_raw, live_of_parsed in zip(raw, parsed, strict=True):
        assert [getattr(live_of_raw, field) for field in fields] == [getattr(live_of_parsed, field) for field in fields]
    assert isinstance(raw[0].source, bytes)


async def test_names_are_listed_without_the_objects(tmp_path: Path) -> None:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x", "namespace": "lab"}}
        return json_response({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": [partial]})

    async with serving(answer) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        assert await client.names(POD, "lab") == {"x"}

    assert server.requests[0].headers["Accept"] == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
