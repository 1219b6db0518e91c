"""ReviewMetrics: requests to webhooks, and the decisions on them."""

from prometheus_client import CollectorRegistry

from providers.metrics import families
from providers.metrics.instruments import counter, gauge, histogram


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
