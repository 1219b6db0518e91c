"""Metrics endpoint: Prometheus reads it in either format, compressed or not; webhooks are measured."""

import gzip

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from enginectl.serving.observability import accepts_gzip, measured, metrics_routes
from grove_sandbox.clock import VirtualClock
from providers.http.message import HttpResponse, IncomingRequest
from providers.metrics.metrics import EngineMetrics

pytestmark = pytest.mark.anyio

PROMETHEUS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"
HOOK = "/webhooks/validate-podcliqueset"


async def get(**headers: str) -> HttpResponse:
    """The answer of `/metrics`; underscores in header names are dashes."""
    request = IncomingRequest("GET", "/metrics", headers={name.replace("_", "-"): value for name, value in headers.items()})
    return await metrics_routes(EngineMetrics(VirtualClock(), "engine"))["GET", "/metrics"](request)


async def test_the_text_format_is_the_default() -> None:
    response = await get()

    assert response.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert "engine_build_info" in {family.name for family in parse_text(response.body.decode())}


async def test_openmetrics_is_answered_to_whoever_asks_for_it() -> None:
    response = await get(accept=PROMETHEUS)

    assert response.content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert "engine_build_info" in {family.name for family in parse_openmetrics(response.body.decode())}  # type: ignore[no-untyped-call]


async def test_the_answer_is_compressed_for_whoever_can_read_that() -> None:
    plain, packed = await get(), await get(accept_encoding="deflate, gzip;q=1.0")

    assert packed.headers["Content-Encoding"] == "gzip"
    assert b"engine_build_info" in gzip.decompress(packed.body)
    assert len(packed.body) < len(plain.body) / 3
    assert "Content-Encoding" not in plain.headers


ENCODINGS = [("gzip", True), ("br, GZIP ;q=0.5", True), ("gzip;q=0", False), ("identity", False), ("", False)]


@pytest.mark.parametrize(("header", "accepted"), ENCODINGS)
def test_which_encodings_are_accepted(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


async def test_requests_to_webhooks_are_counted_by_path_and_answer() -> None:
    clock, metrics = VirtualClock(), EngineMetrics(VirtualClock())

    async def slow(request: IncomingRequest) -> HttpResponse:
        await clock.advance(0.03)
        assert metrics.registry.get_sample_value("controller_runtime_webhook_requests_in_flight", {"webhook": HOOK}) == 1
        return HttpResponse()

    async def broken(request: IncomingRequest) -> HttpResponse:
        raise KeyError("a defect")

    for handler in (slow, broken):
        routes = measured({("POST", HOOK): handler}, metrics.reviews, clock)
        try:
            await routes["POST", HOOK](IncomingRequest("POST", HOOK))
        except KeyError:
            pass
    metrics.reviews.decided(HOOK, allowed=False)

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, {"webhook": HOOK, **labels})

    assert value("controller_runtime_webhook_requests_total", code="200") == 1
    assert value("controller_runtime_webhook_requests_total", code="500") == 1
    assert value("controller_runtime_webhook_requests_in_flight") == 0
    assert value("controller_runtime_webhook_latency_seconds_bucket", le="0.02") == 1
    assert value("controller_runtime_webhook_latency_seconds_sum") == pytest.approx(0.03)
    assert value("engine_admission_decisions_total", decision="denied") == 1
