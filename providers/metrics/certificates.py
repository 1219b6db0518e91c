"""CertificateMetrics: how often the certificate of the webhooks was read, and when it expires."""

from collections.abc import Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry

from providers.metrics import families
from providers.metrics.instruments import counter, gauge


class CertificateMetrics:
    """Told by whoever keeps the certificate."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reads = counter(families.CERTIFICATE_READS, registry)
        self._errors = counter(families.CERTIFICATE_ERRORS, registry)
        self._expiry = gauge(families.CERTIFICATE_EXPIRY, registry)

    def read(self, expires: Mapping[str, datetime]) -> None:
        """A certificate has been read and is used. `expires`: `serving` and, if it is known, `ca` -> when it expires."""
        self._reads.inc()
        for certificate, at in expires.items():
            self._expiry.labels(certificate).set(at.timestamp())

    def failed(self) -> None:
        """A certificate could not be read, or not be used."""
        self._reads.inc()
        self._errors.inc()
