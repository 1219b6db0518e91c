"""RequestMetrics: requests to the API server."""

from prometheus_client import CollectorRegistry

from providers.kubernetes.request_observer import RequestAttempt
from providers.metrics import families
from providers.metrics.instruments import counter, histogram


class RequestMetrics:
    """A `RequestObserver` that counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = counter(families.REQUESTS, registry)
        self._seconds = histogram(families.REQUEST_SECONDS_FAMILY, registry)
        self._retries = counter(families.REQUEST_RETRIES, registry)

    def sent(self, method: str, path: str) -> None:
        """Do nothing: attempts are counted when they end."""

    def abandoned(self, method: str, path: str) -> None:
        """Do nothing: it had no answer."""

    def answered(self, attempt: RequestAttempt) -> None:
        """Count one attempt."""
        self._requests.labels(_code(attempt), attempt.method, attempt.host).inc()
        self._seconds.labels(attempt.method, attempt.host).observe(attempt.seconds)

    def repeated(self, attempt: RequestAttempt) -> None:
        """Count that a request is sent again after this attempt."""
        self._retries.labels(_code(attempt), attempt.method, attempt.host).inc()


def _code(attempt: RequestAttempt) -> str:
    return str(attempt.code) if attempt.code else "<error>"
