"""Inspection: what the checks of an installation judge: the queries, their results, and the domains that sets request."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from engine.observed import Live
from engine.paths import get
from engine.resource import Body
from providers.fabrics.nvidia import domain_facts, names
from providers.fabrics.nvidia.driver import (
    PLUGINS,
    Installed,
    controllers,
    install,
    installed,
    plugins,
)
from resources.base import kinds
from resources.base.fields import mappings
from resources.domains.capacity import NodeCapacity
from resources.domains.requests import RequestedDomain
from resources.ports.checks import Installation, Query, QueryResult, Severity


class ComputeDomainCrd(Struct, frozen=True):
    """The parts of the CRD that differ between releases of the driver."""

    established: bool
    """Whether its condition Established is True."""
    served: tuple[str, ...]
    """The versions that it serves."""
    has_template_name: bool
    """Whether our version has the field `spec.channel.resourceClaimTemplate.name`."""
    has_num_nodes: bool
    """Whether a domain has `spec.numNodes`: it has none in v1beta2."""
    num_nodes_required: bool
    """Whether `spec.numNodes` is required."""
    num_nodes_default: Any
    """The default of `spec.numNodes`; None if it has none."""
    has_allocation_mode: bool
    """Whether a domain can say how many channels its pods get."""

    @property
    def driver(self) -> str:
        """The releases of the driver that install such a CRD, for messages."""
        if not self.has_allocation_mode:
            return "25.3"
        if not self.has_num_nodes:
            return "later than 0.5"
        return "25.8 to 25.12" if self.num_nodes_required else "0.4 or later"

    @property
    def summary(self) -> str:
        """The differences in one line."""
        if not self.has_num_nodes:
            return f"no numNodes; allocationMode {'known' if self.has_allocation_mode else 'unknown'}: driver {self.driver}"
        default = "" if self.num_nodes_default is None else f", default {self.num_nodes_default}"
        number = "required" if self.num_nodes_required else f"optional{default}"
        return f"numNodes {number}; allocationMode {'known' if self.has_allocation_mode else 'unknown'}: driver {self.driver}"


CRD: Final = Query(kinds.CRD, name=f"{names.COMPUTE_DOMAIN.plural}.{names.COMPUTE_DOMAIN.group}")
CLIQUES_CRD: Final = Query(kinds.CRD, name=f"{names.COMPUTE_DOMAIN_CLIQUE.plural}.{names.COMPUTE_DOMAIN_CLIQUE.group}")
CLIQUES: Final = Query(names.COMPUTE_DOMAIN_CLIQUE, labels=names.DOMAIN_LABEL)
CLASS: Final = Query(kinds.DEVICE_CLASS, name=names.CHANNEL_CLASS, versions=kinds.OLDER_RESOURCE_VERSIONS)
SLICES: Final = Query(kinds.RESOURCE_SLICE, fields=f"spec.driver={names.DRIVER}", versions=kinds.OLDER_RESOURCE_VERSIONS)
DEPLOYMENTS: Final = Query(kinds.DEPLOYMENT)
DOMAINS: Final = Query(names.COMPUTE_DOMAIN, versions=names.COMPUTE_DOMAIN.newer)
TEMPLATES: Final = Query(kinds.RESOURCE_CLAIM_TEMPLATE, versions=kinds.OLDER_RESOURCE_VERSIONS)
CLAIMS: Final = Query(kinds.RESOURCE_CLAIM, versions=kinds.OLDER_RESOURCE_VERSIONS)
SCALING_GROUPS: Final = Query(kinds.SCALING_GROUP)
DOMAIN_NODES: Final = Query(kinds.NODE, labels=names.DOMAIN_LABEL)
NVLINK_NODES: Final = Query(kinds.NODE, labels=names.NVLINK_CLIQUE_LABEL)
QUERIES: Final = (
    CRD,
    CLIQUES_CRD,
    CLIQUES,
    CLASS,
    SLICES,
    DEPLOYMENTS,
    DOMAINS,
    TEMPLATES,
    CLAIMS,
    SCALING_GROUPS,
    DOMAIN_NODES,
    NVLINK_NODES,
    PLUGINS,
)


@dataclass(frozen=True)
class Inspection:
    """What the checks judge: an installation, and the domains that its sets request."""

    installation: Installation
    auto: bool
    """Whether new sets with GPUs request domains automatically."""
    requested: tuple[RequestedDomain, ...]
    capacity_notes: tuple[str, ...] = ()
    """One line for each set some of whose pods cannot get a node, with the reason."""
    island_notes: tuple[str, ...] = ()
    """One line for each set with domains that cannot be in one NVLink clique, with the reason."""

    def result(self, query: Query) -> QueryResult:
        """The result of one of `QUERIES`."""
        return self.installation.results.of(query)

    @cached_property
    def needed(self) -> bool:
        """Whether sets request domains, get them automatically, or can request them because the kind is served."""
        return (
            self.auto
            or bool(self.requested)
            or any(map(self.installation.apis.serves, (names.COMPUTE_DOMAIN, *kinds.newer(names.COMPUTE_DOMAIN))))
        )

    @property
    def required(self) -> Severity:
        """The level of requirements without which no domain works."""
        return Severity.HARD if self.auto else self.recommended

    @property
    def recommended(self) -> Severity:
        """The level of the other requirements."""
        return Severity.WARNING if self.needed else Severity.INFO

    @cached_property
    def crd(self) -> ComputeDomainCrd | None:
        """The CRD of ComputeDomains; None if it could not be read."""
        objects = self.result(CRD).objects
        return read_crd(objects[0].body) if objects else None

    @cached_property
    def controllers(self) -> list[Live]:
        """The Deployments of the driver's controller."""
        return controllers(self.result(DEPLOYMENTS).objects)

    @cached_property
    def plugins(self) -> list[Live]:
        """The DaemonSets of the driver's kubelet plugin."""
        return plugins(self.result(PLUGINS).objects)

    @cached_property
    def driver(self) -> Installed:
        """Where the driver is installed, according to its controller or its kubelet plugin."""
        return installed((*self.controllers, *self.plugins))

    @property
    def install(self) -> str:
        """What to do where a part of the driver is missing."""
        return install(self.driver, auto=self.auto)


