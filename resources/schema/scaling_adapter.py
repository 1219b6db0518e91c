"""Scaling adapters: DynamoGraphDeploymentScalingAdapter, the number of replicas of one service of a graph, with a subresource `scale`."""

from typing import Annotated

from pydantic import Field

from resources.schema.meta import ApiObject
from resources.schema.wire import Int32, Timestamp, Wire


class GraphServiceReference(Wire):
    """A service of a graph of the same namespace."""

    name: str
    """The name of the graph."""
    service_name: str
    """The name of the service."""


class ScalingAdapterSpec(Wire):
    """The service, and how many replicas it is to have."""

    replicas: Annotated[Int32, Field(ge=0, json_schema_extra={"minimum": 0})]
    """The number of replicas of the service."""
    dgd_ref: GraphServiceReference
    """The service."""


class ScalingAdapterStatus(Wire):
    """The observed state."""

    replicas: Int32 | None = None
    """The number of replicas that exist."""
    selector: str | None = None
    """A label selector for one pod of each replica: of several nodes the leader."""
    last_scale_time: Timestamp | None = None
    """When the number of replicas that exist last changed."""


class DynamoGraphDeploymentScalingAdapter(ApiObject):
    """DynamoGraphDeploymentScalingAdapter has the number of replicas of one service of a graph, for autoscalers and people."""

    spec: ScalingAdapterSpec
    """The service, and how many replicas it is to have."""
    status: ScalingAdapterStatus | None = None
    """The observed state."""
