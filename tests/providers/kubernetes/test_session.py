"""Session: what becomes of a request when the server, or the way to it, is not at its best."""

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
    Invalid,
    NotFound,
    ServerFault,
    Throttled,
    Unreachable,
)
from providers.kubernetes.line import Limits
from tests.providers.kubernetes.loopback import POD, TOKEN, Turned, client_of, hang_up, json_answer, kubeconfig, made, pod, refused, serving

pytestmark = pytest.mark.anyio


async def test_a_throttled_create_waits_as_it_was_told_and_goes_through(tmp_path: Path) -> None:
    clock, tries = Turned(), 0

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal tries
        tries += 1
        return refused(429, "TooManyRequests", retry_after="3") if tries <= 3 else await made(request)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), clock) as client:
        await client.create(POD, "lab", pod("x"))

    assert len(clock.slept) == 3
    assert all(3 <= seconds <= 3.6 for seconds in clock.slept)


async def test_a_server_that_wants_us_away_for_long_says_so_to_the_caller(tmp_path: Path) -> None:
    clock = Turned()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(429, "TooManyRequests", retry_after="600")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), clock) as client:
        with pytest.raises(Throttled) as caught:
            await client.get(POD, "lab", "x")

    assert (caught.value.retry_after, clock.slept) == (600.0, [])


async def test_waiting_leaves_the_way_free_for_others(tmp_path: Path) -> None:
    """One request at a time, and one of them told to come back: the other one passes."""
    served: list[str] = []

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        if name == "first" and not served:
            return refused(429, "TooManyRequests", retry_after="1")
        served.append(name)
        return json_answer(pod(name))

    async with (
        serving(handler) as server,
        client_of(kubeconfig(tmp_path, server.url), limits=Limits(in_flight=1)) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.get, POD, "lab", "first")
        tasks.start_soon(client.get, POD, "lab", "second")

    assert served == ["second", "first"]


@pytest.mark.parametrize("code", [500, 502, 503, 504])
async def test_a_read_survives_a_server_that_fails_for_a_moment(tmp_path: Path, code: int) -> None:
    clock, tries = Turned(), 0

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal tries
        tries += 1
        return refused(code, "InternalError") if tries <= 2 else json_answer(pod("x"))

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), clock) as client:
        assert (await client.get(POD, "lab", "x"))["metadata"]["name"] == "x"

    first, second = clock.slept
    assert 0.1 <= first <= 0.3
    assert 0.2 <= second <= 0.6


async def test_a_read_gives_up_after_five_tries(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(503, "ServiceUnavailable", "etcd is away")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault, match="etcd is away") as caught:
            await client.get(POD, "lab", "x")

    assert (caught.value.code, len(server.seen)) == (503, 5)


async def test_a_create_that_failed_after_it_was_done_is_not_sent_again(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(500, "InternalError", "leader changed", retry_after="1")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault, match="leader changed"):
            await client.create(POD, "lab", pod("x"))

    assert len(server.seen) == 1


@pytest.mark.parametrize("verb", ["create", "replace", "patch", "delete"])
async def test_a_write_whose_connection_breaks_is_sent_once(tmp_path: Path, verb: str) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return hang_up(request)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        writes = {
            "create": lambda: client.create(POD, "lab", pod("x")),
            "replace": lambda: client.replace(POD, "lab", "x", pod("x")),
            "patch": lambda: client.patch(POD, "lab", "x", {}),
            "delete": lambda: client.delete(POD, "lab", "x"),
        }
        with pytest.raises(Unreachable, match="cut the connection"):
            await writes[verb]()

    assert len(server.seen) == 1


