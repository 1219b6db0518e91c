"""EngineInstallation: what an administrator chooses about the engine in a cluster, and the names that do not depend on it."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from engine.version import VERSION
from resources.base import labels
from resources.base.fields import mapping
from resources.install.modes import NAMESPACE, REPLICAS, SCHEDULE, TIMEOUT, AdmissionMode, Mode
from resources.install.roles import LABELS

NAME: Final = "grove-engine"
"""The Deployment or CronJob, Service, ServiceAccount, ConfigMap and everything else of an installation that has one name."""
SELECTOR: Final = LABELS | {labels.COMPONENT: "controller"}
"""The labels of the pods of a Deployment. They never change: a Deployment's selector cannot."""


class EngineInstallation(Struct, frozen=True):
    """The choices for one installation. The names of its objects are fixed: two engines in one cluster would disturb each other."""

    namespace: str = NAMESPACE
    mode: Mode = Mode.DEPLOYMENT
    admission: AdmissionMode = AdmissionMode.WEBHOOKS
    configuration: Mapping[str, Any] = field(default_factory=dict)
    """The whole document of the ConfigMap (`operator_configuration.installed`)."""
    image: str = f"{NAME}:{VERSION}"
    waiter_image: str = f"grove-initc:{VERSION}"
    """The image of the init container in which pods wait; without effect if the configuration names one."""
    pull_secrets: tuple[str, ...] = ()
    """The names of the Secrets with which both images are pulled."""
    replicas: int = REPLICAS
    page: bool = False
    """Whether the page about workloads is served."""
    schedule: str = SCHEDULE
    """When `engine sync` runs, in the format of cron."""
    timeout: str = TIMEOUT
    """After how long `engine sync` ends although pods are not ready; shorter than the schedule."""
    network_policy: bool = False
    service_monitor: bool = False

    @property
    def serves_webhooks(self) -> bool:
        """Whether webhook configurations are installed."""
        return self.mode is Mode.DEPLOYMENT and self.admission is AdmissionMode.WEBHOOKS

    @property
    def makes_certificate(self) -> bool:
        """Whether the engine makes the certificate of its webhooks itself, and keeps it in a Secret."""
        return self.serves_webhooks and self.section("server", "webhooks").get("certProvisionMode") != "manual"

    @property
    def protects(self) -> bool:
        """Whether only the engine and exempt users may change managed objects."""
        return bool(self.section("authorizer").get("enabled"))

    @property
    def elects(self) -> bool:
        """Whether the engine writes only while it holds a Lease, so that several replicas have one writer."""
        return bool(self.section("leaderElection").get("enabled", True))

    @property
    def shards(self) -> int:
        """The number of parts into which the namespaces of the cluster are divided, each with a leader of its own."""
        return int(self.section("leaderElection").get("shards") or 1)

    @property
    def graphs(self) -> bool:
        """Whether the engine manages DynamoGraphDeployments."""
        return self.section("dynamo").get("enabled") is not False

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The only namespaces whose workloads the engine manages; none: all."""
        return tuple(self.configuration.get("namespaces") or ())

    @property
    def user(self) -> str:
        """The user name of the engine's ServiceAccount."""
        return f"system:serviceaccount:{self.namespace}:{NAME}"

    def section(self, *path: str) -> Mapping[str, Any]:
        """A section of the configuration; empty if it is not there."""
        section = mapping(self.configuration)
        for key in path:
            section = mapping(section.get(key))
        return section

    def port(self, endpoint: str) -> int:
        """The port of `webhooks`, `healthProbes` or `metrics`; 0 if it is not served."""
        return int(self.section("server", endpoint).get("port") or 0)


def metadata(name: str, namespace: str = "", component: str = "") -> dict[str, Any]:
    """Metadata with the labels of an installation. Without a namespace: of an object of the whole cluster."""
    own = LABELS | ({labels.COMPONENT: component} if component else {})
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": own}
