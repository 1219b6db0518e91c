"""Facts that objects state about ComputeDomains, and about channels: the device that a pod in a domain gets. A node has one."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from engine.observed import Live
from engine.paths import get
from engine.resource import Body
from providers.fabrics.nvidia.names import CHANNEL, CHANNEL_CLASS, DAEMON_CONFIG, DRIVER
from resources.base.fields import mapping, mappings
from resources.ports.checks import JoinedNode

MAX_REMEMBERED: Final = 8192
"""Domains of which the name of the template is remembered, and claims of which the domain is."""


def joined_nodes(domain: Live) -> tuple[JoinedNode, ...]:
    """The nodes that have joined a domain, according to its status. Of a node that is listed several times, the last entry counts."""
    nodes = {str(node.get("name")): node for node in mappings(get(domain.body, ("status", "nodes"), ()))}
    return tuple(JoinedNode(name, str(node.get("cliqueID") or ""), node.get("status") == "Ready") for name, node in nodes.items())


def is_ready_without_nodes(domain: Live) -> bool:
    """Whether a domain of a driver later than 25.3 is Ready although no node has joined it."""
    channel = get(domain.body, ("spec", "channel"), {})
    return get(domain.body, ("status", "status")) == "Ready" and not joined_nodes(domain) and "allocationMode" in mapping(channel)


def template_name(domain: Live | None, name: str) -> str:
    """The name of the ResourceClaimTemplate that pods of a domain claim; the domain's own name `name` if its spec has none."""
    return (_specified_template(domain) if domain is not None else "") or name


@lru_cache(maxsize=MAX_REMEMBERED)
def _specified_template(domain: Live) -> str:
    """The name of the template in a domain's spec; empty if it has none. Cached because it is asked of all domains in every pass."""
    template = get(domain.body, ("spec", "channel", "resourceClaimTemplate", "name"), "")
    return template if isinstance(template, str) else ""


def eligible_nodes(slices: Iterable[Live]) -> frozenset[str]:
    """The names of the nodes that have a channel, according to these ResourceSlices."""
    return frozenset(node for live in slices if (node := _node(live.body)))


def _node(resource_slice: Body) -> str:
    """The node whose channel a ResourceSlice publishes; empty if it publishes none."""
    spec = mapping(resource_slice.get("spec"))
    if spec.get("driver") != DRIVER or not any(device.get("name") == CHANNEL for device in mappings(spec.get("devices"))):
        return ""
    return str(spec.get("nodeName") or get(spec, ("pool", "name"), ""))


def allocated_node(claim: Live) -> str:
    """The name of the node whose channel is allocated to a claim; empty if none is. The driver names its pools after the nodes."""
    results = mappings(get(claim.body, ("status", "allocation", "devices", "results"), ()))
    allocated = (result for result in results if result.get("driver") == DRIVER and result.get("device") == CHANNEL)
    return next((str(result.get("pool")) for result in allocated), "")


def allocations(claims: Iterable[Live]) -> Iterator[tuple[str, Live]]:
    """Each node whose channel is allocated, with the claim that uses it."""
    return ((node, claim) for claim in claims if (node := allocated_node(claim)))


@lru_cache(maxsize=MAX_REMEMBERED)
def domain_uid(claim: Live) -> str:
    """The uid of the domain that a pod's claim gives access to; empty for other claims, those of the driver's own daemons included.

    Cached because it is asked of all claims whenever one has changed.
    """
    for config in mappings(get(claim.body, ("spec", "devices", "config"), ())):
        opaque = mapping(config.get("opaque"))
        parameters = mapping(opaque.get("parameters"))
        if opaque.get("driver") == DRIVER and parameters.get("kind") != DAEMON_CONFIG:
            return str(parameters.get("domainID") or "")
    return ""


def claimed_channels(spec: Body) -> int:
    """The number of channels that a ResourceClaim with this spec takes; of alternative requests, the one that takes the fewest counts."""
    return sum(_requested_channels(request) for request in mappings(get(spec, ("devices", "requests"), ())))


def _requested_channels(request: Body) -> int:
    alternatives = mappings(request.get("firstAvailable"))
    if alternatives:
        return min(map(_requested_channels, alternatives))
    # Up to v1beta1 of the API the fields are those of the request itself.
    exactly = mapping(request.get("exactly")) or request
    if exactly.get("deviceClassName") != CHANNEL_CLASS or exactly.get("adminAccess") is True:
        return 0
    count = exactly.get("count")
    return count if isinstance(count, int) and count > 1 else 1
