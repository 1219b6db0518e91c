"""Nodes: registers simulated nodes, in racks, and keeps them Ready."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from grove_sandbox.actors.addresses import node_address
from grove_sandbox.actors.body import Body, conditions_of, labels_of, status_of, timestamp
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.store import InformerStore
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.product import AlreadyExists, Client, Clock, conditions, kinds, nvidia

SIMULATED: Final = "sandbox.grove.io/simulated"
"""The label of nodes that have a simulated kubelet. Users can set it on nodes that they create."""
NOT_READY: Final = "node.kubernetes.io/not-ready"

CLUSTER: Final = "5a4d8b1e-0c3f-4e57-9b62-7f1d2c3a4e50"
"""The uuid of the NVLink fabric of all simulated nodes; each rack is a clique of its own."""

_NODE_INFO: Final = {
    "architecture": "amd64",
    "containerRuntimeVersion": "simulated://1",
    "kubeletVersion": "v0.0.0-simulated",
    "operatingSystem": "linux",
    "osImage": "simulated",
}


def is_simulated(node: Body | None) -> bool:
    """Whether the node exists and has a simulated kubelet."""
    return node is not None and labels_of(node).get(SIMULATED) == "true"


def node_names(options: ActorOptions) -> list[str]:
    """The names of the nodes to register."""
    return [f"node-{number:04d}" for number in range(options.nodes)]


async def keep_ready(client: Client, clock: Clock, options: ActorOptions, nodes: InformerStore, queue: WorkQueue[str]) -> None:
    """Register the nodes, once, and keep every simulated node Ready until cancelled.

    A node that is deleted stays deleted until the next start; one that exists before is not changed.
    """
    unregistered = {name: number for number, name in enumerate(node_names(options))}

    async def process(name: str) -> float | None:
        if name in unregistered:
            if nodes.get("", name) is None:
                with suppress(AlreadyExists):
                    await client.create(kinds.NODE, "", _node(name, unregistered[name], options))
            del unregistered[name]
        node = nodes.get("", name)
        if node is None or not is_simulated(node):
            return None
        await _make_ready(client, clock, options, nodes, node)
        if options.heartbeat:
            await _renew_lease(client, clock, options, name)
        return options.heartbeat or None

    for name in unregistered:
        queue.add(name)
    await queue.run(process, workers=2)


async def _make_ready(client: Client, clock: Clock, options: ActorOptions, nodes: InformerStore, node: Body) -> None:
    live, name = status_of(node), node["metadata"]["name"]
    if not conditions.is_true(conditions_of(node), "Ready"):
        status = {field: value for field, value in _status(name, options).items() if not live.get(field)}
        status |= {"nodeInfo": _NODE_INFO, "conditions": [_ready(timestamp(clock.now()))]}
        nodes.assume(await client.patch(kinds.NODE, "", name, {"status": status}, how="strategic", subresource="status"))
    taints = (node.get("spec") or {}).get("taints") or ()
    # Admission taints every new node, and there may be no node controller that removes the taint.
    if any(taint["key"] == NOT_READY for taint in taints):
        others = [taint for taint in taints if taint["key"] != NOT_READY]
        await nodes.patch(client, nodes.objects["", name], {"spec": {"taints": others or None}})


async def _renew_lease(client: Client, clock: Clock, options: ActorOptions, name: str) -> None:
    now = clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": name, "leaseDurationSeconds": int(options.heartbeat * 4) or 1, "renewTime": now}
    lease = {"apiVersion": kinds.LEASE.api_version, "kind": kinds.LEASE.name, "metadata": {"name": name}, "spec": spec}
    try:
        await client.create(kinds.LEASE, "kube-node-lease", lease)
    except AlreadyExists:
        await client.patch(kinds.LEASE, "kube-node-lease", name, {"spec": spec})


def _node(name: str, number: int, options: ActorOptions) -> Body:
    rack = number // options.nodes_per_rack
    labels = {
        SIMULATED: "true",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        nvidia.NVLINK_CLIQUE_LABEL: f"{CLUSTER}.{rack}",
        "topology.kubernetes.io/rack": f"rack-{rack}",
        "topology.kubernetes.io/zone": f"zone-{rack // options.racks_per_zone}",
    }
    return {"apiVersion": kinds.NODE.api_version, "kind": kinds.NODE.name, "metadata": {"name": name, "labels": labels}}


def _status(name: str, options: ActorOptions) -> Mapping[str, Any]:
    digits = "".join(filter(str.isdecimal, name))[-5:]
    return {
        "capacity": dict(options.capacity),
        "allocatable": dict(options.capacity),
        "addresses": [{"type": "InternalIP", "address": node_address(int(digits or 0))}, {"type": "Hostname", "address": name}],
    }


def _ready(now: str) -> Mapping[str, Any]:
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated kubelet is ready", **times}
