"""Dynamo v1beta1: DynamoGraphDeployment as components with pod templates. `resources.dynamo.versions` translates it to v1alpha1."""

from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema

from resources.schema.dynamo import MOST_SERVICES, BackendFramework
from resources.schema.dynamo_parts import (
    ComponentKind,
    ComponentTopology,
    EnvVar,
    GraphRole,
    GraphTopology,
    ModelReference,
    ProviderOverride,
    Restart,
    RestartStatus,
    TemplateMetadata,
    as_map,
)
from resources.schema.graph_values import NODE_COUNT
from resources.schema.meta import ApiObject, Condition
from resources.schema.wire import BY_NAME, LIST_KEYS, LIST_TYPE, PUBLISHED, Int32, Int64, Opaque, Quantity, Seq, Wire, silent

ComponentSpec = Annotated[dict[str, Any], PlainValidator(as_map), WithJsonSchema({PUBLISHED: "ComponentPodSpec"})]
"""A core/v1 PodSpec without required fields; `pod_spec_rules` validates its fields once it is translated."""
ComponentType = Literal["frontend", "worker", "prefill", "decode", "planner", "epp"]
Count = Annotated[Int32, Field(ge=0, json_schema_extra={"minimum": 0})]


class ComponentTemplate(Wire):
    """The pods of a component. The container main runs the engine; what it does not have, it gets by the type of the component."""

    metadata: TemplateMetadata | None = None
    """Labels and annotations of the pods."""
    spec: ComponentSpec | None = None
    """The pod spec."""


class ComponentNodes(Wire):
    """The nodes of one replica."""

    node_count: Annotated[Int32, Field(ge=NODE_COUNT, json_schema_extra={"minimum": NODE_COUNT})] = NODE_COUNT
    """The number of nodes, each with the GPUs of the container main."""


class CompilationCache(Wire):
    """The claim in which the framework keeps what it compiles."""

    pvc_name: Annotated[str, Field(min_length=1)]
    """The name of the claim."""
    mount_path: str | None = None
    """The path in the container. May be omitted for vLLM."""


class ScalingMark(Wire):
    """Present if something else scales the component. Without fields."""


class GraphComponent(Wire):
    """One component: what its pods run, and how many there are."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern="^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$")]
    """The name of the component, unique whatever its case."""
    type: ComponentType | None = None
    """What the component is. Immutable."""
    pod_template: ComponentTemplate | None = None
    """The pods of the component."""
    replicas: Count | None = None
    """The number of replicas, each on all its nodes; by default 1."""
    min_available: Annotated[Int32, Field(ge=1, json_schema_extra={"minimum": 1})] | None = None
    """The number of replicas that are scheduled together at least, and kept by termination; by default 1. On Grove only."""
    multinode: ComponentNodes | None = None
    """The nodes of one replica; without it, one node."""
    roles: Seq[GraphRole] = ()
    """The leader and the workers of a component on several nodes."""
    shared_memory_size: Quantity | None = None
    """The size of the volume at /dev/shm; by default 8Gi. 0: none."""
    compilation_cache: CompilationCache | None = None
    """The claim in which the framework keeps what it compiles."""
    scaling_adapter: ScalingMark | None = None
    """If present, the number of replicas belongs to an autoscaler once the component runs."""
    topology_constraint: ComponentTopology | None = None
    """The domain within which the pods of one replica are placed. On Grove only."""
    provider_override: ProviderOverride | None = None
    """Fields of the object of Grove that is made of the component."""
    runtime_version_override: str | None = None
    """The version of Dynamo in the image, if its tag does not say it."""
    model_ref: ModelReference | None = None
    """The model that the component serves."""
    global_dynamo_namespace: bool | None = None
    """Without effect."""
    frontend_sidecar: str | None = None
    """Not supported."""
    epp_config: Opaque | None = None
    """Not supported."""
    experimental: Opaque | None = None
    """Not supported."""


class GraphSpecV1Beta1(Wire):
    """The components, and what they share."""

    components: Annotated[Seq[GraphComponent], Field(max_length=MOST_SERVICES, json_schema_extra=BY_NAME)] = ()
    """The components by their names."""
    env: Seq[EnvVar] = ()
    """Variables of the containers main of all components."""
    backend_framework: BackendFramework | None = None
    """The inference framework of the workers whose command does not show it. Immutable."""
    annotations: dict[str, str] = {}
    """Annotations of all objects and pods; those of a component win."""
    labels: dict[str, str] = {}
    """Labels of all objects and pods; those of a component win."""
    priority_class_name: str | None = None
    """The priority class of all pods that name none."""
    topology_constraint: GraphTopology | None = None
    """The topology of the graph. On Grove only."""
    restart: Restart | None = None
    """A request to restart the components. A new graph must not have one."""
    provider_override: ProviderOverride | None = None
    """Fields of the PodCliqueSet."""
    experimental: Opaque | None = None
    """Without effect, or not supported."""


class ComponentStatus(Wire):
    """The replicas of one component."""

    component_kind: ComponentKind
    """The kind of the objects that run the component."""
    component_names: Seq[str] = ()
    """The names of these objects."""
    replicas: Int32 = silent(0, required=True)
    """The number of replicas."""
    updated_replicas: Int32 = silent(0, required=True)
    """The number of replicas that have the current template."""
    ready_replicas: Int32 | None = None
    """The number of replicas that are ready."""
    available_replicas: Int32 | None = None
    """The number of replicas that are available."""
    scheduled_replicas: Int32 | None = None
    """The number of replicas whose pods have nodes."""


class GraphStatusV1Beta1(Wire):
    """The observed state."""

    observed_generation: Int64 | None = None
    """The metadata.generation that this status refers to."""
    state: str | None = None
    """The state of the graph: initializing, pending, successful or failed."""
    conditions: Annotated[Seq[Condition], Field(json_schema_extra={LIST_TYPE: "map", LIST_KEYS: ["type"]})] = ()
    """The conditions of the graph: Ready."""
    restart: RestartStatus | None = None
    """How far the last restart is."""
    components: dict[str, ComponentStatus] = {}
    """The replicas of each component."""


class DynamoGraphDeploymentV1Beta1(ApiObject):
    """DynamoGraphDeployment is one inference deployment: components that find one another, each on one or on several nodes."""

    spec: GraphSpecV1Beta1 = Field(default_factory=GraphSpecV1Beta1)
    """The components, and what they share."""
    status: GraphStatusV1Beta1 | None = None
    """The observed state."""
