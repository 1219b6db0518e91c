"""ProcessMetrics: version, checks, heartbeat, memory limit, lost log lines; CertificateMetrics: when the certificates expire."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from engine.runtime.logs import lost_lines
from engine.version import VERSION
from providers.metrics import families
from providers.metrics.families import samples

MEMORY_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container finds its memory limit: cgroup v2, cgroup v1."""
NO_LIMIT: Final = 1 << 60
"""cgroup v1 writes a number near 2^63 where there is no limit."""


class ProcessMetrics:
    """A collector of what is asked when the metrics are read."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.heartbeat_age: Callable[[], float] | None = None
        """Returns the seconds since the last heartbeat of the main loop; None: it has no heartbeat."""
        self.checks: Callable[[], Mapping[str, bool]] = dict
        """Returns the name of each check of `/readyz` -> whether it is good."""
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The values of now."""
        yield samples(families.BUILD, [((VERSION,), 1)])
        yield samples(families.CHECK, [((name,), is_good) for name, is_good in self.checks().items()])
        yield samples(families.MEMORY_LIMIT, [((), limit)] if (limit := memory_limit()) else [])
        yield samples(families.LOST_LINES, [((), lost_lines())])
        yield samples(families.HEARTBEAT, [((), self.heartbeat_age())] if self.heartbeat_age is not None else [])


def memory_limit() -> int:
    """The memory limit of this container in bytes; 0 if there is none."""
    for path in MEMORY_LIMITS:
        try:
            text = path.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < NO_LIMIT:
            return int(text)
    return 0


class CertificateMetrics:
    """A collector of times of expiry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.expiry: Callable[[], Mapping[str, datetime | None]] = dict
        """Returns `serving` and `ca` -> when that certificate expires; None if there is none, or if it is not known."""
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The times that are known."""
        yield samples(families.CERTIFICATE_EXPIRY, [((name,), at.timestamp()) for name, at in self.expiry().items() if at is not None])
