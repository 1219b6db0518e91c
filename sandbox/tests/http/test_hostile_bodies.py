"""Whatever is sent, the sandbox has an answer that a real server has: never an error of its own."""

from collections.abc import Coroutine
from typing import Any

from hypothesis import given, settings
from starlette.responses import Response

from grove_sandbox.api import options
from grove_sandbox.api.verbs import Api
from grove_sandbox.http.access import Identity
from grove_sandbox.http.backend import Backend
from grove_sandbox.http.routes import route
from grove_sandbox.http.serving import Call, serve
from grove_sandbox.types.status import StatusError
from sandbox.tests.hostile import Deed, deeds, steps, world

_SOMEBODY = Identity("somebody")
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def done(api: Api, deed: Deed) -> int:
    """The code of the answer. Raises what the server did not foresee."""
    path, _, query = deed.path.partition("?")
    where = route(path)
    assert where is not None
    call = Call(
        method=deed.method,
        route=where,
        query=options.parse(query.encode()),
        identity=_SOMEBODY,
        accept=_TABLE if deed.method == "GET" else "application/json",
        content_type=deed.media,
        agent="test/1",
        data=deed.body,
    )
    try:
        return finished(serve(Backend(api, api.clock), call)).status_code
    except StatusError as refusal:
        assert refusal.body["message"]
        return refusal.code


def finished(answering: Coroutine[Any, Any, Response]) -> Response:
    """The answer of a coroutine that waits for nothing."""
    try:
        answering.send(None)
    except StopIteration as end:
        answer: Response = end.value
        return answer
    raise AssertionError("the server waits")


@settings(max_examples=400, derandomize=True)
@given(deeds())
def test_no_body_makes_the_server_stumble(deeds: tuple[Deed, ...]) -> None:
    api = world()

    for step in steps(deeds):
        assert 200 <= done(api, step) <= 500
