"""CRD: what the CustomResourceDefinition of ComputeDomains says about the installed driver."""

from typing import Any, Final

from msgspec import Struct

from engine.paths import get
from engine.resource import Body
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base.fields import mappings

CHANNEL_SCHEMA: Final = ("properties", "spec", "properties", "channel", "properties")
TEMPLATE_NAME: Final = (*CHANNEL_SCHEMA, "resourceClaimTemplate", "properties", "name")


class ComputeDomainCrd(Struct, frozen=True):
    """The parts of the CRD that differ between releases of the driver."""

    established: bool
    """Whether its condition Established is True."""
    served: tuple[str, ...]
    """The versions that it serves."""
    has_template_name: bool
    """Whether our version has the field `spec.channel.resourceClaimTemplate.name`."""
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
        return "25.8 to 25.12" if self.num_nodes_required else "0.4 or later"

    @property
    def summary(self) -> str:
        """The differences in one line."""
        default = "" if self.num_nodes_default is None else f", default {self.num_nodes_default}"
        number = "required" if self.num_nodes_required else f"optional{default}"
        return f"numNodes {number}; allocationMode {'known' if self.has_allocation_mode else 'unknown'}: driver {self.driver}"


def read_crd(crd: Body) -> ComputeDomainCrd:
    """What the body of a CRD says. Fields of the wrong type count as absent."""
    versions = [version for version in mappings(get(crd, ("spec", "versions"))) if version.get("served") is True]
    ours = next((version for version in versions if version.get("name") == COMPUTE_DOMAIN.version), {})
    schema = get(ours, ("schema", "openAPIV3Schema"), {})
    spec = get(schema, ("properties", "spec"), {})
    required = get(spec, ("required",), ())
    conditions = mappings(get(crd, ("status", "conditions")))
    return ComputeDomainCrd(
        any(condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions),
        tuple(str(version.get("name")) for version in versions),
        get(schema, TEMPLATE_NAME) is not None,
        isinstance(required, list | tuple) and "numNodes" in required,
        get(spec, ("properties", "numNodes", "default")),
        get(schema, (*CHANNEL_SCHEMA, "allocationMode")) is not None,
    )
