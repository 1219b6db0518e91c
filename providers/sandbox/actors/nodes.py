"""Nodes: the simulated ones, racks of them, registered and kept Ready."""

from collections.abc import Mapping
from typing import Any, Final

from engine import conditions
from engine.errors import AlreadyExists
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.addresses import node_address
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, conditions_of, labels_of, status_of
from providers.sandbox.actors.moments import written
from providers.sandbox.actors.reflector import Reflection
from providers.sandbox.actors.settings import Settings
from providers.sandbox.installation.kinds import FABRIC
from resources.base.kinds import LEASE, NODE

SIMULATED: Final = "sandbox.grove.io/simulated"
"""A node with this label, whoever made it, has a simulated kubelet: its pods are brought to life by us, and by nobody else."""
NOT_READY: Final = "node.kubernetes.io/not-ready"

CLUSTER: Final = "5a4d8b1e-0c3f-4e57-9b62-7f1d2c3a4e50"
"""The NVLink fabric that all simulated nodes are in, each rack a clique of its own."""

_INFO: Final = {
    "architecture": "amd64",
    "containerRuntimeVersion": "simulated://1",
    "kubeletVersion": "v0.0.0-simulated",
    "operatingSystem": "linux",
    "osImage": "simulated",
}


def is_simulated(node: Body | None) -> bool:
    """Whether the node is there and ours to play."""
    return node is not None and labels_of(node).get(SIMULATED) == "true"


def node_names(settings: Settings) -> list[str]:
    """The nodes that the settings ask for."""
    return [f"node-{number:04d}" for number in range(settings.nodes)]


async def keep_ready(client: Client, clock: Clock, settings: Settings, nodes: Reflection, agenda: Agenda[str]) -> None:
    """Register the nodes that the settings ask for, once; make every simulated node Ready whenever it is not, for ever.

    A node that somebody deletes stays deleted until the next start; one that was there before stays as it is.
    """
    unregistered = {name: number for number, name in enumerate(node_names(settings))}

    async def look(name: str) -> float | None:
        if name in unregistered:
            await _register(client, _node(name, unregistered[name], settings))
            del unregistered[name]
        node = nodes.get("", name)
        if node is None or not is_simulated(node):
            return None
        await _make_ready(client, clock, settings, nodes, node)
        if settings.heartbeat:
            await _renew(client, clock, settings, name)
        return settings.heartbeat or None

    for name in unregistered:
        agenda.add(name)
    await agenda.work(look, workers=2)


async def _register(client: Client, node: Body) -> None:
    try:
        await client.create(NODE, "", node)
    except AlreadyExists:
        return


async def _make_ready(client: Client, clock: Clock, settings: Settings, nodes: Reflection, node: Body) -> None:
    name = node["metadata"]["name"]
    live = status_of(node)
    if not conditions.is_true(conditions_of(node), "Ready"):
        status = {name: value for name, value in _status(node, settings).items() if not live.get(name)}
        status |= {"nodeInfo": _INFO, "conditions": [_ready(written(clock.now()))]}
        nodes.assume(await client.patch(NODE, "", name, {"status": status}, how="strategic", subresource="status"))
    taints = (node.get("spec") or {}).get("taints") or ()
    # Admission taints every new node; nobody else may be there to take that off again.
    if any(taint["key"] == NOT_READY for taint in taints):
        kept = [taint for taint in taints if taint["key"] != NOT_READY]
        revision = {"resourceVersion": nodes.objects["", name]["metadata"]["resourceVersion"]}
        nodes.assume(await client.patch(NODE, "", name, {"metadata": revision, "spec": {"taints": kept or None}}))


async def _renew(client: Client, clock: Clock, settings: Settings, name: str) -> None:
    now = clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": name, "leaseDurationSeconds": int(settings.heartbeat * 4) or 1, "renewTime": now}
    lease = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": {"name": name}, "spec": spec}
    try:
        await client.create(LEASE, "kube-node-lease", lease)
    except AlreadyExists:
        await client.patch(LEASE, "kube-node-lease", name, {"spec": spec})


def _node(name: str, number: int, settings: Settings) -> Body:
    rack = number // settings.nodes_per_rack
    labels = {
        SIMULATED: "true",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        FABRIC: f"{CLUSTER}.{rack}",
        "topology.kubernetes.io/rack": f"rack-{rack}",
        "topology.kubernetes.io/zone": f"zone-{rack // settings.racks_per_zone}",
    }
    return {"apiVersion": NODE.api_version, "kind": NODE.name, "metadata": {"name": name, "labels": labels}}


def _status(node: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    name = node["metadata"]["name"]
    digits = "".join(filter(str.isdecimal, name))[-5:]
    return {
        "capacity": dict(settings.capacity),
        "allocatable": dict(settings.capacity),
        "addresses": [{"type": "InternalIP", "address": node_address(int(digits or 0))}, {"type": "Hostname", "address": name}],
    }


def _ready(now: str) -> dict[str, Any]:
    heard = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated kubelet is ready", **heard}
