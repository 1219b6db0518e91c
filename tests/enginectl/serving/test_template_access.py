"""A webhook asks the API server whether the user of a request may read the templates of other namespaces that it adds."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import anyio
import pytest

from engine.errors import ClusterError, Forbidden, NotFound, Unreachable
from engine.ids import Kind
from engine.runtime.provider import Client
from enginectl.serving import template_access
from enginectl.serving.template_access import MOST
from resources.admission.managed_rules import Protection
from resources.base import labels
from resources.install.webhooks import DEFAULT_SET, VALIDATE_SET, Webhook
from tests.builders import podcliqueset, share
from tests.enginectl.serving.test_admission import answer_of, judge_of, reviewed
from tests.resources.admission.requests import put, small

pytestmark = pytest.mark.anyio

USER = {"username": "ann", "uid": "7", "groups": ["team", "system:authenticated"], "extra": {"scopes": ["a", "b"]}}
NOT_SHARED = "ResourceClaimTemplate vault/gpu is not shared with namespace ml; do: add ml to its annotation engine.grove.io/shared-with"


class ApiServer:
    """An API server that knows one template, and who may read it. The sandbox has no users."""

    def __init__(self, **status: Any) -> None:
        self.status: Mapping[str, Any] = status or {"allowed": True}
        self.shared_with = "ml"
        self.asked: list[Mapping[str, Any]] = []
        self.read: list[str] = []
        self.refuses_review: ClusterError | None = None
        self.refuses_read: ClusterError | None = None
        self.before: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint

    async def create(self, kind: Kind, namespace: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A SubjectAccessReview with its status."""
        assert (kind.name, body["kind"], body["apiVersion"]) == ("SubjectAccessReview", "SubjectAccessReview", "authorization.k8s.io/v1")
        self.asked.append(body["spec"])
        await self.before()
        if self.refuses_review:
            raise self.refuses_review
        return {"status": dict(self.status)}

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        """The template."""
        self.read.append(f"{kind.name} {namespace}/{name}")
        if self.refuses_read:
            raise self.refuses_read
        return {"metadata": {"name": name, "annotations": {labels.SHARED_WITH: self.shared_with}}, "spec": {}}


def web(*names: str, namespace: str = "vault", **metadata: Any) -> dict[str, Any]:
    """A set that refers to these templates of another namespace."""
    body = podcliqueset("web", resourceSharing=[share(name, namespace=namespace) for name in names or ("gpu",)], namespace="ml")
    return {**body, "metadata": {**body["metadata"], **metadata}}


async def answered(server: ApiServer, new: Any, old: Any = None, webhook: Webhook = VALIDATE_SET, operator: str = "", **fields: Any) -> Any:
    """The response of a webhook to the creation or change of a set."""
    judge = judge_of(protection=Protection(operator=operator), client=cast(Client, server))
    document = reviewed(new, old, **{"userInfo": USER, **fields})
    return json.loads((await answer_of(judge, webhook, document)).body)["response"]


def message(response: Any) -> str:
    """Why it was denied; empty if it was not."""
    return "" if response["allowed"] else str(response["status"]["message"])


async def test_a_user_who_may_read_a_shared_template_is_admitted_after_a_question_with_all_that_is_known_about_the_user() -> None:
    server = ApiServer()

    response = await answered(server, web())

    assert (response["allowed"], response.get("warnings")) == (True, None)
    (spec,) = server.asked
    assert spec == {
        "user": "ann",
        "uid": "7",
        "groups": ["team", "system:authenticated"],
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {
            "verb": "get",
            "group": "resource.k8s.io",
            "version": "v1",
            "resource": "resourceclaimtemplates",
            "namespace": "vault",
            "name": "gpu",
        },
    }


@pytest.mark.parametrize("status", [{"allowed": False}, {"allowed": True, "denied": True}, {"allowed": "true"}, {"reason": "?"}])
async def test_a_user_who_may_not_is_denied_and_the_template_is_not_read(status: Mapping[str, Any]) -> None:
    server = ApiServer(**status)

    response = await answered(server, web())

    assert "spec.template.resourceSharing[0].namespace: Forbidden: user ann may not get resourceclaimtemplates" in message(response)
    assert response["status"]["code"] == 422
    assert response["status"]["details"]["causes"][0]["reason"] == "FieldValueForbidden"
    assert server.read == []


