"""DirectApi: which requests are repeated when the server or the network fails, and what their errors say."""

import warnings
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from aiohttp import web
from kr8s.asyncio.objects import Pod as Kr8sPod

from engine.errors import (
    AlreadyExists,
    ClusterError,
    Conflict,
    Forbidden,
    InputError,
    Invalid,
    NotFound,
    ServerFault,
    Throttled,
    TooLarge,
    Unreachable,
)
from engine.operation import Cause, Create, Outcome
from engine.plan import Plan
from engine.runtime.calls import ATTEMPTS
from providers.cluster import Cluster
from providers.kubernetes.api import SingleFlight
from providers.kubernetes.connection_pool import RequestLimits
from tests.providers.kubernetes.loopback import (
    POD,
    TOKEN,
    InstantClock,
    client_of,
    close_connection,
    created,
    json_response,
    kubeconfig,
    pod,
    refused,
    serving,
)
from tests.sending import apply

pytestmark = pytest.mark.anyio


async def test_a_throttled_read_is_repeated_after_the_time_that_the_server_says(tmp_path: Path) -> None:
    clock, tries = InstantClock(), 0

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal tries
        tries += 1
        return refused(429, "TooManyRequests", retry_after="3") if tries <= 3 else json_response(pod("x"))

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), clock) as client:
        await client.get(POD, "lab", "x")

    assert len(clock.slept) == 3
    assert all(3 <= seconds <= 3.6 for seconds in clock.slept)


async def test_a_long_retry_after_is_left_to_the_caller(tmp_path: Path) -> None:
    clock = InstantClock()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(429, "TooManyRequests", retry_after="600")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), clock) as client:
        with pytest.raises(Throttled) as caught:
            await client.get(POD, "lab", "x")

    assert (caught.value.retry_after, clock.slept) == (600.0, [])


async def test_a_request_that_waits_to_be_repeated_does_not_block_others(tmp_path: Path) -> None:
    served: list[str] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        if name == "first" and not served:
            return refused(429, "TooManyRequests", retry_after="1")
        served.append(name)
        return json_response(pod(name))

    async with (
        serving(handler) as server,
        client_of(kubeconfig(tmp_path, server.url), limits=RequestLimits(in_flight=1)) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.get, POD, "lab", "first")
        tasks.start_soon(client.get, POD, "lab", "second")

    assert served == ["second", "first"]


@pytest.mark.parametrize("code", [500, 502, 503, 504])
async def test_a_read_is_repeated_while_the_server_fails(tmp_path: Path, code: int) -> None:
    clock, tries = InstantClock(), 0

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal tries
        tries += 1
        return refused(code, "InternalError") if tries <= 2 else json_response(pod("x"))

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), clock) as client:
        assert (await client.get(POD, "lab", "x"))["metadata"]["name"] == "x"

    first, second = clock.slept
    assert 0.1 <= first <= 0.3
    assert 0.2 <= second <= 0.6


async def test_a_read_fails_after_five_attempts(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(503, "ServiceUnavailable", "etcd is down")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault, match="etcd is down") as caught:
            await client.get(POD, "lab", "x")

    assert (caught.value.code, len(server.requests)) == (503, 5)


async def test_a_create_that_the_server_failed_to_answer_is_not_repeated(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(500, "InternalError", "leader changed", retry_after="1")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault, match="leader changed"):
            await client.create(POD, "lab", pod("x"))

    assert len(server.requests) == 1


async def test_a_write_that_is_always_throttled_is_sent_as_often_as_apply_says_and_no_more(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(429, "TooManyRequests", retry_after="1")

    clock, operation = InstantClock(), Create(POD.id("lab", "x"), "missing", Cause.INTENT, manifest=pod("x"))
    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), clock) as client:
        (result,) = await apply([Plan(operation.id, (operation,))], Cluster(client, clock), clock)

    assert server.calls() == [("POST", "/api/v1/namespaces/lab/pods")] * ATTEMPTS
    assert (result.outcome, type(result.error)) == (Outcome.FAILED, Throttled)
    assert all(1 <= seconds <= 1.2 for seconds in clock.slept)


@pytest.mark.parametrize("verb", ["create", "replace", "patch", "delete"])
async def test_a_write_whose_connection_breaks_is_not_repeated(tmp_path: Path, verb: str) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return close_connection(request)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        writes = {
            "create": lambda: client.create(POD, "lab", pod("x")),
            "replace": lambda: client.replace(POD, "lab", "x", pod("x")),
            "patch": lambda: client.patch(POD, "lab", "x", {}),
            "delete": lambda: client.delete(POD, "lab", "x"),
        }
        with pytest.raises(Unreachable, match="closed the connection"):
            await writes[verb]()

    assert len(server.requests) == 1


