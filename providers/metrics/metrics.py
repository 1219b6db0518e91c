"""EngineMetrics: everything that one process counts, and its text for Prometheus."""

import gzip

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from engine.runtime.clock import Clock
from engine.runtime.observers import LoopObserver, Observers
from providers.metrics.caches import CacheMetrics
from providers.metrics.fleet import FleetMetrics
from providers.metrics.loop import LoopMetrics
from providers.metrics.process import CertificateMetrics, ProcessMetrics
from providers.metrics.requests import RequestMetrics, ReviewMetrics
from resources.ports.configuration import Configuration

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
