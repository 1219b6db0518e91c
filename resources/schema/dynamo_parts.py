"""Dynamo parts: what both versions of DynamoGraphDeployment have alike: topology, restarts, roles, and overrides for Grove."""

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from engine.resource import Body
from resources.schema.pod_spec_form import TemplateSpec
from resources.schema.wire import PUBLISHED, Int32, Opaque, Seq, Wire

ComponentKind = Literal["PodClique", "PodCliqueScalingGroup", "Deployment", "LeaderWorkerSet"]


def as_map(value: Any) -> Any:
    """The value itself. `pod_spec_rules` validates its fields."""
    if not isinstance(value, dict):
        raise PydanticCustomError("dict_type", "must be an object")
    return value


EnvVar = Annotated[dict[str, Any], PlainValidator(as_map), WithJsonSchema({PUBLISHED: "EnvVar"})]
"""A core/v1 EnvVar."""


class ModelReference(Wire):
    """The model that a service serves."""

    name: str
    """The name of the model."""
    revision: str | None = None
    """The revision of the model."""


class GraphTopology(Wire):
    """The topology of a graph, and the domain that all its pods share."""

    cluster_topology_name: Annotated[str, Field(min_length=1)]
    """The name of the ClusterTopologyBinding."""
    pack_domain: str | None = None
    """The domain within which all pods of the graph are placed; without it, only components have domains."""


class ComponentTopology(Wire):
    """The domain within which the pods of one replica are placed."""

    pack_domain: Annotated[str, Field(min_length=1)]
    """The domain: equal to that of the graph, or narrower."""


class ProviderOverride(Wire):
    """Fields of an object of Grove, as Grove defines them."""

    api_version: str
    """Only grove.io/v1alpha1."""
    target: str
    """The type whose fields these are, e.g. PodCliqueSet."""
    value: Opaque
    """The fields; which ones are allowed depends on the target."""


class RestartStrategy(Wire):
    """How components are restarted."""

    type: Literal["Sequential", "Parallel"] | None = None
    """One after another, which is the default, or all at once."""
    order: Seq[str] = ()
    """The order of the components: all of them, each once. By default that of their names."""


class Restart(Wire):
    """A request to restart the components."""

    id: Annotated[str, Field(min_length=1)]
    """The identifier of the request: another one restarts the components again."""
    strategy: RestartStrategy | None = None
    """How components are restarted."""


class RestartStatus(Wire):
    """How far the last restart is."""

    observed_id: Annotated[str | None, Field(alias="observedID")] = None
    """The identifier of the last request."""
    phase: str | None = None
    """Pending, Restarting, Completed or Superseded."""
    in_progress: Seq[str] = ()
    """The components that are being restarted."""


class TemplateMetadata(Wire):
    """Labels and annotations of the pods."""

    annotations: dict[str, str] = {}
    """Annotations of the pods."""
    labels: dict[str, str] = {}
    """Labels of the pods."""


class RoleTemplate(Wire):
    """The pods of one role. The container main runs the engine; in its command the user writes what joins the nodes."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the pods."""
    spec: TemplateSpec | None = None
    """The pod spec, as Kubernetes defines it."""

    @property
    def template(self) -> Body:
        """The pod template as JSON."""
        metadata = {"metadata": self.metadata.body()} if self.metadata is not None else {}
        return {**metadata, **({"spec": self.spec} if self.spec is not None else {})}


class GraphRole(Wire):
    """The leader or the workers of a component on several nodes."""

    name: str
    """What its pods are: leader or worker."""
    replicas: Int32 | None = None
    """The number of pods: 1 leader, and a worker for each other node."""
    pod_template: RoleTemplate | None = None
    """The pod template of the role, instead of that of the component."""
    provider_override: ProviderOverride | None = None
    """Fields of the PodClique of the role."""