async def test_a_read_whose_connection_breaks_is_repeated(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return close_connection(request) if len(server.requests) < 3 else json_response(pod("x"))

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        await client.get(POD, "lab", "x")

    assert len(server.requests) == 3


async def test_a_create_that_was_never_sent_is_repeated_until_the_server_is_back(tmp_path: Path) -> None:
    async with serving(created) as stopped:
        config = kubeconfig(tmp_path, stopped.url)

    async with AsyncExitStack() as servers:

        class Restarting(InstantClock):
            """The server is back after the first pause."""

            async def sleep(self, seconds: float) -> None:
                if not self.slept:
                    await servers.enter_async_context(serving(created, port=int(stopped.url.rpartition(":")[2])))
                await super().sleep(seconds)

        async with client_of(config, Restarting()) as client:
            assert (await client.create(POD, "lab", pod("x")))["metadata"]["uid"] == "uid-of-x"


async def test_a_server_that_cannot_be_reached_is_named_in_one_line(tmp_path: Path) -> None:
    async with serving(created) as stopped:
        config = kubeconfig(tmp_path, stopped.url)
    clock = InstantClock()

    async with client_of(config, clock) as client:
        with pytest.raises(Unreachable) as caught:
            await client.create(POD, "lab", pod("x"))

    assert str(caught.value) == f"{stopped.url} does not answer: connection refused; is the cluster running?"
    assert len(clock.slept) == 2


async def test_a_request_to_a_slow_server_times_out(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        await anyio.sleep_forever()
        return web.Response()

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), limits=RequestLimits(total=0.05)) as client:
        with pytest.raises(Unreachable, match="does not answer in time"):
            await client.get(POD, "lab", "x")

    assert len(server.requests) == 1, "a timeout is not repeated"


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", Invalid),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (413, "RequestEntityTooLarge", TooLarge),
        (415, "UnsupportedMediaType", Invalid),
        (422, "Invalid", Invalid),
        (500, "InternalError", ServerFault),
    ],
)
async def test_every_http_error_becomes_an_engine_error_with_the_servers_message(
    tmp_path: Path, code: int, reason: str, error: type[ClusterError]
) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(code, reason, "the reason")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ClusterError, match="the reason") as caught:
            await client.create(POD, "lab", pod("x"))

    assert (type(caught.value), caught.value.code, caught.value.reason) == (error, code, reason)


async def test_control_characters_in_a_servers_message_are_escaped(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(422, "Invalid", "bad\x1b[2J\n  name \u202e" + "x" * 9000)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(Invalid) as caught:
            await client.create(POD, "lab", pod("x"))

    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith("bad\\x1b[2J name \\u202e")
    assert len(text) <= 2000


async def test_a_token_that_the_server_repeats_is_masked(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=500, text=f"<html>debug: {request.headers['Authorization']}</html>")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault) as caught:
            await client.create(POD, "lab", pod("x"))
        shown = f"{caught.value} {caught.value!r} {caught.value.status} {client!r} {client._api._current!r}"

    assert "(masked)" in shown
    assert TOKEN not in shown
    assert caught.value.__cause__ is None


async def test_a_redirect_is_not_followed_because_it_would_leak_the_token(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/login"})

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault, match="redirect"):
            await client.create(POD, "lab", pod("x"))


async def test_a_server_that_is_no_api_server_is_reported(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="<html>Welcome</html>", content_type="text/html")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault, match="is it a Kubernetes API server"):
            await client.get(POD, "lab", "x")


async def test_kr8s_works_on_top_without_trailing_slashes_warnings_or_another_login(tmp_path: Path) -> None:
    live = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "lab", "labels": {"a": "b"}}}
    answers = {
        "/version": {"gitVersion": "v9.99.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "singularName": "pod", "verbs": ["list", "watch"]}]},
        "/apis": {"groups": [{"name": "broken.io", "versions": [{"groupVersion": "broken.io/v1", "version": "v1"}]}]},
        "/api/v1/namespaces/lab/pods": {"metadata": {}, "items": [live]},
        "/api/v1/namespaces/lab/pods/x": live,
    }

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return json_response(answers[request.path]) if request.path in answers else refused(503, "ServiceUnavailable")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        api = client._api
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert await api is api
            assert (await api.version())["gitVersion"] == "v9.99.0"
            names = [each["metadata"]["name"] async for each in api.get("pods", namespace="lab", raw=True)]
            kr8s_pod = await Kr8sPod.get("x", namespace="lab", api=api)
            assert await kr8s_pod.exists()
            await kr8s_pod.refresh()

    assert (names, kr8s_pod.labels["a"]) == (["x"], "b")
    assert not [each.path for each in server.requests if each.path.endswith("/")]


class Operation:
    """An operation that ends when the test says so, and counts its runs."""

    def __init__(self, error: Exception | None = None) -> None:
        self.runs = 0
        self.error = error
        self.end = anyio.Event()

    async def __call__(self) -> int:
        self.runs += 1
        await self.end.wait()
        if self.error:
            raise self.error
        return self.runs


async def test_forty_concurrent_callers_share_one_run() -> None:
    operation, outcomes = Operation(), []
    shared = SingleFlight(operation)

    async def call() -> None:
        outcomes.append(await shared())

    async with anyio.create_task_group() as tasks:
        for _ in range(40):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        operation.end.set()

    assert (operation.runs, outcomes) == (1, [1] * 40)


async def test_a_later_caller_gets_a_new_run() -> None:
    operation = Operation()
    operation.end.set()
    shared = SingleFlight(operation)

    assert [await shared(), await shared()] == [1, 2]


async def test_a_failure_is_shared_and_not_remembered() -> None:
    operation, failures = Operation(InputError("no")), 0
    shared = SingleFlight(operation)

    async def call() -> None:
        nonlocal failures
        with pytest.raises(InputError):
            await shared()
        failures += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        operation.end.set()
    operation.error = None

    assert (failures, operation.runs, await shared()) == (2, 1, 2)


async def test_when_the_caller_that_runs_it_is_cancelled_another_one_takes_over() -> None:
    operation, outcomes = Operation(), []
    shared = SingleFlight(operation)
    first = anyio.CancelScope()

    async def leader() -> None:
        with first:
            await shared()

    async def follower() -> None:
        outcomes.append(await shared())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leader)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(follower)
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await anyio.wait_all_tasks_blocked()
        operation.end.set()

    assert (operation.runs, outcomes) == (2, [2])
