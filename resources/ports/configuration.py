"""Configuration: the operator's choices and the plug-ins that the objects of a workload depend on."""

from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct

from engine.ids import Kind
from engine.version import VERSION
from resources.base.kinds import KAI_POD_GROUP, KAI_QUEUE, ON_REQUEST
from resources.ports.fabric import Fabric
from resources.ports.scheduler import Scheduler


class SizeLimits(Struct, frozen=True):
    """The most of each measure that is admitted."""

    replicas: int
    """Replicas of PodCliqueSets."""
    pods: int
    """Pods, with as many of each clique and scaling group as their autoscalers may ask for."""
    cliques: int
    """PodCliques, counted alike."""
    bytes: int
    """Of one set: the JSON of its spec, and the pod references of one of its PodGangs, of which an API server stores no more in one object.
    Of a namespace: all of these together."""


SET_LIMITS: Final = SizeLimits(replicas=10_000, pods=100_000, cliques=10_000, bytes=1_500_000)
NAMESPACE_LIMITS: Final = SizeLimits(replicas=10_000, pods=100_000, cliques=10_000, bytes=32_000_000)
"""With so many pods and PodCliques, however they are grouped, `engine run` takes less than the memory limit of an installation, as
`engine.memory_budget` counts it. Two namespaces may have the 150 000 pods of the largest cluster that Kubernetes supports."""


class WorkloadLimits(Struct, frozen=True):
    """The limits of an installation."""

    of_set: SizeLimits = SET_LIMITS
    of_namespace: SizeLimits = NAMESPACE_LIMITS


UNLIMITED: Final = WorkloadLimits(*[SizeLimits(replicas=2**99, pods=2**99, cliques=2**99, bytes=2**99)] * 2)
"""More than any workload can ask for."""


ONLY = "part"
"""The key of the only part of a graph."""
KAI_SCHEDULER = "kai-scheduler"
"""The name of KAI, as pods and the profiles of the configuration give it."""
GRAPH_SCHEDULER: Final = KAI_SCHEDULER
"""The scheduler of graphs made from now on where the configuration lists no profiles and the cluster serves its kinds."""
GRAPH_SCHEDULER_KINDS: Final = (KAI_QUEUE, KAI_POD_GROUP)
"""The kinds without which it cannot schedule a graph."""
VOLCANO_SCHEDULER = "volcano"
"""The name of Volcano."""
SSH_SECRET = "mpirun-ssh-key-{component}"
"""The default name of the Secret with the SSH key pair of a TensorRT-LLM service; `{component}` is `<graph>-<service>` in lower case."""
WAITER_IMAGE = f"grove-initc:{VERSION}"
"""The default image of the init container that waits for other cliques: the one of this release."""

SSH_KEYS = ("private.key", "private.key.pub")
"""The keys of that Secret: the private and the public key."""
GENERATED = "(generated when it is created)"
"""Stands for content of it that is generated right before the call is sent, so that plans do not depend on chance."""


class DynamoSettings(Struct, frozen=True):
    """What pods and objects of graphs depend on besides the graph."""

    ssh_secret: str = SSH_SECRET
    """The name of the Secret with the SSH key pair of a multinode TensorRT-LLM service, in the graph's namespace."""
    ssh_names: tuple[tuple[str, str], ...] = ()
    """Component -> the name of its Secret, where it is another one that exists: that of the whole graph."""
    create_ssh_secret: bool = False
    """Whether that Secret is created if it is missing. Otherwise the service waits for it."""
    enabled: bool = True
    """Whether graphs are managed."""
    allow_replace: bool = False
    """Whether a PodCliqueSet is deleted and created anew when a graph changes what the API does not allow to change."""
    termination_delay: str = "15m"
    """`terminationDelay` of the PodCliqueSet; empty leaves it out."""
    nats_address: str = ""
    """`NATS_SERVER` of every container; empty leaves it out, like the following ones."""
    etcd_address: str = ""
    model_express_url: str = ""
    prometheus_endpoint: str = ""
    ingress_class: str = ""
    """The Ingress class of services that name none; without any class no Ingress is created."""
    ingress_host_suffix: str = "local"
    """What follows the host of an Ingress, after a dot, unless the service names its own."""

    def ssh_secret_of(self, component: str) -> str:
        """The name of the Secret of one component."""
        return dict(self.ssh_names).get(component) or self.ssh_secret.replace("{component}", component)


