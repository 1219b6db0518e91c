"""InferenceGraph: a DynamoGraphDeployment as its user specified it: services with their framework, nodes, replicas and GPUs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

from engine.ids import Owner, ResourceId
from engine.memo import Memo
from engine.quantity import amount
from engine.resource import Body
from resources.base import kinds, labels, names
from resources.base.fields import mapping, mappings
from resources.base.labels import OTHER_VERSION, WRITTEN_AS
from resources.dynamo.model.form import PodForm, form_of
from resources.dynamo.model.framework import Framework, FrameworkError, distributed_framework_of, framework_of
from resources.dynamo.model.pod_template import mounts_shared_memory, service_fields
from resources.schema.dynamo import (
    DynamoGraphSpec,
    ExtraPodMetadata,
    GraphServiceSpec,
    GraphVolumeClaim,
    ServiceResources,
    SharedMemory,
)
from resources.schema.issues import Located

ENABLE_GROVE = labels.ENABLE_GROVE
KAI_QUEUE = "nvidia.com/kai-scheduler-queue"
VOLCANO_QUEUE = "nvidia.com/volcano-queue"
ENABLE_METRICS = "nvidia.com/enable-metrics"
VERSIONS = ("v1alpha1", "v1beta1")
"""The values of `WRITTEN_AS`: that of a graph which was not written as v1beta1, and that of one which was."""
GPU_BOUND = 10**18
"""The smallest number that is too large for a number of GPUs."""


class Role(StrEnum):
    """What a pod of a service does."""

    MAIN = "main"
    """The only pod of a single-node service."""
    LEADER = "leader"
    WORKER = "worker"


_ROLES = frozenset({Role.LEADER, Role.WORKER})


class Orchestrator(StrEnum):
    """What runs the services of a graph."""

    GROVE = "grove"
    """One PodCliqueSet for the whole graph."""
    COMPONENTS = "components"
    """Multinode services as LeaderWorkerSets with Volcano PodGroups, others as Deployments."""


@dataclass(frozen=True, eq=False)
class GraphService:
    """One service of a graph."""

    name: str
    """The key in `spec.services`, in the user's spelling."""
    spec: GraphServiceSpec
    """The entry of `spec.services`."""
    framework: Framework
    envs: tuple[Body, ...]
    """The variables of the graph that the service does not set itself, then its own."""
    is_of_role: bool = False
    """Whether its pods are those of one role alone, from the role's own template, in which its user writes what joins the nodes."""

    @cached_property
    def templates(self) -> Mapping[Role, Body]:
        """The pod templates of roles, as written; empty if the roles share one."""
        templates = ((role.name, role.pod_template) for role in self.spec.roles if role.name in _ROLES)
        return {Role(name): template.template for name, template in templates if template is not None}

    @cached_property
    def leading(self) -> "GraphService":
        """The service with the pods of its leader, if roles have templates of their own; itself if not."""
        return self.of(Role.LEADER)

    def of(self, role: Role) -> "GraphService":
        """The service with the pods of this role, if the role has a template of its own; itself if not."""
        return self._of_roles.get(role, self)

    @cached_property
    def _of_roles(self) -> "Mapping[Role, GraphService]":
        return {role: _with_template(self, template) for role, template in self.templates.items()}

    @property
    def key(self) -> str:
        """The name in lower case, as it occurs in the names of objects."""
        return self.name.lower()

    @property
    def component_type(self) -> str:
        """The component type in lower case; empty if there is none."""
        return (self.spec.component_type or "").lower()

    @property
    def nodes(self) -> int:
        """The number of nodes of one replica; 1 without `multinode`."""
        return self.spec.multinode.node_count if self.spec.multinode is not None else 1

    @property
    def is_multinode(self) -> bool:
        """Whether one replica needs more than one node."""
        return self.nodes > 1

    @property
    def replicas(self) -> int:
        """The number of replicas; 1 if the service names none."""
        return 1 if self.spec.replicas is None else self.spec.replicas

    @property
    def is_scaled_by_others(self) -> bool:
        """Whether the number of replicas belongs to an autoscaler, or a user, once the service runs."""
        adapter = self.spec.scaling_adapter
        return self.spec.replicas is None or (adapter is not None and bool(adapter.enabled))

    @property
    def gpus(self) -> int | None:
        """The GPUs of one node, from `resources.limits.gpu`; None if there is no such number."""
        return whole_amount(self.gpu_amount("limits"))

    @property
    def requested_gpus(self) -> int | None:
        """The GPUs of one node by which TensorRT-LLM counts its processes: `requests.gpu`, else `limits.gpu`."""
        requested = whole_amount(self.gpu_amount("requests"))
        return self.gpus if requested is None else requested

    @property
    def node_gpus(self) -> int | None:
        """The GPUs that one node has for the service: `limits.gpu`, else the limit of its main container, else `requests.gpu`."""
        limits = mapping(mapping(self.main_container.get("resources")).get("limits"))
        own = whole_amount(str(limits.get(names.NVIDIA_GPU))) if limits.get(names.NVIDIA_GPU) is not None else None
        return self.gpus or own or self.requested_gpus

    def gpu_amount(self, kind: Literal["limits", "requests"]) -> str | None:
        """The field `gpu` of the limits or the requests."""
        resources = self.leading.spec.resources
        amounts = getattr(resources, kind) if resources is not None else None
        return amounts.gpu if amounts is not None else None

    @property
    def extra_pod_spec(self) -> Body:
        """`extraPodSpec`, or the leader's where roles have templates of their own; empty if there is none."""
        return self.leading.spec.extra_pod_spec or {}

    @property
    def main_container(self) -> Body:
        """`extraPodSpec.mainContainer`; empty if there is none."""
        return mapping(self.extra_pod_spec.get("mainContainer"))

    @property
    def scheduler(self) -> str:
        """The scheduler that `extraPodSpec` names; empty if it names none."""
        return self.extra_pod_spec.get("schedulerName") or ""

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of its pods, the leader first."""
        return (Role.LEADER, Role.WORKER) if self.is_multinode else (Role.MAIN,)

    def pods(self, role: Role) -> int:
        """How many pods of that role one replica has."""
        return self.nodes - 1 if role is Role.WORKER else 1


@dataclass(frozen=True, eq=False)
class InferenceGraph:
    """A graph as specified."""

    id: ResourceId
    annotations: Mapping[str, str]
    """Its annotations."""
    spec: DynamoGraphSpec
    services: tuple[GraphService, ...]
    """Sorted by their names in lower case."""
    api_version: str = kinds.DYNAMO_GRAPH.api_version
    """The version in which the object is read and written."""
    faults: tuple[tuple[str, str], ...] = ()
    """Service -> why its framework cannot be determined. Such a service counts as one without framework."""
    memo: Memo = field(default_factory=Memo)
    """What has been computed from it alone, e.g. its pods."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.id.name

    @property
    def namespace(self) -> str:
        """The Kubernetes namespace."""
        return self.id.namespace

    @property
    def owner(self) -> Owner:
        """The owner reference of its objects."""
        return Owner(self.id, self.api_version)

    @property
    def may_use_grove(self) -> bool:
        """Whether the graph becomes a PodCliqueSet where Grove is served: always, unless its annotation forbids it."""
        return self.annotations.get(ENABLE_GROVE, "").lower() != "false"

    @cached_property
    def form(self) -> PodForm:
        """The form of its pods."""
        return form_of(self.annotations)

    @property
    def knows_ranks(self) -> bool:
        """Whether its pods have the third form or a later one, in which each knows its rank."""
        return self.form.includes(PodForm.THIRD)

    @property
    def shares_settings(self) -> bool:
        """Whether its pods have the fifth form or a later one, in which all containers have what the configuration says."""
        return self.form.includes(PodForm.FIFTH)

    @property
    def is_recorded(self) -> bool:
        """Whether its pods have the second form or a later one, which every graph records."""
        return self.form is not PodForm.FIRST

    @property
    def is_written_as_v1beta1(self) -> bool:
        """Whether its author wrote it as v1beta1, in whichever version it is read: a converted graph has an annotation."""
        return is_beta_as_written(self.api_version, self.annotations)

    @property
    def began_as_v1beta1(self) -> bool:
        """Whether it was first written as v1beta1, as it records it; without a record, whether it is written so."""
        recorded = self.annotations.get(WRITTEN_AS)
        return self.is_written_as_v1beta1 if recorded not in VERSIONS else recorded == VERSIONS[True]

    @property
    def pvcs(self) -> Sequence[GraphVolumeClaim]:
        """The entries of `spec.pvcs`."""
        return self.spec.pvcs

    @cached_property
    def dynamo_namespace(self) -> str:
        """The Dynamo namespace that the services share: the one that they name, else `dynamo-<graph>`."""
        named = (service.spec.dynamo_namespace for service in self.services if service.spec.dynamo_namespace)
        return next(named, f"dynamo-{self.name}")

    @property
    def expected(self) -> Orchestrator:
        """What runs the graph where Grove is served."""
        return Orchestrator.GROVE if self.may_use_grove else Orchestrator.COMPONENTS

    @property
    def metrics_enabled(self) -> bool:
        """Whether pods carry the label by which their metrics are collected."""
        return self.annotations.get(ENABLE_METRICS) != "false"

    @property
    def is_multinode(self) -> bool:
        """Whether any service needs several nodes."""
        return any(service.is_multinode for service in self.services)


