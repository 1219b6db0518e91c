"""Autoscaling: between which numbers something may be scaled, and by what measure; metrics are those of autoscaling/v2."""

from pydantic import Field

from resources.schema.wire import ATOMIC, Int32, Opaque, Quantity, Seq, Wire


class MetricTarget(Wire):
    """The value that the autoscaler steers towards."""

    type: str
    """How to read it: Utilization, Value or AverageValue."""
    average_utilization: Int32 | None = None
    """Average over all pods, in percent of what they request."""
    average_value: Quantity | None = None
    """Average over all pods, as an amount."""
    value: Quantity | None = None
    """The amount as a whole."""


class MetricIdentifier(Wire):
    """Which metric."""

    name: str
    """Its name."""
    selector: Opaque | None = None
    """A label selector that narrows it down."""


class ObjectReference(Wire):
    """The object that a metric describes."""

    api_version: str | None = None
    """Its group and version."""
    kind: str
    """Its kind."""
    name: str
    """Its name."""


class ResourceMetric(Wire):
    """CPU or memory of the pods, as their requests count it."""

    name: str
    """The resource: cpu or memory."""
    target: MetricTarget
    """What to steer towards."""


class ContainerResourceMetric(Wire):
    """CPU or memory of one container in every pod."""

    name: str
    """The resource: cpu or memory."""
    container: str
    """The container's name."""
    target: MetricTarget
    """What to steer towards."""


class PodsMetric(Wire):
    """A metric of every pod, averaged."""

    metric: MetricIdentifier
    """Which metric."""
    target: MetricTarget
    """What to steer towards."""


class ObjectMetric(Wire):
    """A metric of one other object."""

    described_object: ObjectReference
    """The object."""
    metric: MetricIdentifier
    """Which metric."""
    target: MetricTarget
    """What to steer towards."""


class ExternalMetric(Wire):
    """A metric from outside the cluster."""

    metric: MetricIdentifier
    """Which metric."""
    target: MetricTarget
    """What to steer towards."""


class Metric(Wire):
    """One measure to scale by. The field named like the type says the rest."""

    type: str
    """Which measure: Resource, ContainerResource, Pods, Object or External."""
    resource: ResourceMetric | None = None
    """CPU or memory of whole pods."""
    container_resource: ContainerResourceMetric | None = None
    """CPU or memory of one container."""
    pods: PodsMetric | None = None
    """A metric of the pods."""
    object: ObjectMetric | None = None
    """A metric of another object."""
    external: ExternalMetric | None = None
    """A metric from outside the cluster."""


class AutoScaling(Wire):
    """Between which numbers an autoscaler may move the replicas."""

    min_replicas: Int32 | None = None
    """The fewest replicas; by default as many as were asked for."""
    max_replicas: Int32
    """The most replicas."""
    metrics: Seq[Metric] = Field(default=(), json_schema_extra=ATOMIC)
    """What to scale by; without any, the autoscaler's own default (CPU)."""
