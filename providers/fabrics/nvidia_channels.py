"""Channels: the one place that a node has for pods of ComputeDomains, who has it, and what that means for what is planned."""

from collections.abc import Iterable, Iterator

from engine.observed import Live
from engine.paths import get
from engine.resource import Body
from providers.fabrics.nvidia_words import CHANNEL, DAEMON_CONFIG, DRIVER
from resources.admission.annotations import mapping, mappings


def places(inventory: Iterable[Live]) -> frozenset[str]:
    """The nodes whose driver offers a channel."""
    return frozenset(node for live in inventory if (node := _node(live.body)))


def _node(body: Body) -> str:
    spec = mapping(body.get("spec"))
    if spec.get("driver") != DRIVER or not any(device.get("name") == CHANNEL for device in mappings(spec.get("devices"))):
        return ""
    return str(spec.get("nodeName") or get(spec, ("pool", "name"), ""))


def taken(claim: Live) -> str:
    """The node whose channel a claim has been given. The pool is called like the node."""
    results = get(claim.body, ("status", "allocation", "devices", "results"), ())
    return next((str(one.get("pool")) for one in mappings(results) if one.get("driver") == DRIVER and one.get("device") == CHANNEL), "")


def holders(claims: Iterable[Live]) -> Iterator[tuple[str, Live]]:
    """Each node whose channel is taken, with the claim that has it."""
    return ((node, claim) for claim in claims if (node := taken(claim)))


def domain_of(claim: Live) -> str:
    """The uid of the domain that a claim leads into: what the driver has put into it; empty if it is none of its claims.

    The claims of the driver's own daemons serve a domain, and are not in it.
    """
    for config in mappings(get(claim.body, ("spec", "devices", "config"), ())):
        opaque = mapping(config.get("opaque"))
        parameters = mapping(opaque.get("parameters"))
        if opaque.get("driver") == DRIVER and parameters.get("kind") != DAEMON_CONFIG:
            return str(parameters.get("domainID") or "")
    return ""
