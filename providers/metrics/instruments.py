"""Instruments: counters, gauges and histograms of a registry, made from their families."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from providers.metrics.families import Family

# The time at which each series began doubles what is transferred, and nothing of ours reads it.
disable_created_metrics()  # type: ignore[no-untyped-call]


def counter(family: Family, registry: CollectorRegistry) -> Counter:
    """A counter without a value."""
    return Counter(family.name, family.help, family.labels, registry=registry)


def gauge(family: Family, registry: CollectorRegistry) -> Gauge:
    """A gauge without a value."""
    return Gauge(family.name, family.help, family.labels, registry=registry)


def histogram(family: Family, registry: CollectorRegistry) -> Histogram:
    """A histogram without observations."""
    return Histogram(family.name, family.help, family.labels, registry=registry, buckets=family.buckets)


def samples(family: Family, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
    """The metric of a family with these label values and values. For collectors that compute them when they are asked."""
    make = CounterMetricFamily if family.type == "counter" else GaugeMetricFamily
    metric = make(family.name, family.help, labels=family.labels)
    for labels, value in values:
        metric.add_metric(labels, value)
    return metric
