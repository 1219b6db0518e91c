"""Observability: what `engine run` counts and checks, and the routes that show it."""

from engine.runtime.clock import Clock
from engine.runtime.observers import LoopObserver, Observers
from enginectl.serving import checks
from enginectl.serving.checks import HealthCheck, LeadershipCheck
from enginectl.serving.heartbeat import Heartbeat
from enginectl.serving.metrics import metrics_routes
from enginectl.serving.probes import probe_routes
from providers.cache_state import CachingProvider
from providers.metrics.metrics import EngineMetrics
from providers.serving.message import Routes
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
