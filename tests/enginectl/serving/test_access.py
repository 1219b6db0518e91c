"""Who may see plans and pages: clients on the same machine, and callers whose token the API server knows and whose user it permits."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.errors import Forbidden, Unreachable
from engine.ids import Kind
from enginectl.serving.access import KEPT_ANSWERS, KEPT_SECONDS, TokenReviewer, for_loopback, with_token
from grove_sandbox.clock import VirtualClock
from providers.http.message import HttpResponse, IncomingRequest, Routes

pytestmark = pytest.mark.anyio

PATH = ("GET", "/debug/plan")


async def plan(request: IncomingRequest) -> HttpResponse:
    """What is protected."""
    return HttpResponse(body=b"the plan")


ROUTES: Routes = {PATH: plan}


class ApiServer:
    """The two reviews as an API server answers them. The sandbox has no users."""

    def __init__(self, **user: Any) -> None:
        self.user, self.allowed, self.asked = user, True, list[tuple[str, Any]]()
        self.error: Exception | None = None

    async def create(self, kind: Kind, namespace: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The review with its status."""
        self.asked.append((kind.name, body["spec"]))
        if self.error:
            raise self.error
        if kind.name == "TokenReview":
            known = body["spec"]["token"].startswith("good")
            return {"status": {"authenticated": True, "user": self.user} if known else {"authenticated": False, "error": "no"}}
        return {"status": {"allowed": self.allowed, "reason": "because"}}


class Caller:
    """A caller of the protected route."""

    def __init__(self, server: Any) -> None:
        self.clock = VirtualClock()
        self.routes = with_token(ROUTES, TokenReviewer(server, self.clock))

    async def get(self, authorization: str = "") -> HttpResponse:
        headers = {"authorization": authorization} if authorization else {}
        return await self.routes[PATH](IncomingRequest("GET", "/debug/plan", headers=headers, peer="192.0.2.1"))


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("host", ["localhost:2752", "LOCALHOST", "127.0.0.1:8080", "[::1]:2752", "[::1]"])
async def test_a_client_on_the_same_machine_sees_the_plan(peer: str, host: str) -> None:
    response = await for_loopback(ROUTES)[PATH](IncomingRequest("GET", "/debug/plan", headers={"host": host}, peer=peer))

    assert response.body == b"the plan"


@pytest.mark.parametrize(
    ("peer", "headers"),
    [
        ("192.0.2.1", {"host": "localhost"}),
        ("::ffff:192.0.2.1", {"host": "localhost"}),
        ("", {"host": "localhost"}),
        ("localhost", {"host": "localhost"}),
        ("127.0.0.1", {}),
        ("127.0.0.1", {"host": ""}),
        ("127.0.0.1", {"host": "evil.example"}),
        ("127.0.0.1", {"host": "localhost.evil.example"}),
        ("127.0.0.1", {"host": "127.0.0.1.evil.example"}),
        ("127.0.0.1", {"host": "localhost, evil.example"}),
        ("127.0.0.1", {"host": "localhost@evil.example"}),
        ("127.0.0.1", {"host": "localhost", "x-forwarded-for": "192.0.2.1"}),
        ("127.0.0.1", {"host": "localhost", "via": "1.1 proxy"}),
    ],
)
async def test_nobody_else_does(peer: str, headers: dict[str, str]) -> None:
    response = await for_loopback(ROUTES)[PATH](IncomingRequest("GET", "/debug/plan", headers=headers, peer=peer))

    assert response.status == 403
    assert b"kubectl port-forward" in response.body


async def test_a_token_that_the_api_server_knows_and_permits_sees_the_plan() -> None:
    server = ApiServer(username="ann", uid="7", groups=["dev", 3], extra={"scopes": ["a"], "bad": "b"})

    response = await Caller(server).get("Bearer good-token")

    assert response.body == b"the plan"
    attributes = {"path": "/debug/plan", "verb": "get"}
    access = {"user": "ann", "uid": "7", "groups": ["dev"], "extra": {"scopes": ["a"]}, "nonResourceAttributes": attributes}
    assert server.asked == [("TokenReview", {"token": "good-token"}), ("SubjectAccessReview", access)]


@pytest.mark.parametrize("authorization", ["", "Basic Z29vZDp4", "Bearer", "Bearer  ", "good-token"])
async def test_without_a_token_the_api_server_is_not_asked(authorization: str) -> None:
    server = ApiServer(username="ann")

    response = await Caller(server).get(authorization)

    assert (response.status, response.headers["WWW-Authenticate"]) == (401, 'Bearer realm="engine"')
    assert server.asked == []


@pytest.mark.parametrize("token", ["bad", "go\x00od", "good token", "g" * 20000, "gööd"])
async def test_a_token_that_nobody_knows_is_refused(token: str) -> None:
    response = await Caller(ApiServer(username="ann")).get(f"Bearer {token}")

    assert response.status == 401
    assert "WWW-Authenticate" in response.headers
    assert token.encode() not in response.body


async def test_a_user_without_the_permission_reads_who_he_is_and_which_command_helps() -> None:
    server = ApiServer(username="ann\x1b[31m")
    server.allowed = False

    response = await Caller(server).get("Bearer good")

    assert response.status == 403
    assert response.body.decode().startswith("ann\\x1b[31m may not get /debug/plan (because): kubectl create clusterrole")


@pytest.mark.parametrize("user", [{}, {"username": ""}, {"username": 3}, {"username": ["ann"]}])
async def test_a_user_without_a_name_is_nobody(user: dict[str, Any]) -> None:
    assert (await Caller(ApiServer(**user)).get("Bearer good")).status == 401


@pytest.mark.parametrize("error", [Unreachable("no answer to good-token"), Forbidden("good-token may not create")])
async def test_an_api_server_that_cannot_be_asked_permits_nothing_and_is_asked_again(error: Exception) -> None:
    server = ApiServer(username="ann")
    server.error, caller = error, Caller(server)

    response = await caller.get("Bearer good-token")
    server.error = None
    again = await caller.get("Bearer good-token")

    assert response.status == 503
    assert b"good-token" not in response.body
    assert again.status == 200


async def test_an_answer_counts_for_ten_seconds() -> None:
    server = ApiServer(username="ann")
    caller = Caller(server)
    await caller.get("Bearer good")
    server.allowed = False

    await caller.clock.advance(KEPT_SECONDS - 1)
    kept = await caller.get("Bearer good")
    await caller.clock.advance(1)
    asked = await caller.get("Bearer good")

    assert (kept.status, asked.status) == (200, 403)


async def test_the_answers_that_are_kept_are_bounded_and_hold_no_token() -> None:
    reviewer = TokenReviewer(ApiServer(username="ann"), VirtualClock())  # type: ignore[arg-type]

    for number in range(KEPT_ANSWERS + 10):
        await reviewer.access(f"Bearer good-{number}")

    assert len(reviewer._answers) == KEPT_ANSWERS
    assert not any(b"good" in key for key in reviewer._answers)
