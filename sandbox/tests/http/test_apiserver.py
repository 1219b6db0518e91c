"""The sandbox over HTTP: what goes over the wire is what a real API server would send."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.lowlevel
import pytest

from grove_sandbox.clock import VirtualClock
from grove_sandbox.http.access import Denial
from grove_sandbox.http.faults import InjectedFault
from grove_sandbox.process import Sandbox, sandbox
from sandbox.tests.web import Web, web
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MERGE = "application/merge-patch+json"


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with sandbox(VirtualClock(), tmp_path, actors=()) as made:
        yield made


@pytest.fixture
async def http(box: Sandbox) -> AsyncIterator[Web]:
    async with web(box) as session:
        yield session


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_an_object_goes_in_and_comes_out(http: Web) -> None:
    made = await http.ask("POST", MAPS, config_map("a", x="1"))
    got = await http.ask("GET", f"{MAPS}/a")

    assert (201, 200) == (made.code, got.code)
    assert "application/json" == got.type
    assert made.body == got.body
    assert {"x": "1"} == got.body["data"]


async def test_a_list_holds_its_objects_and_the_revision_to_watch_from(http: Web) -> None:
    made = await http.ask("POST", MAPS, config_map("a"))

    listed = (await http.ask("GET", MAPS)).body

    assert ("ConfigMapList", "v1") == (listed["kind"], listed["apiVersion"])
    assert made.body["metadata"]["resourceVersion"] == listed["metadata"]["resourceVersion"]
    assert ["a"] == [item["metadata"]["name"] for item in listed["items"]]


async def test_objects_are_replaced_patched_and_deleted(http: Web) -> None:
    made = (await http.ask("POST", MAPS, config_map("a", x="1"))).body

    replaced = await http.ask("PUT", f"{MAPS}/a", {**made, "data": {"x": "2"}})
    patched = await http.ask("PATCH", f"{MAPS}/a", {"data": {"y": "3"}}, Content_Type=MERGE)
    deleted = await http.ask("DELETE", f"{MAPS}/a")

    assert {"x": "2"} == replaced.body["data"]
    assert {"x": "2", "y": "3"} == patched.body["data"]
    assert ("Status", "Success") == (deleted.body["kind"], deleted.body["status"])
    assert 404 == (await http.ask("GET", f"{MAPS}/a")).code


async def test_the_user_agent_is_the_manager_that_names_none(http: Web) -> None:
    made = await http.ask("POST", MAPS, config_map("a", x="1"), User_Agent="tool/1.2 (linux)")

    assert ["tool"] == [entry["manager"] for entry in made.body["metadata"]["managedFields"]]


async def test_an_apply_without_a_manager_is_refused(http: Web) -> None:
    said = await http.ask("PATCH", f"{MAPS}/a", config_map("a"), Content_Type="application/apply-patch+yaml")

    assert (422, 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch') == (
        said.code,
        said.body["message"],
    )


async def test_a_dry_run_leaves_nothing_behind(http: Web) -> None:
    said = await http.ask("POST", f"{MAPS}?dryRun=All", config_map("a"))

    assert 201 == said.code
    assert 404 == (await http.ask("GET", f"{MAPS}/a")).code


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/api/v1/configmaps", 405),
        ("PUT", MAPS, 405),
        ("POST", f"{MAPS}/a", 405),
        ("OPTIONS", MAPS, 405),
        ("GET", "/api/v1/configmaps/a", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", f"{MAPS}/a/status", 404),
        ("GET", "/apis/apps/v9", 404),
        ("GET", "/apis/apps/v1/nothings", 404),
        ("GET", "/api/v2", 404),
        ("GET", "/api/v1/namespaces/a/pods/b/status/c", 404),
        ("DELETE", "/api/v1/namespaces", 405),
    ],
)
async def test_what_is_not_there_is_answered_with_a_status(http: Web, method: str, path: str, code: int) -> None:
    said = await http.ask(method, path)

    words = {
        404: "the server could not find the requested resource",
        405: "the server does not allow this method on the requested resource",
    }
    assert (code, "Status", words[code], {}) == (said.code, said.body["kind"], said.body["message"], said.body["details"])


@pytest.mark.parametrize("path", ["/nothing", "/apis/nothing", "/apis/nothing/v1", "/apis/nothing/v1/namespaces/a/things/b"])
async def test_a_path_that_is_no_api_is_a_plain_404(http: Web, path: str) -> None:
    said = await http.ask("GET", path)

    assert (404, "404 page not found\n") == (said.code, said.data.decode())


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/api", "/apis", "/", "/openapi/v3", MAPS])
@pytest.mark.parametrize("token", ["", "wrong"])
async def test_nothing_is_told_to_anybody_without_a_token(http: Web, path: str, token: str) -> None:
    said = await http.ask("GET", path, token=token)

    assert (401, "Unauthorized") == (said.code, said.body["reason"])


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_it_says_that_it_is_well(http: Web, path: str) -> None:
    assert b"ok" == (await http.ask("GET", path)).data


async def test_a_token_that_has_expired_opens_nothing(box: Sandbox, http: Web) -> None:
    box.access.grant("brief", "ann", until=box.clock.now() + datetime.timedelta(minutes=1))

    before = await http.ask("GET", "/version", token="brief")
    assert isinstance(box.clock, VirtualClock)
    await box.clock.advance(60)
    after = await http.ask("GET", "/version", token="brief")

    assert (200, 401) == (before.code, after.code)


async def test_a_denial_is_for_the_user_and_the_verb_that_it_names(box: Sandbox, http: Web) -> None:
    box.access.grant("limited", "ann")
    box.access.denials.append(Denial(user="ann", verb="create", resource="configmaps"))

    denied = await http.ask("POST", MAPS, config_map("a"), token="limited")
    listed = await http.ask("GET", MAPS, token="limited")
    made = await http.ask("POST", MAPS, config_map("a"))

    assert (403, 200, 201) == (denied.code, listed.code, made.code)
    assert 'configmaps is forbidden: User "ann" cannot create resource "configmaps"' in denied.body["message"]


async def test_one_may_ask_what_one_may(box: Sandbox, http: Web) -> None:
    box.access.denials.append(Denial(verb="create", resource="pods"))
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    answers = [
        (await http.ask("POST", path, {"spec": {"resourceAttributes": {"verb": "create", "resource": resource}}})).body["status"]["allowed"]
        for resource in ("pods", "services")
    ]

    assert [False, True] == answers


async def test_a_table_is_given_to_those_who_ask_for_one(http: Web) -> None:
    await http.ask("POST", MAPS, config_map("a", x="1"))

    many = (await http.ask("GET", MAPS, Accept=TABLE)).body
    one = (await http.ask("GET", f"{MAPS}/a?includeObject=None", Accept=TABLE)).body

    assert [["a", 1, "0s"]] == [row["cells"] for row in many["rows"]]
    assert ["Table", "Table"] == [many["kind"], one["kind"]]
    assert [None] == [row["object"] for row in one["rows"]]


async def test_the_rows_of_a_table_hold_whole_objects_for_those_who_sort_them(http: Web) -> None:
    made = (await http.ask("POST", MAPS, config_map("a", x="1"))).body

    rows = (await http.ask("GET", f"{MAPS}?includeObject=Object", Accept=TABLE)).body["rows"]

    assert [made] == [row["object"] for row in rows]


async def test_a_kind_whose_columns_cannot_be_read_is_printed_all_the_same(http: Web) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
        "additionalPrinterColumns": [{"name": "X", "type": "string", "jsonPath": ".spec[?("}],
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": "toys.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.toys.example.com"}}
    made = await http.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {**crd, "spec": spec})

    shown = (await http.ask("GET", "/apis/toys.example.com/v1/widgets", Accept=TABLE)).body

    assert 201 == made.code
    assert ["Name", "Age"] == [column["name"] for column in shown["columnDefinitions"]]


async def test_a_refusal_is_a_status_even_where_a_table_was_asked_for(http: Web) -> None:
    said = await http.ask("GET", f"{MAPS}/none", Accept=TABLE)

    assert (404, "Status") == (said.code, said.body["kind"])


async def test_metadata_alone_can_be_asked_for(http: Web) -> None:
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

    made = (await http.ask("POST", MAPS, config_map("a", x="1"), Accept=accept)).body
    many = await http.ask("GET", MAPS, Accept=accept.replace("Metadata", "MetadataList"))
    wrong = await http.ask("GET", MAPS, Accept=accept)

    assert {"kind", "apiVersion", "metadata"} == set(made)
    assert ["PartialObjectMetadata"] == [item["kind"] for item in many.body["items"]]
    assert (406, "NotAcceptable") == (wrong.code, wrong.body["reason"])


async def test_yaml_is_read_and_written(http: Web) -> None:
    made = await http.ask(
        "POST", MAPS, b"metadata: {name: a}\ndata: {x: 'yes'}", Content_Type="application/yaml", Accept="application/yaml"
    )

    assert (201, "application/yaml") == (made.code, made.type)
    assert "x: 'yes'" in made.data.decode()


async def test_a_warning_travels_in_its_header(http: Web) -> None:
    said = await http.ask("POST", MAPS, {**config_map("a"), "nonsense": 1})

    assert '299 - "unknown field \\"nonsense\\""' == said.headers["Warning"]


async def test_a_body_beyond_the_limit_is_refused(http: Web) -> None:
    said = await http.ask("POST", MAPS, config_map("a", x="x" * (3 * 1024 * 1024)))

    assert (413, "RequestEntityTooLarge") == (said.code, said.body["reason"])


async def test_a_watch_tells_what_is_there_and_what_happens(http: Web) -> None:
    await http.ask("POST", MAPS, config_map("a"))

    async with http.stream(f"{MAPS}?watch=true") as events:
        first = await anext(events)
        await http.ask("PATCH", f"{MAPS}/a", {"data": {"x": "1"}}, Content_Type=MERGE)
        second = await anext(events)
        await http.ask("DELETE", f"{MAPS}/a")
        third = await anext(events)

    assert ["ADDED", "MODIFIED", "DELETED"] == [first["type"], second["type"], third["type"]]
    assert {"x": "1"} == second["object"]["data"]


async def test_a_watch_from_a_revision_tells_only_what_came_after(http: Web) -> None:
    made = (await http.ask("POST", MAPS, config_map("a"))).body
    await http.ask("POST", MAPS, config_map("b"))

    async with http.stream(f"{MAPS}?watch=1&resourceVersion={made['metadata']['resourceVersion']}") as events:
        event = await anext(events)

    assert ("ADDED", "b") == (event["type"], event["object"]["metadata"]["name"])


async def test_a_watch_can_begin_with_all_there_is_and_say_when_that_is_over(http: Web) -> None:
    await http.ask("POST", MAPS, config_map("a"))
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

    async with http.stream(f"{MAPS}?{query}", Accept=TABLE) as events:
        first, second = await anext(events), await anext(events)

    assert ["ADDED", "BOOKMARK"] == [first["type"], second["type"]]
    assert [["Name", "Data", "Age"], None] == [
        first["object"]["columnDefinitions"] and [column["name"] for column in first["object"]["columnDefinitions"]],
        second["object"]["columnDefinitions"],
    ]
    assert {"k8s.io/initial-events-end": "true"} == second["object"]["rows"][0]["object"]["metadata"]["annotations"]


async def test_a_watch_ends_in_good_order_when_the_server_goes(tmp_path: Path) -> None:
    async with sandbox(VirtualClock(), tmp_path, actors=()) as box, web(box) as http, http.stream(f"{MAPS}?watch=true") as events:
        box.backend.close_watches()

        assert [] == [event async for event in events]


async def test_watches_do_not_hold_up_the_end_of_the_server(tmp_path: Path) -> None:
    with anyio.fail_after(PATIENCE):
        async with sandbox(VirtualClock(), tmp_path, actors=()) as box:
            session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=box.authority.decode())))
            answer = await session.get(f"{box.url}{MAPS}?watch=true", headers={"Authorization": f"Bearer {box.token}"})

        assert b"" == await answer.read()
        await session.close()


async def test_the_server_answers_on_loopback_alone(box: Sandbox) -> None:
    assert box.url.startswith("https://127.0.0.1:")


async def test_a_port_that_is_taken_is_an_error_at_once(box: Sandbox, tmp_path: Path) -> None:
    port = int(box.url.rpartition(":")[2])

    with pytest.raises(OSError, match="in use"):
        async with sandbox(VirtualClock(), tmp_path, actors=(), port=port):
            pass


async def test_the_kubeconfig_is_for_its_owner_alone(box: Sandbox) -> None:
    assert 0o600 == box.kubeconfig.stat().st_mode & 0o777


async def test_our_own_kinds_are_served_from_the_start(http: Web) -> None:
    assert [] == (await http.ask("GET", "/apis/grove.io/v1alpha1/podcliquesets")).body["items"]


async def test_a_fault_answers_before_anything_happens(box: Sandbox, http: Web) -> None:
    box.faults.inject(InjectedFault("answer", verb="create", resource="configmaps", code=429, retry_after=7))

    struck = await http.ask("POST", MAPS, config_map("a"))
    again = await http.ask("POST", MAPS, config_map("a"))

    assert (429, "TooManyRequests", "7", 201) == (struck.code, struck.body["reason"], struck.headers["Retry-After"], again.code)


async def test_a_fault_after_the_commit_loses_the_answer_and_not_the_write(box: Sandbox, http: Web) -> None:
    box.faults.inject(InjectedFault("answer", verb="create", code=500, committed=True, name="a"))

    other = await http.ask("POST", MAPS, config_map("b"))
    struck = await http.ask("POST", MAPS, config_map("a"))

    assert (201, 500) == (other.code, struck.code)
    assert 200 == (await http.ask("GET", f"{MAPS}/a")).code


@pytest.mark.parametrize(("committed", "found"), [(False, 404), (True, 200)])
async def test_a_connection_is_cut_before_or_after_the_commit(box: Sandbox, http: Web, committed: bool, found: int) -> None:
    box.faults.inject(InjectedFault("cut", verb="create", committed=committed))

    with pytest.raises(aiohttp.ClientError):
        await http.ask("POST", MAPS, config_map("a"))

    assert found == (await http.ask("GET", f"{MAPS}/a")).code


async def test_a_slow_answer_waits_for_the_clock(box: Sandbox, http: Web) -> None:
    box.faults.inject(InjectedFault("slow", verb="get", seconds=30))
    asked = asyncio.create_task(http.ask("GET", f"{MAPS}/a"))
    while box.faults.pending:
        await anyio.lowlevel.checkpoint()

    assert isinstance(box.clock, VirtualClock)
    await box.clock.advance(29)
    assert not asked.done()
    await box.clock.advance(1)

    assert 404 == (await asked).code


async def test_an_event_is_dropped(box: Sandbox, http: Web) -> None:
    box.faults.inject(InjectedFault("drop", verb="watch", resource="configmaps", name="a"))

    async with http.stream(f"{MAPS}?watch=true") as events:
        await http.ask("POST", MAPS, config_map("a"))
        await http.ask("POST", MAPS, config_map("b"))
        event = await anext(events)

    assert "b" == event["object"]["metadata"]["name"]


async def test_a_watch_is_told_that_its_revision_is_forgotten(box: Sandbox, http: Web) -> None:
    box.faults.inject(InjectedFault("expire", verb="watch"))

    async with http.stream(f"{MAPS}?watch=true") as events:
        await http.ask("POST", MAPS, config_map("a"))
        answer = [event async for event in events]

    assert [("ERROR", 410, "Expired")] == [(event["type"], event["object"]["code"], event["object"]["reason"]) for event in answer]


async def test_a_watch_is_cut_in_the_middle(box: Sandbox, http: Web) -> None:
    box.faults.inject(InjectedFault("cut", verb="watch"))

    async with http.stream(f"{MAPS}?watch=true") as events:
        await http.ask("POST", MAPS, config_map("a"))
        with pytest.raises(aiohttp.ClientError):
            await anext(events)
