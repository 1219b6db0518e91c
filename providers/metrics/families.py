"""Families: every metric of ours with its type, labels and meaning (docs/operations.md has the same table), and its instrument."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

Type = Literal["counter", "gauge", "histogram"]

SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Buckets of durations that may be long, in seconds."""
REQUEST_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""The buckets of client-go."""
REVIEW_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Buckets of the time for a review: an API server waits for ten seconds at most."""
CONTROLLER: Final = "engine"
"""The value of the label `controller`: one loop plans all kinds, so a reconcile is a pass."""


class Family(NamedTuple):
    """One metric. The values of its labels are few: never the name of an object or a namespace."""

    name: str
    type: Type
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


PASSES = Family(
    "controller_runtime_reconcile_total",
    "counter",
    ("controller", "result"),
    "Passes: `success` leaves nothing to do, `requeue_after` leaves something to a later pass, `error` failed or had a failed operation.",
)
PASS_ERRORS = Family("controller_runtime_reconcile_errors_total", "counter", ("controller",), "Passes with the result `error`.")
PASS_SECONDS = Family(
    "controller_runtime_reconcile_time_seconds",
    "histogram",
    ("controller",),
    "Duration of a pass.",
    SECONDS,
)
PHASE_SECONDS = Family(
    "engine_pass_phase_seconds", "histogram", ("phase",), "Duration of the phases of a pass: `observe`, `plan`, `execute`.", SECONDS
)
LAST_PASS = Family(
    "engine_last_pass_timestamp_seconds",
    "gauge",
    ("result",),
    "When the last pass ended with that result, in seconds since 1970; 0: none has.",
)
OPERATIONS = Family(
    "engine_operations_total",
    "counter",
    ("verb", "outcome"),
    "Operations that were executed: `done`, `conflict`, `failed`, or `skipped` because of another one.",
)
OPERATION_ERRORS = Family(
    "engine_operation_errors_total", "counter", ("verb", "error"), "Operations that failed, by the type of the error, e.g. `Forbidden`."
)
EVENTS = Family(
    "engine_events_total",
    "counter",
    ("result",),
    "Kubernetes Events: `written`, `failed` (could not be written), `withheld` (too many about their object).",
)
LEADER = Family("leader_election_master_status", "gauge", ("name",), "Whether this process holds the Lease of that name: 1 or 0.")

ROOTS = Family(
    "engine_roots",
    "gauge",
    ("kind", "state"),
    "Roots, by the state that `engine status` shows, or `unplanned` as long as that is not known.",
)
PLANNED = Family("engine_planned_operations", "gauge", ("verb",), "Operations in the plans of the last pass.")
WAITS = Family(
    "engine_waits",
    "gauge",
    ("state", "reason", "kind"),
    "Objects that are not settled: `later`, `blocked` (a user must act), `pending` (the cluster must act); why; and of which kind.",
)
OBJECTIONS = Family("engine_objections", "gauge", ("rule",), "Plans that a guard refuses, e.g. `delete-budget`.")
ALARMS = Family("engine_alarms", "gauge", ("reason",), "Alarms, by the reason of their Event.")
GANGS = Family(
    "engine_gangs",
    "gauge",
    ("phase",),
    "Gangs. `Pending`: the minimum is not scheduled; `Starting`: not ready; `Running`, `Succeeded`, `Failed`, `Terminating`, `Unknown`.",
)
GANGS_WANTED = Family("engine_gangs_wanted", "gauge", (), "Gangs that should exist.")
GANGS_BELOW_MINIMUM = Family("engine_gangs_below_minimum", "gauge", (), "Gangs of which a clique has lost its minimum of ready pods.")
PODS = Family(
    "engine_pods", "gauge", ("state",), "Pods of gangs: `pending`, `scheduled` (not ready), `ready`, `completed`, `failed`, `terminating`."
)
DOMAINS = Family("engine_domains", "gauge", ("state",), "Fabric domains, by the state that `engine status` shows.")
DOMAINS_DEGRADED = Family(
    "engine_domains_degraded", "gauge", ("reason",), "Fabric domains with a `split` between their nodes, or with pods that are `cut off`."
)
DOMAIN_NODES = Family(
    "engine_domain_nodes", "gauge", ("state",), "Nodes of fabric domains: `expected` for their pods, `joined`, and joined and `ready`."
)

