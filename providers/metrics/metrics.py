"""EngineMetrics: everything that one process counts, and its text for Prometheus."""

import gzip
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics

from engine.errors import ClusterError
from engine.ids import Kind
from engine.runtime.clock import Clock
from engine.runtime.observers import LoopObserver, Observers
from providers.cache_state import CacheState
from providers.kubernetes.request_observer import RequestAttempt, RequestObserver
from providers.metrics import families
from providers.metrics.families import counter, gauge, histogram, samples
from providers.metrics.fleet import FleetMetrics
from providers.metrics.loop import LoopMetrics
from providers.metrics.process import CertificateMetrics, ProcessMetrics
from resources.ports.configuration import Configuration


class RequestMetrics(RequestObserver):
    """A `RequestObserver` that counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = counter(families.REQUESTS, registry)
        self._seconds = histogram(families.REQUEST_SECONDS_FAMILY, registry)
        self._retries = counter(families.REQUEST_RETRIES, registry)

    def answered(self, attempt: RequestAttempt) -> None:
        """Count one attempt."""
        self._requests.labels(_code(attempt), attempt.method, attempt.host).inc()
        self._seconds.labels(attempt.method, attempt.host).observe(attempt.seconds)

    def repeated(self, attempt: RequestAttempt) -> None:
        """Count that a request is sent again after this attempt."""
        self._retries.labels(_code(attempt), attempt.method, attempt.host).inc()


def _code(attempt: RequestAttempt) -> str:
    return str(attempt.code) if attempt.code else "<error>"


class ReviewMetrics:
    """A `ReviewObserver` that counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = counter(families.REVIEWS, registry)
        self._latency = histogram(families.REVIEW_LATENCY, registry)
        self._in_flight = gauge(families.REVIEWS_IN_FLIGHT, registry)
        self._decisions = counter(families.DECISIONS, registry)

    def began(self, webhook: str) -> None:
        """Count one more request in flight."""
        self._in_flight.labels(webhook).inc()

    def ended(self, webhook: str, code: int, seconds: float) -> None:
        """Count the request by its answer."""
        self._in_flight.labels(webhook).dec()
        self._requests.labels(webhook, str(code)).inc()
        self._latency.labels(webhook).observe(seconds)

    def decided(self, webhook: str, *, allowed: bool) -> None:
        """Count the decision."""
        self._decisions.labels(webhook, "allowed" if allowed else "denied").inc()


class CacheMetrics:
    """An `InformerObserver` that counts, and a collector of the freshness of caches. `clock` is the one that the caches use."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self._clock = clock
        self._lists = counter(families.LISTS, registry)
        self._watches = counter(families.WATCHES, registry)
        self._errors = counter(families.WATCH_ERRORS, registry)
        self.read: Callable[[], Sequence[CacheState]] = lambda: ()
        """Returns the caches; set once there are any."""
        registry.register(self)

    def listed(self, kind: Kind) -> None:
        """A complete list has been answered."""
        self._lists.labels(kind.key).inc()

    def watched(self, kind: Kind) -> None:
        """A watch has been accepted."""
        self._watches.labels(kind.key).inc()

    def failed(self, kind: Kind, error: ClusterError) -> None:
        """A list or a watch has failed."""
        self._errors.labels(kind.key, type(error).__name__).inc()

    def collect(self) -> Iterator[Metric]:
        """Age, size and state of each kind; of a kind in several namespaces the highest age and the sum."""
        now = self._clock.monotonic()
        ages: dict[tuple[str, ...], float] = {}
        objects: dict[tuple[str, ...], float] = {}
        failing: dict[tuple[str, ...], float] = {}
        for cache in self.read():
            kind = (cache.kind.key,)
            ages[kind] = max(ages.get(kind, 0.0), now - cache.confirmed_at)
            objects[kind] = objects.get(kind, 0) + cache.objects
            failing[kind] = max(failing.get(kind, 0), cache.error is not None)
        yield samples(families.CACHE_AGE, ages.items())
        yield samples(families.CACHE_OBJECTS, objects.items())
        yield samples(families.CACHE_FAILING, failing.items())


OPENMETRICS = "application/openmetrics-text"


class EngineMetrics:
    """The metrics of one process in a registry of their own. `lease`: the name of its Lease; empty: leader election is disabled."""

    def __init__(self, clock: Clock, lease: str = "") -> None:
        self.registry = CollectorRegistry()
        self.passes = LoopMetrics(self.registry, clock, lease)
        self.fleet = FleetMetrics()
        self.registry.register(self.fleet)
        self.caches = CacheMetrics(self.registry, clock)
        self.requests = RequestMetrics(self.registry)
        self.reviews = ReviewMetrics(self.registry)
        self.certificates = CertificateMetrics(self.registry)
        self.process = ProcessMetrics(self.registry)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    @property
    def observer(self) -> LoopObserver[Configuration]:
        """What the loop tells its passes to."""
        return Observers(self.passes, self.fleet)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics, and their content type: OpenMetrics if the `Accept` header names it, otherwise Prometheus' text format.

        Takes milliseconds, and longer when much has changed: call it in a worker thread.
        """
        if OPENMETRICS in accept:
            return openmetrics.generate_latest(self.registry), openmetrics.CONTENT_TYPE_LATEST  # type: ignore[no-untyped-call]
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4


def compressed(content: bytes) -> bytes:
    """The content as gzip, fast rather than small."""
    return gzip.compress(content, compresslevel=1)
