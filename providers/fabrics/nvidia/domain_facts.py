"""Facts about one ComputeDomain that its body states."""

from functools import lru_cache
from typing import Final

from engine.observed import Live
from engine.paths import get
from resources.base.fields import mapping, mappings
from resources.ports.checks import JoinedNode

MAX_REMEMBERED: Final = 8192
"""Domains of which the name of the template is remembered."""


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