CACHE_AGE = Family(
    "engine_cache_age_seconds",
    "gauge",
    ("kind",),
    "Seconds since the API server has confirmed the cache of that kind. An idle watch is confirmed once a minute.",
)
CACHE_OBJECTS = Family("engine_cache_objects", "gauge", ("kind",), "Objects in the cache of that kind.")
CACHE_FAILING = Family("engine_cache_failing", "gauge", ("kind",), "Whether the last list or watch of that kind has failed: 1 or 0.")
LISTS = Family("engine_cache_lists_total", "counter", ("kind",), "Complete lists of that kind: at the start and after 410 Gone.")
WATCHES = Family("engine_cache_watches_total", "counter", ("kind",), "Watches of that kind that the API server has accepted.")
WATCH_ERRORS = Family("engine_cache_errors_total", "counter", ("kind", "error"), "Failed lists and watches, by the type of the error.")

REQUESTS = Family(
    "rest_client_requests_total",
    "counter",
    ("code", "method", "host"),
    "Requests to the API server, each attempt by itself; `<error>`: no answer.",
)
REQUEST_SECONDS_FAMILY = Family(
    "rest_client_request_duration_seconds",
    "histogram",
    ("verb", "host"),
    "Time until the answer of the API server; of a watch, until it begins.",
    REQUEST_SECONDS,
)
REQUEST_RETRIES = Family(
    "rest_client_request_retries_total", "counter", ("code", "verb", "host"), "Requests that were sent again, by the answer before."
)

REVIEWS = Family(
    "controller_runtime_webhook_requests_total", "counter", ("webhook", "code"), "Requests of the API server, by path and HTTP status."
)
REVIEW_LATENCY = Family(
    "controller_runtime_webhook_latency_seconds", "histogram", ("webhook",), "Time from the complete request to its answer.", REVIEW_SECONDS
)
REVIEWS_IN_FLIGHT = Family("controller_runtime_webhook_requests_in_flight", "gauge", ("webhook",), "Requests that are being answered.")
DECISIONS = Family("engine_admission_decisions_total", "counter", ("webhook", "decision"), "Reviews, by decision: `allowed` or `denied`.")

CERTIFICATE_EXPIRY = Family(
    "engine_certificate_expiry_timestamp_seconds",
    "gauge",
    ("certificate",),
    "When the certificate of the webhooks expires, in seconds since 1970: `serving` and `ca`.",
)

CHECK = Family("engine_check_healthy", "gauge", ("check",), "Whether a check of `/readyz` is good: 1 or 0.")
HEARTBEAT = Family("engine_heartbeat_age_seconds", "gauge", (), "Seconds since the main loop last had time for its heartbeat.")
LOST_LINES = Family("engine_log_lines_lost_total", "counter", (), "Log lines that could not be written.")
MEMORY_LIMIT = Family("engine_memory_limit_bytes", "gauge", (), "The memory limit of the container; not there without one.")
BUILD = Family("engine_build_info", "gauge", ("version",), "1, with the version of the engine.")

FAMILIES: Final[tuple[Family, ...]] = tuple(value for value in tuple(globals().values()) if isinstance(value, Family))
"""All of them, in this order."""

BY_FIGURE: Final[Mapping[str, Family]] = MappingProxyType(
    {
        "roots": ROOTS,
        "planned": PLANNED,
        "waits": WAITS,
        "objections": OBJECTIONS,
        "alarms": ALARMS,
        "gangs": GANGS,
        "gangs_wanted": GANGS_WANTED,
        "gangs_below_minimum": GANGS_BELOW_MINIMUM,
        "pods": PODS,
        "domains": DOMAINS,
        "domains_degraded": DOMAINS_DEGRADED,
        "domain_nodes": DOMAIN_NODES,
    }
)
"""Key of a figure (`resources.reports.figures`) -> its metric; the labels are its dimensions."""


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
