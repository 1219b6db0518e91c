"""Requests: those that are sent to the API server, and those to webhooks with the decisions on them."""

from prometheus_client import CollectorRegistry

from providers.kubernetes.request_observer import RequestAttempt
from providers.metrics import families
from providers.metrics.families import counter, gauge, histogram


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