def capacity(installation: Installation) -> NodeCapacity | None:
    """The nodes that can run pods of domains; None if ResourceSlices or ResourceClaims could not be read."""
    slices, claims = installation.results.of(SLICES), installation.results.of(CLAIMS)
    if not slices.known or not slices.served or not claims.known:
        return None
    taken = {node: domain_facts.domain_uid(claim) for node, claim in domain_facts.allocations(claims.objects)}
    nodes = installation.results.of(NVLINK_NODES)
    cliques = (
        {live.id.name: clique for live in nodes.objects if (clique := live.labels.get(names.NVLINK_CLIQUE_LABEL))} if nodes.known else None
    )
    return NodeCapacity(domain_facts.eligible_nodes(slices.objects), taken, cliques)


CHANNEL_SCHEMA: Final = ("properties", "spec", "properties", "channel", "properties")
TEMPLATE_NAME: Final = (*CHANNEL_SCHEMA, "resourceClaimTemplate", "properties", "name")


def read_crd(crd: Body) -> ComputeDomainCrd:
    """What the body of a CRD says. Fields of the wrong type count as absent."""
    versions = [version for version in mappings(get(crd, ("spec", "versions"))) if version.get("served") is True]
    by_name = {version.get("name"): version for version in versions}
    ours = next((by_name[name] for name in (names.COMPUTE_DOMAIN.version, *names.COMPUTE_DOMAIN.newer) if name in by_name), {})
    schema = get(ours, ("schema", "openAPIV3Schema"), {})
    spec = get(schema, ("properties", "spec"), {})
    required = get(spec, ("required",), ())
    conditions = mappings(get(crd, ("status", "conditions")))
    return ComputeDomainCrd(
        any(condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions),
        tuple(str(version.get("name")) for version in versions),
        get(schema, TEMPLATE_NAME) is not None,
        get(spec, ("properties", "numNodes")) is not None,
        isinstance(required, list | tuple) and "numNodes" in required,
        get(spec, ("properties", "numNodes", "default")),
        get(schema, (*CHANNEL_SCHEMA, "allocationMode")) is not None,
    )
