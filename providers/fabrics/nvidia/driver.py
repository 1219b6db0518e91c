"""Driver: finds the parts of the DRA driver in a cluster, and words what to do about it.

The driver's chart puts the label that names the component (`COMPONENT_LABELS`) on the pods only; its Deployment and its DaemonSet have the
name of the chart.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from engine.observed import Live
from engine.paths import get
from engine.resource import Body
from providers.fabrics.nvidia.names import COMPONENT_LABELS, GPU_LABEL
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.ports.checks import Query

CONTROLLER_PROGRAM: Final = "compute-domain-controller"
"""The program that the controller runs, whatever its labels are."""
CHART: Final = "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu"
"""The chart of release 0.4 and later; older releases are in NVIDIA's own registry."""
APPLY_CRDS: Final = f"helm show crds {CHART} | kubectl apply --server-side -f -"
NEW_NAME: Final = "dra-driver-nvidia-gpu"
OLD_NAME: Final = "nvidia-dra-driver-gpu"
"""The name of the chart since release 0.4, and before."""
CHART_LABEL: Final = "app.kubernetes.io/name"
"""The label of the chart's objects with its name."""
OF_CHART: Final = f"{CHART_LABEL} in ({NEW_NAME},{OLD_NAME})"
"""Selects the objects of the chart."""

ONE_WAY: Final = "There is no way back from 0.4 or later to 25.x: older releases cannot read what prepared claims have left on the nodes"

CONTROLLERS: Final = (
    Query(kinds.DEPLOYMENT, labels=OF_CHART),
    *(Query(kinds.DEPLOYMENT, labels=f"{key}=controller") for key in COMPONENT_LABELS),
)
PLUGINS: Final = Query(kinds.DAEMON_SET, labels=OF_CHART)
"""The queries for the Deployment of the controller and for the DaemonSet of the kubelet plugin."""


def controllers(deployments: Iterable[Live]) -> list[Live]:
    """The Deployments among these that are the driver's controller: by a label of theirs or of their pods, or by the program."""
    return [live for live in deployments if "controller" in _components(live) or CONTROLLER_PROGRAM in _programs(live.body)]


def plugins(daemon_sets: Iterable[Live]) -> list[Live]:
    """The DaemonSets among these that are the driver's kubelet plugin."""
    return [live for live in daemon_sets if "kubelet-plugin" in _components(live)]


def _components(live: Live) -> set[Any]:
    """The components of the driver that the labels of an object or of its pods name."""
    of_pods = mapping(get(live.body, ("spec", "template", "metadata", "labels")))
    return {labels.get(key) for labels in (live.labels, of_pods) for key in COMPONENT_LABELS if isinstance(labels.get(key), str)}


def _programs(deployment: Body) -> Iterator[Any]:
    """The first word of the command of every container."""
    for container in mappings(get(deployment, ("spec", "template", "spec", "containers"), ())):
        command = container.get("command")
        yield from command[:1] if isinstance(command, list | tuple) else ()


class ImexMode(StrEnum):
    """Which program runs the IMEX daemons of nodes: the value of `resources.computeDomains.imex.mode` in the driver's chart."""

    DRIVER = "driverManaged"
    HOST = "hostManaged"


def setting(deployment: Body, flag: str, variable: str) -> str:
    """The value that the controller is given by a flag, else by an environment variable; empty if by neither."""
    for container in mappings(get(deployment, ("spec", "template", "spec", "containers"), ())):
        words = [str(word) for field in ("command", "args") for word in container.get(field) or ()]
        for index, word in enumerate(words):
            name, _, value = word.partition("=")
            if name == f"--{flag}":
                return value or "".join(words[index + 1 : index + 2])
        for entry in mappings(container.get("env")):
            if entry.get("name") == variable and entry.get("value"):
                return str(entry["value"])
    return ""


def imex_mode(deployments: Iterable[Live]) -> ImexMode | None:
    """The mode of the driver with this controller; None if there is no controller. Without a setting the driver runs IMEX."""
    modes = [setting(live.body, "imex-mode", "IMEX_MODE") for live in deployments]
    return (ImexMode.HOST if ImexMode.HOST in modes else ImexMode.DRIVER) if modes else None


