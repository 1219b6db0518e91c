"""Observability: what `engine run` counts and checks, and the routes that show it."""

from collections.abc import Callable, Iterator, Sequence

import anyio
import anyio.to_thread

from engine.runtime.clock import Clock
from engine.runtime.observers import LoopObserver, Observers
from enginectl.serving import checks
from enginectl.serving.admission import ReviewObserver
from enginectl.serving.checks import Health, HealthCheck, Heartbeat, LeadershipCheck
from providers.cache_state import CachingProvider
from providers.http.message import Handler, HttpResponse, IncomingRequest, Routes
from providers.metrics.metrics import EngineMetrics, compressed
from resources.ports.configuration import Configuration


class Observability:
    """The metrics and checks of one process. `lease`: the name of its Lease; empty: leader election is disabled."""

    def __init__(self, clock: Clock, lease: str = "") -> None:
        self.metrics = EngineMetrics(clock, lease)
        self.heartbeat = Heartbeat(clock)
        """To be run in the main loop."""
        self.leadership = LeadershipCheck()
        self._clock = clock
        self._provider: CachingProvider | None = None
        self.metrics.process.heartbeat_age = self.heartbeat.age

    @property
    def observer(self) -> LoopObserver[Configuration]:
        """What the loop tells its passes to."""
        return Observers(self.metrics.observer, self.leadership)

    def watch(self, provider: CachingProvider) -> None:
        """Report the caches of this provider from now on."""
        self._provider = provider
        self.metrics.caches.read = provider.caches

    def metrics_routes(self) -> Routes:
        """`/metrics`."""
        return metrics_routes(self.metrics)

    def probe_routes(self, *readiness: HealthCheck) -> Routes:
        """`/healthz`, `/livez` and `/readyz`. `readiness`: what has to be good besides caches, e.g. the certificates of webhooks."""
        alive = (checks.ping(), checks.main_loop(self.heartbeat))
        caches = checks.caches(lambda: self._provider.caches() if self._provider is not None else (), self._clock)
        ready = (*alive, *readiness, caches, self.leadership.check())
        self.metrics.process.checks = lambda: {check.name: check.judge().is_good for check in ready}
        return probe_routes(alive, ready)


FAILED = 500
"""The status of a failed probe, as kube-apiserver answers it."""
NO_STORE = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}


def probe_routes(liveness: Sequence[HealthCheck], readiness: Sequence[HealthCheck]) -> Routes:
    """The probes, and each check by itself beneath them: `/readyz/caches`.

    `/healthz` and `/livez` are the same: whether the process works, so that a kubelet should leave it alone. `/readyz`: whether it should
    get requests. `?verbose` lists the checks, `?exclude=caches` leaves some out, separated by commas.
    """
    routes: dict[tuple[str, str], Handler] = {}
    for name, asked in (("healthz", liveness), ("livez", liveness), ("readyz", readiness)):
        routes["GET", f"/{name}"] = probe(name, asked)
        routes.update({("GET", f"/{name}/{check.name}"): probe(name, [check]) for check in asked})
    return routes


def probe(name: str, checks: Sequence[HealthCheck]) -> Handler:
    """Answers 200 if all checks are good, otherwise 500 and the list of all checks."""

    async def answer(request: IncomingRequest) -> HttpResponse:
        excluded = set(filter(None, request.query.get("exclude", "").split(",")))
        health = {check.name: check.judge() for check in checks if check.name not in excluded}
        is_good = all(each.is_good for each in health.values())
        if is_good and "verbose" not in request.query:
            return HttpResponse(body=b"ok", headers=NO_STORE)
        ignored = [check.name for check in checks if check.name in excluded]
        lines = (*_lines(health, ignored), f"{name} check {'passed' if is_good else 'failed'}", "")
        return HttpResponse(200 if is_good else FAILED, "\n".join(lines).encode(), headers=NO_STORE)

    return answer


def _lines(health: dict[str, Health], excluded: Sequence[str]) -> Iterator[str]:
    """A line for each check, as `kubectl get --raw '/readyz?verbose'` shows them."""
    for name, each in health.items():
        state = "[+]" if each.is_good else "[-]"
        word = "ok" if each.is_good else "failed"
        yield f"{state}{name} {word}{f': {each.message}' if each.message else ''}"
    yield from (f"[+]{name} excluded: ok" for name in excluded)


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
