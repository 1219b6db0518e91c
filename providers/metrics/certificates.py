"""CertificateMetrics: when the certificates of the webhooks expire."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from providers.metrics import families
from providers.metrics.instruments import samples


class CertificateMetrics:
    """A collector of times of expiry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.expiry: Callable[[], Mapping[str, datetime | None]] = dict
        """Returns `serving` and `ca` -> when that certificate expires; None if there is none, or if it is not known."""
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The times that are known."""
        yield samples(families.CERTIFICATE_EXPIRY, [((name,), at.timestamp()) for name, at in self.expiry().items() if at is not None])
