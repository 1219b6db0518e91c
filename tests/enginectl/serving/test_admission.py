"""Admission over HTTPS: the answers of `engine review`, split over the webhooks; look-ups; and reviews of every wrong shape."""

import base64
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import anyio
import anyio.lowlevel
import msgspec
import orjson
import pytest
from msgspec.structs import replace

from engine.errors import Forbidden
from engine.ids import Kind
from engine.runtime.provider import Client
from enginectl.serving.admission import LARGE, REVIEW_LIMITS, AdmissionRules, Judge, admission_routes
from enginectl.serving.template_access import TemplateReader
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from providers.http.message import HttpResponse, IncomingRequest
from providers.reference_caches import ReferenceCaches
from providers.registry import SCHEDULERS
from resources.admission.admit import UNPROTECTED, admit
from resources.admission.look_ups import look_ups
from resources.admission.managed_rules import DISABLE_PROTECTION, Protection
from resources.admission.review import MAX_BYTES, answered
from resources.base.kinds import CRD, DYNAMO_GRAPH, NAMESPACE, PODCLIQUE, PODCLIQUESET, TOPOLOGY_BINDING
from resources.children.table import CHILDREN
from resources.dynamo.model.graph import ENABLE_GROVE
from resources.install.webhooks import (
    AUTHORIZER,
    CONVERT,
    DEFAULT_GRAPH,
    DEFAULT_SET,
    VALIDATE_BINDING,
    VALIDATE_GRAPH,
    VALIDATE_SET,
    Webhook,
)
from resources.ports.configuration import NAMESPACE_LIMITS, Configuration, WorkloadLimits
from resources.schema.crds import crds
from tests.providers.http.talking import Events, elsewhere, read_answers, request, served
from tests.resources.admission import test_create_rules as creation
from tests.resources.admission import test_sharing_rules as sharing
from tests.resources.admission import test_update_rules as update
from tests.resources.admission.graphs import graph, wide
from tests.resources.admission.requests import SETUP, TOPOLOGY, binding, put, small, whole
from tests.resources.admission.test_managed_rules import child
from tests.resources.admission.test_review import review
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio

PROTECTED = Protection(CHILDREN.protected(SETUP), operator="engine", exempt=frozenset({"collector"}))
NOBODY = cast(Client, None)


def reviewed(new: Any, old: Any = None, kind: Kind = PODCLIQUESET, **fields: Any) -> dict[str, Any]:
    """A review of a creation, or with `old` of a change."""
    named = {"group": kind.group, "version": kind.version, "kind": kind.name}
    metadata = (new or old)["metadata"]
    return review(
        kind=named,
        operation="UPDATE" if old else "CREATE",
        namespace=metadata.get("namespace", ""),
        name=metadata.get("name", ""),
        object=new,
        oldObject=old,
        **fields,
    )


def table() -> Iterator[tuple[dict[str, Any], Webhook, Webhook]]:
    """The tables of the rules' own tests as reviews, each with the webhook that defaults and the one that validates."""
    for cases in (creation.CLIQUES, creation.LENGTHS, creation.GROUPS, creation.SCHEDULERS, creation.OLD, sharing.SHARING):
        for case in cases:
            changes: Any = case.values[0] if hasattr(case, "values") else case[0]
            yield reviewed(put(small(), changes)), DEFAULT_SET, VALIDATE_SET
    for case in (*update.COMPOSITION, *update.FIELDS):
        changes = case.values[0] if hasattr(case, "values") else case[0]
        yield reviewed(put(whole(), changes), whole()), DEFAULT_SET, VALIDATE_SET
    for body in (graph(), graph({"decode": {"componentType": "worker", "replicas": "2"}}), graph({})):
        yield reviewed(body, kind=DYNAMO_GRAPH), DEFAULT_GRAPH, VALIDATE_GRAPH
    for domains in (("zone", "rack"), ("zone", "zone")):
        yield reviewed(binding(*domains), kind=TOPOLOGY_BINDING), VALIDATE_BINDING, VALIDATE_BINDING


def judge_of(configuration: Configuration = SETUP, protection: Protection = UNPROTECTED, client: Client = NOBODY) -> Judge:
    """A judge whose caches are not filled."""
    caches = ReferenceCaches(client, VirtualClock(), Events(), look_ups(configuration))
    return Judge(AdmissionRules(configuration, protection), caches, TemplateReader(client))