def is_beta_as_written(api_version: str, annotations: Mapping[str, str]) -> bool:
    """Whether a graph that is read in this version was written as v1beta1: a converted one has an annotation."""
    return (api_version == kinds.DYNAMO_GRAPH_V1BETA1.api_version) is not (OTHER_VERSION in annotations)


def read_graph(
    id: ResourceId, annotations: Mapping[str, str], spec: DynamoGraphSpec, api_version: str = kinds.DYNAMO_GRAPH.api_version
) -> InferenceGraph:
    """The graph of this spec, whose object has that version."""
    is_recorded = form_of(annotations) is not PodForm.FIRST
    services: list[GraphService] = []
    faults: list[tuple[str, str]] = []
    for name, service in sorted(spec.services.items(), key=lambda pair: (pair[0].lower(), pair[0])):
        unknown = GraphService(name, _with_shared(service, spec), Framework.NONE, merged_envs(spec.envs, service.envs))
        try:
            framework = _framework(unknown, spec.backend_framework or "", is_recorded=is_recorded)
        except FrameworkError as error:
            faults.append((name, str(error)))
            framework = Framework.NONE
        services.append(GraphService(name, unknown.spec, framework, unknown.envs))
    return InferenceGraph(id, annotations, spec, tuple(services), api_version, tuple(faults))