class Configuration(Struct, frozen=True):
    """What the operator has configured, with the plug-ins it names."""

    schedulers: Mapping[str, Scheduler]
    """The enabled scheduler back ends by name."""
    default_scheduler: str
    """The name of the back end for pods that name none."""
    waiter_image: str = WAITER_IMAGE
    """The image of the init container in which a pod waits for the cliques that it starts after."""

    topology: bool = False
    """Whether topology-aware scheduling is enabled: otherwise topology constraints have no effect."""

    fabrics: tuple[Fabric, ...] = ()
    """The enabled fabrics."""
    drain_timeout: timedelta = timedelta(minutes=5)
    """How long the deletion of a domain waits for terminating pods and claims that use it."""
    dynamo: DynamoSettings = DynamoSettings()
    """The choices for DynamoGraphDeployments."""
    namespaces: tuple[str, ...] = ()
    """The only namespaces whose workloads are managed; empty: all of them."""
    limits: WorkloadLimits = WorkloadLimits()
    """How large sets may be."""
    take_over: bool = False
    """Whether sets whose PodGangs Grove v0.1.0-alpha.12 or later has made are taken over."""
    graph_scheduler_where_served: str = ""
    """The back end that no profile lists, and that is enabled where the cluster serves its kinds: that of graphs made from now on. Empty
    where profiles are listed: they decide."""

    @property
    def listed_schedulers(self) -> Mapping[str, Scheduler]:
        """The back ends that are enabled whatever the cluster serves."""
        return {name: scheduler for name, scheduler in self.schedulers.items() if name != self.graph_scheduler_where_served}

    def scheduler(self, name: str) -> Scheduler:
        """The back end of that name; an empty name means the default. Raises `KeyError` if it is not enabled."""
        return self.schedulers[name or self.default_scheduler]


def required_kinds(configuration: Configuration) -> Iterator[tuple[Kind, str]]:
    """The kinds that must be served before a command starts, each with the error message if it is not."""
    for plug_in in (*configuration.fabrics, *configuration.schedulers.values()):
        yield from plug_in.required_kinds().items()


def serves_graph_scheduler(unserved: Collection[str]) -> bool:
    """Whether a cluster that does not serve these kinds has the scheduler of graphs."""
    return all(kind.key not in unserved for kind in GRAPH_SCHEDULER_KINDS)


def unserved_without_a_cluster(configuration: Configuration) -> frozenset[str]:
    """The keys of the kinds that an empty cluster does not serve: those that Kubernetes serves on request, unless they are required, and
    those of a scheduler that is enabled only where they are served."""
    of_graphs = GRAPH_SCHEDULER_KINDS if configuration.graph_scheduler_where_served else ()
    on_request = ON_REQUEST.difference(kind.key for kind, _ in required_kinds(configuration))
    return on_request.union(kind.key for kind in of_graphs)


def pinned(image: str) -> str:
    """The image with the tag of this release, unless it already has a tag or a digest."""
    return tagged(image, VERSION)


def tagged(image: str, tag: str) -> str:
    """The image with that tag (empty: that of this release), unless it already has a tag or a digest."""
    _, _, name = image.rpartition("/")
    return image if ":" in name or "@" in name else f"{image}:{tag or VERSION}"


class GangMode(StrEnum):
    """The values of the option."""

    AUTO = "Auto"
    """Where the cluster serves PodGroups."""
    REQUIRE = "Require"
    """Always: a cluster that does not serve PodGroups cannot be managed."""
    OFF = "Off"
    """Never."""
