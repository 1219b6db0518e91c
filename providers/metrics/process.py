"""ProcessMetrics: version, heartbeat and lost log lines of this process."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from engine.runtime.logs import lost_lines
from engine.version import VERSION
from providers.metrics import families
from providers.metrics.instruments import samples


class ProcessMetrics:
    """A collector of what is asked when the metrics are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.heartbeat_age: Callable[[], float] | None = None
        """Returns the seconds since the last heartbeat of the main loop; None: it has no heartbeat."""
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The values of now."""
        yield samples(families.BUILD, [((VERSION,), 1)])
        yield samples(families.LOST_LINES, [((), lost_lines())])
        yield samples(families.HEARTBEAT, [((), self.heartbeat_age())] if self.heartbeat_age is not None else [])
