"""CacheMetrics: how fresh the caches of watched kinds are, and how often they were listed and watched."""

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from engine.errors import ClusterError
from engine.ids import Kind
from engine.runtime.clock import Clock
from providers.cache_state import CacheState
from providers.metrics import families
from providers.metrics.families import counter, samples


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