async def test_a_read_whose_connection_breaks_is_sent_again(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return hang_up(request) if len(server.seen) < 3 else json_answer(pod("x"))

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        await client.get(POD, "lab", "x")

    assert len(server.seen) == 3


async def test_a_create_that_never_left_is_sent_once_the_server_is_back(tmp_path: Path) -> None:
    async with serving(made) as gone:
        config = kubeconfig(tmp_path, gone.url)

    async with AsyncExitStack() as until_the_end:

        class Awaited(Turned):
            """While we wait for the first time, the server comes back."""

            async def sleep(self, seconds: float) -> None:
                if not self.slept:
                    await until_the_end.enter_async_context(serving(made, port=int(gone.url.rpartition(":")[2])))
                await super().sleep(seconds)

        async with client_of(config, Awaited()) as client:
            assert (await client.create(POD, "lab", pod("x")))["metadata"]["uid"] == "uid-of-x"


async def test_a_server_that_is_not_there_is_named_in_one_line(tmp_path: Path) -> None:
    async with serving(made) as gone:
        config = kubeconfig(tmp_path, gone.url)
    clock = Turned()

    async with client_of(config, clock) as client:
        with pytest.raises(Unreachable) as caught:
            await client.create(POD, "lab", pod("x"))

    assert str(caught.value) == f"{gone.url} does not answer: connection refused"
    assert len(clock.slept) == 2


async def test_a_slow_server_is_given_up_in_time(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        await anyio.sleep_forever()
        return web.Response()

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), limits=Limits(total=0.05)) as client:
        with pytest.raises(Unreachable, match="does not answer in time"):
            await client.get(POD, "lab", "x")

    assert len(server.seen) == 1, "who has waited that long is not made to wait again"


@pytest.mark.parametrize(
    ("code", "reason", "situation"),
    [
        (400, "BadRequest", Invalid),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (413, "RequestEntityTooLarge", Invalid),
        (415, "UnsupportedMediaType", Invalid),
        (422, "Invalid", Invalid),
        (500, "InternalError", ServerFault),
    ],
)
async def test_every_refusal_is_a_situation_with_the_servers_words(
    tmp_path: Path, code: int, reason: str, situation: type[ClusterError]
) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(code, reason, "so it is")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ClusterError, match="so it is") as caught:
            await client.create(POD, "lab", pod("x"))

    assert (type(caught.value), caught.value.code, caught.value.reason) == (situation, code, reason)


async def test_the_words_of_a_server_do_not_steer_a_terminal(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return refused(422, "Invalid", "bad\x1b[2J\n  name \u202e" + "x" * 9000)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(Invalid) as caught:
            await client.create(POD, "lab", pod("x"))

    text = str(caught.value)
    assert text.isprintable()
    assert text.startswith("bad\\x1b[2J name \\u202e")
    assert len(text) <= 2000


async def test_a_server_that_repeats_our_token_does_not_get_it_printed(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=500, text=f"<html>debug: {request.headers['Authorization']}</html>")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault) as caught:
            await client.create(POD, "lab", pod("x"))
        said = f"{caught.value} {caught.value!r} {caught.value.status} {client!r} {client._api._standing!r}"

    assert "(masked)" in said
    assert TOKEN not in said
    assert caught.value.__cause__ is None


async def test_a_redirect_is_not_followed_for_it_would_carry_our_token_away(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/login"})

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault, match="redirect"):
            await client.create(POD, "lab", pod("x"))


async def test_what_is_no_api_server_is_told_so(tmp_path: Path) -> None:
    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text="<html>Welcome</html>", content_type="text/html")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        with pytest.raises(ServerFault, match="is it a Kubernetes API server"):
            await client.get(POD, "lab", "x")


async def test_kr8s_itself_works_on_top_without_trailing_slashes_warnings_or_another_login(tmp_path: Path) -> None:
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
        return json_answer(answers[request.path]) if request.path in answers else refused(503, "ServiceUnavailable")

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url)) as client:
        api = client._api
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert await api is api
            assert (await api.version())["gitVersion"] == "v9.99.0"
            found = [one["metadata"]["name"] async for one in api.get("pods", namespace="lab", raw=True)]
            one = await Kr8sPod.get("x", namespace="lab", api=api)
            assert await one.exists()
            await one.refresh()

    assert (found, one.labels["a"]) == (["x"], "b")
    assert not [one.path for one in server.seen if one.path.endswith("/")]