def _with_template(service: GraphService, template: Body) -> GraphService:
    """The service with the pods of a role's template. What is added to the pods of all roles, such as a restart, is theirs as well."""
    fields = service_fields(template)
    spec, given = service.spec, mapping(fields.get("extraPodMetadata"))
    shared = spec.extra_pod_metadata or ExtraPodMetadata()
    metadata = ExtraPodMetadata(
        labels={**mapping(given.get("labels")), **shared.labels}, annotations={**mapping(given.get("annotations")), **shared.annotations}
    )
    changes = {
        "roles": (),
        "annotations": {**spec.annotations, **mapping(fields.get("annotations"))},
        "extra_pod_metadata": metadata,
        "extra_pod_spec": mapping(fields.get("extraPodSpec")),
        "liveness_probe": fields.get("livenessProbe"),
        "readiness_probe": fields.get("readinessProbe"),
        "resources": ServiceResources.model_validate(fields["resources"]) if "resources" in fields else None,
    }
    if spec.shared_memory is None and mounts_shared_memory(template):
        changes["shared_memory"] = SharedMemory(disabled=True)
    envs = merged_envs(service.envs, mappings(fields.get("envs")))
    return GraphService(service.name, spec.model_copy(update=changes), service.framework, envs, is_of_role=True)


def _with_shared(service: GraphServiceSpec, spec: DynamoGraphSpec) -> GraphServiceSpec:
    """The service with the labels and annotations of the graph below its own."""
    if not spec.labels and not spec.annotations:
        return service
    shared = {"labels": {**spec.labels, **service.labels}, "annotations": {**spec.annotations, **service.annotations}}
    return service.model_copy(update=shared)


def merged_envs(*lists: Sequence[Body]) -> tuple[Body, ...]:
    """The variables of all lists, sorted by name; of those with one name the last."""
    by_name = {str(env.get("name", "")): env for envs in lists for env in envs}
    return tuple(by_name[name] for name in sorted(by_name))


def _framework(service: GraphService, explicit: str, *, is_recorded: bool) -> Framework:
    container = service.main_container
    command, args = (container.get(field) or () for field in ("command", "args"))
    kind = service.spec.component_type or ""
    if service.is_multinode and (is_recorded or service.templates):
        return distributed_framework_of(kind, command, args, explicit, str(container.get("image") or ""))
    return framework_of(kind, command, args, explicit)


def whole_amount(value: str | None) -> int | None:
    """A whole number from 0, given as a quantity (`8`, `8.0`, `1k`); None for anything else, and for `GPU_BOUND` and more."""
    number = amount(value) if value is not None else None
    if number is None or not 0 <= number < GPU_BOUND:
        return None
    return int(number) if number == number.to_integral_value() else None


def about_service(service: GraphService, text: str, *fields: str) -> Located:
    """A note about a service, located at one of its fields, or at its name."""
    return Located(text, ("spec", "services", service.name, *fields))