async def test_the_tables_of_the_rules_give_the_answers_of_engine_review_over_https() -> None:
    reviews = list(table())
    async with served(REVIEW_LIMITS, admission_routes(judge_of()), tls=True) as server:

        def client() -> list[tuple[Any, Any]]:
            with closing(server.connect()) as connection:
                pairs = []
                for document, *webhooks in reviews:
                    for webhook in webhooks:
                        connection.sendall(request(webhook.path, "POST", orjson.dumps(document)))
                    both = read_answers(connection, "POST", "POST")
                    assert [answer.status for answer in both] == [200, 200]
                    pairs.append((orjson.loads(both[0].body), orjson.loads(both[1].body)))
                return pairs

        answers = await elsewhere(client)

    for (document, mutating, _), (defaulted, validated) in zip(reviews, answers, strict=True):
        expected = answered(document, lambda request: admit(request, SETUP))
        patch = expected["response"].pop("patch", None)
        expected["response"].pop("patchType", None)
        assert validated == expected
        if mutating.mutates:
            assert defaulted["response"]["allowed"]
            assert not patch or defaulted["response"]["patch"] == patch
    assert {answer["response"]["allowed"] for _, answer in answers} == {True, False}


async def answer_of(judge: Judge, webhook: Webhook, document: Any) -> HttpResponse:
    """The answer of a webhook to a review, or to the bytes of one."""
    body = document if isinstance(document, bytes) else orjson.dumps(document)
    return await judge.answer(webhook, IncomingRequest("POST", webhook.path, body=body))


async def test_graphs_are_converted_where_the_webhooks_are() -> None:
    document = {"uid": "u", "desiredAPIVersion": "nvidia.com/v1beta1", "objects": [graph()]}
    asked = orjson.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": document})
    handler = admission_routes(judge_of())["POST", CONVERT]

    answer, fault = [await handler(IncomingRequest("POST", CONVERT, body=body)) for body in (asked, b"{")]

    (converted,) = orjson.loads(answer.body)["response"]["convertedObjects"]
    assert (converted["apiVersion"], converted["spec"]["components"][0]["name"]) == ("nvidia.com/v1beta1", "decode")
    assert (answer.status, fault.status) == (200, 400)


async def test_defaults_never_deny_and_validation_changes_nothing() -> None:
    bad = review(object=put(small(), {"spec.template.cliques.0.spec.replicas": -1}))
    defaulted = json.loads((await answer_of(judge_of(), DEFAULT_SET, bad)).body)["response"]
    validated = json.loads((await answer_of(judge_of(), VALIDATE_SET, bad)).body)["response"]
    good = json.loads((await answer_of(judge_of(), VALIDATE_SET, review(object=small()))).body)["response"]

    assert (defaulted["allowed"], validated["allowed"], good["allowed"]) == (True, False, True)
    assert "spec.template.cliques[0].spec.replicas" in validated["status"]["message"]
    assert json.loads(base64.b64decode(defaulted["patch"]))
    assert not {"patch", "patchType"} & (validated.keys() | good.keys())


DEEP = b'{"a":' * 2000 + b"1" + b"}" * 2000


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff", 400, "not JSON"),
        (DEEP, 400, "not JSON"),
        (b"[]", 400, "not an AdmissionReview"),
        (b"null", 400, "not an AdmissionReview"),
        (b'{"request": {}}', 400, "request.uid: is missing"),
        (review(object="text"), 200, "request.object: must be an object"),
        (review(object=None), 200, "request.object: is missing"),
        (review(operation="PATCH"), 200, "request.operation"),
        (review(userInfo=[]), 200, "request.userInfo"),
        ({**review(), "apiVersion": "admission.k8s.io/v1beta1"}, 200, "apiVersion"),
        (review(object=orjson.loads(DEEP[: 5 * 150] + b"1" + b"}" * 150)), 200, "nested deeper"),
    ],
)
@pytest.mark.parametrize("webhook", [DEFAULT_SET, VALIDATE_SET, AUTHORIZER])
async def test_a_wrong_shape_is_an_answer_and_never_a_crash(webhook: Webhook, body: Any, status: int, text: str) -> None:
    response = await answer_of(judge_of(protection=PROTECTED), webhook, body)

    assert response.status == status
    assert text in response.body.decode()
    if status == 200:
        assert not json.loads(response.body)["response"]["allowed"]


