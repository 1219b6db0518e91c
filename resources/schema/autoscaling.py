"""Autoscaling: the limits and the metrics of an autoscaler; metrics are those of autoscaling/v2."""

from pydantic import Field

from resources.schema.wire import ATOMIC, Int32, Opaque, Quantity, Seq, Wire


class MetricTarget(Wire):
    """The target value of a metric."""

    type: str
    """The type of the target: Utilization, Value or AverageValue."""
    average_utilization: Int32 | None = None
    """The average over all pods, in percent of their requests."""
    average_value: Quantity | None = None
    """The average over all pods, as a quantity."""
    value: Quantity | None = None
    """The value of the metric, as a quantity."""


class MetricIdentifier(Wire):
    """The metric."""

    name: str
    """The name."""
    selector: Opaque | None = None
    """A label selector for the metric."""


class ObjectReference(Wire):
    """The object that a metric describes."""

    api_version: str | None = None
    """The group and version."""
    kind: str
    """The kind."""
    name: str
    """The name."""


class ResourceMetric(Wire):
    """CPU or memory of the pods, relative to their requests."""

    name: str
    """The resource: cpu or memory."""
    target: MetricTarget
    """The target value."""


class ContainerResourceMetric(Wire):
    """CPU or memory of one container in every pod."""

    name: str
    """The resource: cpu or memory."""
    container: str
    """The container's name."""
    target: MetricTarget
    """The target value."""


class PodsMetric(Wire):
    """A metric of each pod, averaged."""

    metric: MetricIdentifier
    """The metric."""
    target: MetricTarget
    """The target value."""


class ObjectMetric(Wire):
    """A metric of another object."""

    described_object: ObjectReference
    """The object."""
    metric: MetricIdentifier
    """The metric."""
    target: MetricTarget
    """The target value."""


class ExternalMetric(Wire):
    """A metric from outside the cluster."""

    metric: MetricIdentifier
    """The metric."""
    target: MetricTarget
    """The target value."""


class Metric(Wire):
    """One metric to scale by. The field named after the type has the details."""

    type: str
    """The type of the metric: Resource, ContainerResource, Pods, Object or External."""
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
    """The limits and the metrics of an autoscaler."""

    min_replicas: Int32 | None = None
    """The minimum of replicas; by default the value of replicas."""
    max_replicas: Int32
    """The maximum of replicas."""
    metrics: Seq[Metric] = Field(default=(), json_schema_extra=ATOMIC)
    """The metrics to scale by; by default the autoscaler's own (CPU)."""
