"""Dynamo: DynamoGraphDeployment, the services of one inference deployment and the volumes and variables that they share.

Numbers in quotes and unquoted amounts of resources are read as what they mean; `resources.admission.graph_defaults` replaces them by
values of the types that the API has.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

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
    as_map,
)
from resources.schema.graph_values import NODE_COUNT, quoted, unquoted
from resources.schema.meta import ApiObject, Condition
from resources.schema.pod_spec_form import ExtraPodSpec
from resources.schema.wire import BY_NAME, PUBLISHED, Int32, Int64, Opaque, Quantity, Rule, Seq, Wire, rules, silent

MOST_SERVICES: Final = 25
MOST_PVCS: Final = 100

BackendFramework = Literal["sglang", "vllm", "trtllm"]
PVC_RULE: Final = Rule(
    cel="!has(self.create) || !self.create || (has(self.size) && has(self.storageClass) && has(self.volumeAccessMode))",
    message="When create is true, size, storageClass, and volumeAccessMode are required",
    reason="FieldValueRequired",
    field="",
    # Admission names each field that is missing.
    holds=lambda _: True,
)


WholeNumber = Annotated[Int32, BeforeValidator(unquoted)]
"""A number that may be in quotes."""
NodeCount = Annotated[WholeNumber, Field(ge=NODE_COUNT, json_schema_extra={"minimum": NODE_COUNT})]
Amount = Annotated[str, BeforeValidator(quoted)]
"""An amount of a resource as text, such as 500m or 4Gi; a number may be without quotes."""
Claim = Annotated[dict[str, Any], PlainValidator(as_map), WithJsonSchema({PUBLISHED: "ResourceClaim"})]
"""A core/v1 ResourceClaim: the reference of a container to a claim of its pod."""
Probe = Annotated[dict[str, Any], PlainValidator(as_map), WithJsonSchema({PUBLISHED: "Probe"})]
"""A core/v1 Probe."""


class GraphVolumeClaim(Wire):
    """A PersistentVolumeClaim that services mount by its name."""

    model_config = ConfigDict(json_schema_extra=rules(PVC_RULE))

    create: bool | None = None
    """Whether the claim is created if it does not exist."""
    name: str = silent("", required=True)
    """The name of the claim."""
    storage_class: str | None = None
    """The storage class of the claim, if it is created."""
    size: Quantity | None = None
    """The size of the claim, if it is created."""
    volume_access_mode: str | None = None
    """The access mode of the claim, if it is created, e.g. ReadWriteMany."""


class ResourceAmounts(Wire):
    """Amounts of resources of one node."""

    cpu: Amount | None = None
    """The amount of CPU, e.g. 4 or 500m."""
    memory: Amount | None = None
    """The amount of memory, e.g. 16Gi."""
    gpu: Amount | None = None
    """The number of GPUs."""
    gpu_type: str | None = None
    """The name of the GPU resource; by default nvidia.com/gpu."""
    custom: dict[str, Amount] = {}
    """Amounts of other resources by their names."""


class ServiceResources(Wire):
    """The resources of the main container."""

    requests: ResourceAmounts | None = None
    """What is reserved on each node."""
    limits: ResourceAmounts | None = None
    """What may be used on each node."""
    claims: Seq[Claim] = ()
    """The resource claims of the pod that the container uses."""


class ServiceAutoscaling(Wire):
    """Deprecated, without effect."""

    enabled: bool | None = None
    """Deprecated."""
    min_replicas: WholeNumber | None = None
    """Deprecated."""
    max_replicas: WholeNumber | None = None
    """Deprecated."""
    behavior: Opaque | None = None
    """Deprecated."""
    metrics: Seq[Opaque] = ()
    """Deprecated."""


class ServiceVolumeMount(Wire):
    """A PersistentVolumeClaim that is mounted into the main container."""

    name: str = silent("", required=True)
    """The name of the claim."""
    mount_point: str | None = None
    """The path in the container. May be omitted for a compilation cache of vLLM."""
    use_as_compilation_cache: bool = silent(False)
    """Whether the framework keeps what it compiles there."""


class IngressTls(Wire):
    """TLS of an Ingress."""

    secret_name: str | None = None
    """The Secret with the certificate."""


class ServiceIngress(Wire):
    """The Ingress of a frontend."""

    enabled: bool | None = None
    """Whether the frontend has an Ingress."""
    host: str | None = None
    """The host, between prefix and suffix."""
    use_virtual_service: bool | None = None
    """Whether an Istio VirtualService is made."""
    virtual_service_gateway: str | None = None
    """The gateway of the VirtualService."""
    host_prefix: str | None = None
    """What precedes the host."""
    host_suffix: str | None = None
    """What follows the host, after a dot."""
    annotations: dict[str, str] = {}
    """Annotations of the Ingress."""
    labels: dict[str, str] = {}
    """Labels of the Ingress."""
    tls: IngressTls | None = None
    """TLS of the Ingress."""
    ingress_controller_class_name: str | None = None
    """The class of the Ingress."""


class SharedMemory(Wire):
    """The volume at /dev/shm."""

    disabled: bool | None = None
    """Whether the pods have none."""
    size: Quantity | None = None
    """Its size; by default 8Gi."""


class ExtraPodMetadata(Wire):
    """Labels and annotations of the pods alone."""

    annotations: dict[str, str] = {}
    """Annotations of the pods."""
    labels: dict[str, str] = {}
    """Labels of the pods."""


class Multinode(Wire):
    """The nodes of one replica."""

    node_count: NodeCount = NODE_COUNT
    """The number of nodes, each with the GPUs of `resources`."""


class ScalingAdapter(Wire):
    """Whether an object of its own has the number of replicas."""

    enabled: bool | None = None
    """Whether a DynamoGraphDeploymentScalingAdapter is made, which has the number of replicas from then on."""
    disable: bool | None = None
    """Without effect."""


class GraphServiceSpec(Wire):
    """One service: what its pods run, and how many there are."""

    annotations: dict[str, str] = {}
    """Annotations of the objects of the service."""
    labels: dict[str, str] = {}
    """Labels of the objects of the service."""
    service_name: str | None = None
    """The name of the service; by default its key in the map."""
    component_type: str | None = None
    """What the service is: frontend, worker, prefill, decode, planner, or any other."""
    sub_component_type: str | None = None
    """What kind of worker it is, as a label."""
    dynamo_namespace: str | None = None
    """The Dynamo namespace, the same for all services; by default dynamo-<graph>."""
    global_dynamo_namespace: bool | None = None
    """Without effect."""
    resources: ServiceResources | None = None
    """The resources of the main container, on each node."""
    autoscaling: ServiceAutoscaling | None = None
    """Deprecated, without effect."""
    envs: Seq[EnvVar] = ()
    """Variables of the main container; they win over those of the graph."""
    env_from_secret: str | None = None
    """A Secret whose entries are variables of the main container."""
    volume_mounts: Seq[ServiceVolumeMount] = ()
    """The claims that are mounted into the main container."""
    ingress: ServiceIngress | None = None
    """The Ingress of a frontend."""
    model_ref: ModelReference | None = None
    """The model that the service serves."""
    shared_memory: SharedMemory | None = None
    """The volume at /dev/shm; by default 8Gi."""
    extra_pod_metadata: ExtraPodMetadata | None = None
    """Labels and annotations of the pods alone."""
    extra_pod_spec: ExtraPodSpec | None = None
    """Fields of the pods: a core/v1 PodSpec, and in mainContainer those of the main container."""
    liveness_probe: Probe | None = None
    """The liveness probe of the main container, instead of the default."""
    readiness_probe: Probe | None = None
    """The readiness probe of the main container, instead of the default."""
    replicas: WholeNumber | None = None
    """The number of replicas, each on all its nodes; by default 1."""
    multinode: Multinode | None = None
    """The nodes of one replica; without it, one node."""
    min_available: Int32 | None = None
    """The number of replicas that are scheduled together at least, and kept by termination; by default 1. On Grove only."""
    roles: Seq[GraphRole] = ()
    """The leader and the workers of a service on several nodes."""
    topology_constraint: ComponentTopology | None = None
    """The domain within which the pods of one replica are placed. On Grove only."""
    provider_override: ProviderOverride | None = None
    """Fields of the object of Grove that is made of the service."""
    runtime_version_override: str | None = None
    """The version of Dynamo in the image, if its tag does not say it."""
    scaling_adapter: ScalingAdapter | None = None
    """With enabled: true, the number of replicas belongs to an autoscaler once the service runs."""
    frontend_sidecar: Opaque | None = None
    """Not supported."""
    epp_config: Opaque | None = None
    """Not supported."""
    gpu_memory_service: Opaque | None = None
    """Not supported."""
    failover: Opaque | None = None
    """Not supported."""
    checkpoint: Opaque | None = None
    """Not supported."""
    experimental: Opaque | None = None
    """Not supported."""


class DynamoGraphSpec(Wire):
    """The services, and what they share."""

    pvcs: Annotated[Seq[GraphVolumeClaim], Field(max_length=MOST_PVCS, json_schema_extra=BY_NAME)] = ()
    """The PersistentVolumeClaims that services mount."""
    services: Annotated[dict[str, GraphServiceSpec], Field(max_length=MOST_SERVICES)] = {}
    """The services by their names."""
    envs: Seq[EnvVar] = ()
    """Variables of the main containers of all services."""
    backend_framework: BackendFramework | None = None
    """The inference framework of the workers whose command does not show it. Immutable."""
    annotations: dict[str, str] = {}
    """Annotations of all objects and pods; those of a service win."""
    labels: dict[str, str] = {}
    """Labels of all objects and pods; those of a service win."""
    priority_class_name: str | None = None
    """The priority class of all pods that name none."""
    topology_constraint: GraphTopology | None = None
    """The topology of the graph. On Grove only."""
    restart: Restart | None = None
    """A request to restart the services. A new graph must not have one."""
    provider_override: ProviderOverride | None = None
    """Fields of the PodCliqueSet."""
    experimental: Opaque | None = None
    """Without effect, or not supported."""


class ServiceReplicaStatus(Wire):
    """The replicas of one service."""

    component_kind: ComponentKind
    """The kind of the object that runs the service."""
    component_name: str
    """The name of that object."""
    replicas: Int32 = silent(0, required=True)
    """The number of replicas."""
    updated_replicas: Int32 = silent(0, required=True)
    """The number of replicas that have the current template."""
    ready_replicas: Int32 | None = None
    """The number of replicas that are ready."""
    available_replicas: Int32 | None = None
    """The number of replicas that are available."""


class DynamoGraphStatus(Wire):
    """The observed state."""

    observed_generation: Int64 | None = None
    """The metadata.generation that this status refers to."""
    state: str | None = None
    """The state of the graph: pending, successful or failed."""
    conditions: Annotated[
        Seq[Condition], Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]})
    ] = ()
    """The conditions of the graph: Ready."""
    restart: RestartStatus | None = None
    """How far the last restart is."""
    services: dict[str, ServiceReplicaStatus] = {}
    """The replicas of each service."""


class DynamoGraphDeployment(ApiObject):
    """DynamoGraphDeployment is one inference deployment: services that find one another, each on one or on several nodes."""

    spec: DynamoGraphSpec = Field(default_factory=DynamoGraphSpec)
    """The services, and what they share."""
    status: DynamoGraphStatus | None = None
    """The observed state."""