async def test_a_large_review_is_judged_in_a_worker_and_has_the_same_answer() -> None:
    body = put(small(), {"metadata.annotations": {f"example.com/{number}": "x" * 1000 for number in range(2 * LARGE // 1000)}})
    document = review(object=body)

    response = await answer_of(judge_of(), VALIDATE_SET, document)

    expected = answered(document, lambda request: admit(request, SETUP))
    assert json.loads(response.body)["response"]["status"] == expected["response"]["status"]


async def test_a_review_beyond_the_limit_is_refused() -> None:
    async with served(REVIEW_LIMITS, admission_routes(judge_of()), tls=True) as server:
        answer = await elsewhere(server.say, request(VALIDATE_SET.path, "POST", b"", f"Content-Length: {MAX_BYTES + 1}"))

    assert answer.status == 413


class Cluster:
    """A sandbox with our kinds, and a judge with caches that watch it."""

    def __init__(self, configuration: Configuration, protection: Protection = UNPROTECTED) -> None:
        self.clock = VirtualClock()
        self.api = Api(self.clock, seed=1)
        self.client = InProcessClient(self.api)
        self.is_forbidden = False
        self.gets: list[str] = []
        self.rules = AdmissionRules(configuration, protection)
        self.caches = ReferenceCaches(cast(Client, self), self.clock, Events(), look_ups(configuration))
        self.judge = Judge(self.rules, self.caches, TemplateReader(cast(Client, self)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    async def get(self, kind: Kind, namespace: str, name: str, **options: Any) -> dict[str, Any]:
        """One object; the caches read few of them."""
        self.gets.append(name)
        if self.is_forbidden:
            raise Forbidden("no")
        return await self.client.get(kind, namespace, name, **options)

    async def denial(self, webhook: Webhook, document: Any) -> str:
        """Why a webhook denies; empty if it allows."""
        response = json.loads((await answer_of(self.judge, webhook, document)).body)["response"]
        return "" if response["allowed"] else str(response["status"]["message"])


async def until(holds: Any) -> None:
    """Let the other tasks run until something holds."""
    with anyio.fail_after(PATIENCE):
        while not holds():
            await anyio.lowlevel.checkpoint()


@pytest.fixture(scope="module")
def definitions() -> Any:
    """The CRDs of our kinds."""
    return crds()


async def defined(cluster: Cluster, definitions: Any) -> None:
    """Let the cluster serve our kinds."""
    for definition in definitions:
        await cluster.client.create(CRD, "", definition)
    await cluster.client.create(NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})


CONSTRAINED = put(small(), {"spec.template.topologyConstraint": {"topologyName": "racks", "pack": {"required": "zone"}}})
MISSING = 'ClusterTopologyBinding "racks" not found'


async def test_a_binding_counts_from_the_moment_it_exists_and_what_is_not_known_does_not_deny(definitions: Any) -> None:
    cluster = Cluster(TOPOLOGY)
    assert await cluster.denial(VALIDATE_SET, review(object=CONSTRAINED)) == ""

    await defined(cluster, definitions)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.caches.run)
        await until(cluster.caches.is_filled)
        assert MISSING in await cluster.denial(VALIDATE_SET, review(object=CONSTRAINED))

        await cluster.client.create(TOPOLOGY_BINDING, "", binding("region", "rack"))
        # The watch has not reported it yet.
        assert "zone" in await cluster.denial(VALIDATE_SET, review(object=CONSTRAINED))
        await until(lambda: cluster.caches.find(TOPOLOGY_BINDING.id("", "racks")) is not None)
        read = len(cluster.gets)
        assert "zone" in await cluster.denial(VALIDATE_SET, review(object=CONSTRAINED))
        assert len(cluster.gets) == read

        cluster.is_forbidden = True
        other = put(CONSTRAINED, {"spec.template.topologyConstraint.topologyName": "other"})
        assert await cluster.denial(VALIDATE_SET, review(object=other)) == ""
        tasks.cancel_scope.cancel()


async def test_managed_objects_are_protected_unless_their_set_says_otherwise(definitions: Any) -> None:
    cluster = Cluster(SETUP, PROTECTED)
    await defined(cluster, definitions)
    stored = await cluster.client.create(PODCLIQUESET, "ml", small())
    root = stored["metadata"]["name"]
    deletion = reviewed(None, child(root=root), PODCLIQUE) | {}
    deletion["request"] |= {"operation": "DELETE", "object": None}

    def by(user: str) -> Any:
        return {**deletion, "request": {**deletion["request"], "userInfo": {"username": user}}}

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.caches.run)
        await until(cluster.caches.is_filled)
        assert "deletion of resource: ml/web-0-a is not allowed" in await cluster.denial(AUTHORIZER, by("ann"))
        assert [await cluster.denial(AUTHORIZER, by(user)) for user in ("engine", "collector")] == ["", ""]

        await cluster.client.patch(PODCLIQUESET, "ml", root, {"metadata": {"annotations": {DISABLE_PROTECTION: "true"}}})
        await until(lambda: "annotations" in cluster.caches.find(PODCLIQUESET.id("ml", root)).body["metadata"])  # type: ignore[union-attr]
        assert await cluster.denial(AUTHORIZER, by("ann")) == ""
        tasks.cancel_scope.cancel()


async def test_of_a_set_only_what_the_rules_read_is_kept(definitions: Any) -> None:
    cluster = Cluster(SETUP, PROTECTED)
    await defined(cluster, definitions)
    stored = await cluster.client.create(PODCLIQUESET, "ml", put(small(), {"metadata.annotations": {"note": "x" * 1000}}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.caches.run)
        await until(cluster.caches.is_filled)
        kept = cluster.caches.find(PODCLIQUESET.id("ml", stored["metadata"]["name"]))
        tasks.cancel_scope.cancel()

    assert kept is not None
    assert len(msgspec.json.encode(kept.body)) < 400


async def test_another_configuration_is_judged_by_at_once_and_its_look_ups_are_watched(definitions: Any) -> None:
    cluster = Cluster(SETUP)
    await defined(cluster, definitions)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.caches.run)
        await until(cluster.caches.is_filled)
        assert "Topology Aware Scheduling is disabled" in await cluster.denial(VALIDATE_SET, review(object=CONSTRAINED))

        volcano = Configuration({**TOPOLOGY.schedulers, "volcano": SCHEDULERS["volcano"]}, "default-scheduler", topology=True)
        cluster.judge.rules = AdmissionRules(volcano, UNPROTECTED)
        cluster.caches.use(look_ups(volcano))
        await until(cluster.caches.is_filled)
        assert MISSING in await cluster.denial(VALIDATE_SET, review(object=CONSTRAINED))
        assert {state.kind.name for state in cluster.caches.caches()} == {
            "ClusterTopologyBinding",
            "DynamoGraphDeployment",
            "PodCliqueSet",
            "Queue",
        }

        cluster.caches.use(())
        await until(lambda: not cluster.caches.caches())
        tasks.cancel_scope.cancel()


async def test_graphs_without_a_set_are_watched_and_count_with_the_sets_of_their_namespace(definitions: Any) -> None:
    cluster = Cluster(replace(SETUP, limits=WorkloadLimits(of_namespace=replace(NAMESPACE_LIMITS, pods=10))))
    await defined(cluster, definitions)
    larger = put(small(), {"spec.replicas": 3})
    for name, annotations in (("chat", {ENABLE_GROVE: "false"}), ("other", {})):
        stored = put(graph({"decode": wide(replicas=3)}, annotations=annotations), {"metadata.namespace": "ml", "metadata.name": name})
        await cluster.client.create(DYNAMO_GRAPH, "ml", stored)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cluster.caches.run)
        await until(cluster.caches.is_filled)
        assert "12: the PodCliqueSets of the namespace, and graphs without one," in await cluster.denial(
            VALIDATE_SET, reviewed(larger, small())
        )
        await cluster.client.delete(DYNAMO_GRAPH, "ml", "chat")
        await until(lambda: cluster.caches.find(DYNAMO_GRAPH.id("ml", "chat")) is None)
        assert await cluster.denial(VALIDATE_SET, reviewed(larger, small())) == ""
        tasks.cancel_scope.cancel()
