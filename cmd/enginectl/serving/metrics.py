"""Metrics: `/metrics`, and routes whose requests are measured."""

from collections.abc import Callable

import anyio
import anyio.to_thread

from engine.runtime.clock import Clock
from providers.metrics.metrics import EngineMetrics, compressed
from providers.serving.message import Handler, HttpResponse, IncomingRequest, Routes
from providers.serving.review_observer import ReviewObserver

SERVER_ERROR = 500


def metrics_routes(metrics: EngineMetrics) -> Routes:
    """The route of the metrics. They are computed in a worker thread, for one request at a time."""
    limit = anyio.CapacityLimiter(1)

    async def answer(request: IncomingRequest) -> HttpResponse:
        accept, gzip = request.headers.get("accept", ""), accepts_gzip(request.headers.get("accept-encoding", ""))

        def make() -> tuple[bytes, str]:
            text, content_type = metrics.text(accept)
            return (compressed(text) if gzip else text), content_type

        body, content_type = await anyio.to_thread.run_sync(make, limiter=limit)
        headers = {"Vary": "Accept, Accept-Encoding", **({"Content-Encoding": "gzip"} if gzip else {})}
        return HttpResponse(body=body, content_type=content_type, headers=headers)

    return {("GET", "/metrics"): answer}


def accepts_gzip(header: str) -> bool:
    """Whether the `Accept-Encoding` header of a request names gzip, and not with the weight 0."""
    for entry in header.lower().split(","):
        coding, _, weight = entry.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def measured(routes: Routes, observer: ReviewObserver, clock: Clock) -> Routes:
    """The same routes, with an observer that is told of every request and its answer. Each is named by its path."""
    return {(method, path): _measured(path, handler, observer, clock.monotonic) for (method, path), handler in routes.items()}


def _measured(path: str, handler: Handler, observer: ReviewObserver, monotonic: Callable[[], float]) -> Handler:
    async def answer(request: IncomingRequest) -> HttpResponse:
        began, code = monotonic(), SERVER_ERROR
        observer.began(path)
        try:
            response = await handler(request)
            code = response.status
            return response
        finally:
            observer.ended(path, code, monotonic() - began)

    return answer