@pytest.mark.parametrize("shared_with", ["", "ml-2", "other", "team-*"])
async def test_a_user_who_may_read_it_needs_the_consent_of_the_template_too(shared_with: str) -> None:
    server = ApiServer()
    server.shared_with = shared_with

    assert NOT_SHARED in message(await answered(server, web()))


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (Unreachable("secret text"), "(Unreachable)"),
        (Forbidden("secret text"), "(Forbidden: the engine may not create subjectaccessreviews)"),
        (NotFound("secret text"), "(NotFound)"),
    ],
)
async def test_a_check_that_cannot_be_made_denies_with_a_reason(error: ClusterError, why: str) -> None:
    server = ApiServer()
    server.refuses_review = error

    text = message(await answered(server, web()))

    assert f"could not be checked {why}; do: try again" in text
    assert "secret" not in text


async def test_a_check_without_an_answer_in_time_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_access, "LONGEST", 0.01)
    server = ApiServer()
    server.before = anyio.sleep_forever

    assert "could not be checked (no answer within 3 s); do: try again" in message(await answered(server, web()))


@pytest.mark.parametrize(("error", "why"), [(NotFound("x"), "does not exist"), (Forbidden("x"), "could not be read (Forbidden)")])
async def test_a_template_that_is_not_there_or_not_readable_denies_nothing(error: ClusterError, why: str) -> None:
    server = ApiServer()
    server.refuses_read = error

    response = await answered(server, web())

    assert response["allowed"]
    assert response["warnings"] == [f"ResourceClaimTemplate vault/gpu {why}: the pods that need it wait until it is there and shared"]


async def test_no_other_request_makes_a_call() -> None:
    server = ApiServer()
    server.refuses_review = Unreachable("down")
    recorded = {labels.COPIED_CLAIMS: "0" * 64}
    requests: list[tuple[Any, Any, dict[str, Any]]] = [
        (small(), None, {}),
        (web(namespace="ml"), None, {}),
        (web(), web(), {}),
        (web(finalizers=["grove.io/podcliqueset.grove.io"], annotations=recorded), web(), {}),
        (put(web(), {"spec.replicas": 2}), web(), {}),
        (web(), web(deletionTimestamp="2026-01-01T00:00:00Z"), {}),
        (web(), None, {"userInfo": {"username": "engine"}}),
        (web(), None, {"webhook": DEFAULT_SET}),
        (web(), web(), {"subResource": "status"}),
    ]

    answers = [await answered(server, new, old, operator="engine", **fields) for new, old, fields in requests]

    assert ([message(answer) for answer in answers], server.asked, server.read) == ([""] * len(requests), [], [])


async def test_a_set_that_is_refused_anyway_makes_no_call() -> None:
    server = ApiServer()

    assert "minAvailable" in message(await answered(server, put(web(), {"spec.template.cliques.0.spec.minAvailable": 9})))
    assert server.asked == []


async def test_each_template_is_asked_for_once_and_only_so_many() -> None:
    server = ApiServer()
    names = [f"gpu-{number}" for number in range(MOST + 5)]

    text = message(await answered(server, web(*names)))

    assert len(server.asked) == MOST
    assert text.count(f"the request refers to more than {MOST} templates of other namespaces") == 5


@pytest.mark.parametrize("namespace", ["../secrets", "vault/x", "Vault", "x" * 64, "va\x1bult", "%2e%2e", "vault?x=y"])
async def test_a_name_that_no_object_has_becomes_no_part_of_a_call(namespace: str) -> None:
    server = ApiServer()

    response = await answered(server, web(namespace=namespace))

    assert response["allowed"] and "does not exist" in response["warnings"][0]
    assert response["warnings"][0].isprintable()
    assert (server.asked, server.read) == ([], [])


@pytest.mark.parametrize("info", [{"groups": "admins", "extra": ["x"], "uid": 7}, {"groups": [1, None], "extra": {"a": "b"}}])
async def test_what_is_known_of_a_user_in_a_wrong_shape_gives_no_right(info: Mapping[str, Any]) -> None:
    server = ApiServer()

    await answered(server, web(), userInfo={"username": "ann", **info})

    (spec,) = server.asked
    assert {key: value for key, value in spec.items() if key != "resourceAttributes"} in ({"user": "ann"}, {"user": "ann", "groups": []})