def tracks_cliques(deployments: Iterable[Live]) -> bool:
    """Whether the controller of a driver since 25.12 keeps the daemons of domains in ComputeDomainCliques: unless a gate says otherwise."""
    gates = ",".join(setting(live.body, "feature-gates", "FEATURE_GATES") for live in deployments)
    return "ComputeDomainCliques=false" not in gates.replace(" ", "")


def in_namespace(noun: str, namespace: str) -> str:
    """A part of the driver in words, with the driver's namespace if that is not empty: `DRA driver (namespace nvidia)`."""
    return f"{noun} (namespace {namespace})" if namespace else noun


def check_controller(namespace: str) -> str:
    """The advice to check the controller; `namespace` is the driver's, or empty if it is not known."""
    where = f"kubectl -n {namespace} get deployments,pods" if namespace else "engine preflight"
    return f"check that the controller of the DRA driver runs: {where}"


def check_plugin(namespace: str) -> str:
    """The advice to check the kubelet plugin; `namespace` is the driver's, or empty if it is not known."""
    how = f": kubectl -n {namespace} get daemonsets,pods -o wide" if namespace else "; engine preflight finds its namespace"
    return f"check that the kubelet plugin of the DRA driver runs on the nodes with GPUs{how}"


class Installed(Struct, frozen=True):
    """Where the driver is installed, as far as its objects say. All fields are empty if none was found."""

    namespace: str = ""
    release: str = ""
    """The name of the Helm release."""
    old_name: bool = False
    """Whether its objects have the name of the chart before release 0.4. An upgrade has to keep it, or it installs the driver twice."""

    @property
    def upgrade_command(self) -> str:
        """The command that upgrades the chart or changes its values."""
        keep = f" --set nameOverride={OLD_NAME}" if self.old_name else ""
        return f"helm -n {self.namespace or 'NAMESPACE'} upgrade {self.release or 'RELEASE'} {CHART} --reuse-values{keep}"


def installed(parts: Iterable[Live]) -> Installed:
    """Where the driver is installed, given its Deployments and DaemonSets."""
    live = next(iter(parts), None)
    if live is None:
        return Installed()
    old_name = live.labels.get(CHART_LABEL) == OLD_NAME or f"{OLD_NAME}-component" in live.labels
    return Installed(live.id.namespace, live.labels.get("app.kubernetes.io/instance", ""), old_name)


def install(driver: Installed, *, auto: bool) -> str:
    """What to do where a part of the driver is missing. `auto` says whether automatic domains, which need it, are enabled."""
    if driver.namespace:
        return (
            f"the DRA driver in namespace {driver.namespace} lacks it: {driver.upgrade_command} --set resources.computeDomains.enabled=true"
        )
    command = f"helm install dra-driver-nvidia-gpu {CHART} -n dra-driver-nvidia-gpu --create-namespace --set resources.gpus.enabled=false"
    disable = "; or set network.autoMNNVLEnabled: false in the operator configuration" if auto else ""
    return f"install the NVIDIA DRA driver: {command}{disable}"


def install_crds(driver: Installed, *, auto: bool) -> str:
    """What to do where the driver's CRDs are missing. Helm installs them only together with the chart."""
    if driver.namespace:
        return f"the DRA driver in namespace {driver.namespace} lacks it: {APPLY_CRDS}"
    return install(driver, auto=auto)


def upgrade(driver: Installed) -> str:
    """What to do where the driver is too old. Helm does not upgrade CRDs."""
    part = in_namespace("DRA driver", driver.namespace)
    return f"upgrade the {part}, its CRDs first: {APPLY_CRDS}, then {driver.upgrade_command}. {ONE_WAY}"


def publish_channels(plugin: Live | None, driver: Installed, *, auto: bool) -> str:
    """What to do where no node has a channel. The kubelet plugin publishes them; `plugin` is its DaemonSet, if there is one."""
    if plugin is None:
        return install(driver, auto=auto)
    namespace, name = plugin.id.namespace, plugin.id.name
    if not get(plugin.body, ("status", "desiredNumberScheduled"), 0):
        label = f"kubectl label node NODE {GPU_LABEL}=true"
        runs_nowhere = f"DaemonSet {namespace}/{name} of the kubelet plugin runs on no node"
        return f"{runs_nowhere}. Install the GPU Operator, or label the nodes with GPUs: {label}"
    command = f"kubectl -n {namespace} logs daemonset/{name} -c compute-domains"
    return f"find out why the kubelet plugin, DaemonSet {namespace}/{name}, publishes none: {command}"
