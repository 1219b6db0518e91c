"""InferenceGraph: a DynamoGraphDeployment as its user specified it: services with their framework, nodes, replicas and GPUs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from engine.ids import Owner, ResourceId
from engine.quantity import amount
from engine.resource import Body
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.dynamo.model.framework import Framework, FrameworkError, framework_of

ENABLE_GROVE = "nvidia.com/enable-grove"
KAI_QUEUE = "nvidia.com/kai-scheduler-queue"
ENABLE_METRICS = "nvidia.com/enable-metrics"
GPU_BOUND = 10**18
"""The smallest number that is too large for a number of GPUs."""


class Role(StrEnum):
    """What a pod of a service does."""

    MAIN = "main"
    """The only pod of a single-node service."""
    LEADER = "leader"
    WORKER = "worker"


class Orchestrator(StrEnum):
    """What runs the services of a graph."""

    GROVE = "grove"
    """One PodCliqueSet for the whole graph."""
    COMPONENTS = "components"
    """Multinode services as LeaderWorkerSets with Volcano PodGroups, others as Deployments."""


@dataclass(frozen=True, eq=False)
class GraphService:
    """One service of a graph. `body` is the entry of `spec.services`, with its defaults and valid."""

    name: str
    """The key in `spec.services`, in the user's spelling."""
    body: Body
    framework: Framework
    envs: tuple[Body, ...]
    """The variables of the graph that the service does not set itself, then its own."""

    @property
    def key(self) -> str:
        """The name in lower case, as it occurs in the names of objects."""
        return self.name.lower()

    @property
    def component_type(self) -> str:
        """The component type in lower case; empty if there is none."""
        return str(self.body.get("componentType") or "").lower()

    @property
    def nodes(self) -> int:
        """The number of nodes of one replica; 1 without `multinode`."""
        count: int = mapping(self.body.get("multinode")).get("nodeCount", 2) if self.body.get("multinode") is not None else 1
        return max(count, 1)

    @property
    def is_multinode(self) -> bool:
        """Whether one replica needs more than one node."""
        return self.nodes > 1

    @property
    def replicas(self) -> int:
        """The number of replicas; 1 if the service names none."""
        count = self.body.get("replicas")
        return 1 if count is None else int(count)

    @property
    def gpus(self) -> int | None:
        """The GPUs of one node, from `resources.limits.gpu`; None if there is no such number."""
        return whole_amount(mapping(mapping(self.body.get("resources")).get("limits")).get("gpu"))

    @property
    def requested_gpus(self) -> int | None:
        """The GPUs of one node by which TensorRT-LLM counts its processes: `requests.gpu`, else `limits.gpu`."""
        requested = whole_amount(mapping(mapping(self.body.get("resources")).get("requests")).get("gpu"))
        return self.gpus if requested is None else requested

    @property
    def main_container(self) -> Body:
        """`extraPodSpec.mainContainer`; empty if there is none."""
        return mapping(mapping(self.body.get("extraPodSpec")).get("mainContainer"))

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
    body: Body
    """The object with its defaults, valid."""
    services: tuple[GraphService, ...]
    """Sorted by their names in lower case."""
    faults: tuple[tuple[str, str], ...] = ()
    """Service -> why its framework cannot be determined. Such a service counts as one without framework."""

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
        return Owner(self.id, kinds.DYNAMO_GRAPH.api_version)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return mapping(mapping(self.body.get("metadata")).get("annotations"))

    @property
    def may_use_grove(self) -> bool:
        """Whether the graph becomes a PodCliqueSet where Grove is served: always, unless its annotation forbids it."""
        return str(self.annotations.get(ENABLE_GROVE, "")).lower() != "false"

    @property
    def pvcs(self) -> Sequence[Body]:
        """The entries of `spec.pvcs`."""
        return mappings(mapping(self.body.get("spec")).get("pvcs"))

    @cached_property
    def dynamo_namespace(self) -> str:
        """The Dynamo namespace that the services share: the one that they name, else `dynamo-<graph>`."""
        named = (str(service.body["dynamoNamespace"]) for service in self.services if service.body.get("dynamoNamespace"))
        return next(named, f"dynamo-{self.name}")

    @property
    def metrics_enabled(self) -> bool:
        """Whether pods carry the label by which their metrics are collected."""
        return self.annotations.get(ENABLE_METRICS) != "false"

    @property
    def is_multinode(self) -> bool:
        """Whether any service needs several nodes."""
        return any(service.is_multinode for service in self.services)


def read_graph(id: ResourceId, body: Body) -> InferenceGraph:
    """The graph of a valid object with its defaults."""
    spec = mapping(body.get("spec"))
    shared = mappings(spec.get("envs"))
    explicit = str(spec.get("backendFramework") or "")
    services: list[GraphService] = []
    faults: list[tuple[str, str]] = []
    for name, entry in sorted(mapping(spec.get("services")).items(), key=lambda pair: (pair[0].lower(), pair[0])):
        service = mapping(entry)
        try:
            framework = _framework(service, explicit)
        except FrameworkError as error:
            faults.append((name, str(error)))
            framework = Framework.NONE
        services.append(GraphService(name, service, framework, merged_envs(shared, mappings(service.get("envs")))))
    return InferenceGraph(id, body, tuple(services), tuple(faults))


def merged_envs(*lists: Sequence[Body]) -> tuple[Body, ...]:
    """The variables of all lists, sorted by name; of those with one name the last."""
    by_name = {str(env.get("name", "")): env for envs in lists for env in envs}
    return tuple(by_name[name] for name in sorted(by_name))


def _framework(service: Body, explicit: str) -> Framework:
    container = mapping(mapping(service.get("extraPodSpec")).get("mainContainer"))
    command, args = (_words(container.get(field)) for field in ("command", "args"))
    return framework_of(str(service.get("componentType") or ""), command, args, explicit)


def _words(value: Any) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list | tuple) else []


def whole_amount(value: Any) -> int | None:
    """A whole number from 0, given as a quantity (`8`, `8.0`, `1k`) or a number; None for anything else, and for `GPU_BOUND` and more."""
    number = amount(str(value)) if isinstance(value, int | str) and not isinstance(value, bool) else None
    if number is None or not 0 <= number < GPU_BOUND:
        return None
    return int(number) if number == number.to_integral_value() else None
