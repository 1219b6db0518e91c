"""RequestObserver: every attempt is told with its answer, and whether it is repeated."""

from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from engine.errors import Unreachable
from providers.metrics.metrics import RequestMetrics
from tests.providers.kubernetes.loopback import POD, client_of, close_connection, json_response, kubeconfig, pod, refused, serving

pytestmark = pytest.mark.anyio


async def test_every_attempt_is_counted_by_its_answer(tmp_path: Path) -> None:
    registry, answers = CollectorRegistry(), [refused(429, "TooManyRequests", retry_after="1"), json_response(pod("x"))]

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return answers.pop(0)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), observer=RequestMetrics(registry)) as client:
        await client.get(POD, "lab", "x")
    host = server.url.removeprefix("http://")

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"host": host, **labels})

    assert value("rest_client_requests_total", code="429", method="GET") == 1
    assert value("rest_client_requests_total", code="200", method="GET") == 1
    assert value("rest_client_request_retries_total", code="429", verb="GET") == 1
    assert value("rest_client_request_duration_seconds_count", verb="GET") == 2


async def test_a_request_without_an_answer_is_counted_as_an_error(tmp_path: Path) -> None:
    registry = CollectorRegistry()

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        return close_connection(request)

    async with serving(handler) as server, client_of(kubeconfig(tmp_path, server.url), observer=RequestMetrics(registry)) as client:
        with pytest.raises(Unreachable):
            await client.create(POD, "lab", pod("x"))

    labels = {"code": "<error>", "method": "POST", "host": server.url.removeprefix("http://")}
    assert registry.get_sample_value("rest_client_requests_total", labels) == 1
