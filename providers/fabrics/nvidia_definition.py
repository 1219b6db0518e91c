"""Definition: what the CustomResourceDefinition of ComputeDomains says, and with it which driver is there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.paths import get
from engine.resource import Body
from providers.fabrics.nvidia_words import COMPUTE_DOMAIN

CHANNEL: Final = ("properties", "spec", "properties", "channel", "properties")
TEMPLATE_NAME: Final = (*CHANNEL, "resourceClaimTemplate", "properties", "name")


@dataclass(frozen=True, slots=True)
class Definition:
    """The CRD, read."""

    established: bool
    served: tuple[str, ...]
    """The versions that it serves."""
    has_template_name: bool
    """Whether `spec.channel.resourceClaimTemplate.name` exists in our version."""
    number_required: bool
    number_default: Any
    has_mode: bool
    """Whether a domain can say how many channels its pods get."""

    @property
    def generation(self) -> str:
        """The driver that brings such a definition."""
        if not self.has_mode:
            return "25.3"
        return "25.8 to 25.12" if self.number_required else "0.4 or later"

    @property
    def told(self) -> str:
        """What of it differs between drivers."""
        default = "" if self.number_default is None else f", default {self.number_default}"
        number = "required" if self.number_required else f"optional{default}"
        return f"numNodes {number}; allocationMode {'known' if self.has_mode else 'unknown'}: driver {self.generation}"


def definition(crd: Body) -> Definition:
    """What a CRD says, whatever is in it."""
    versions = [one for one in _listed(get(crd, ("spec", "versions"))) if one.get("served") is True]
    ours = next((one for one in versions if one.get("name") == COMPUTE_DOMAIN.version), {})
    schema = get(ours, ("schema", "openAPIV3Schema"), {})
    spec = get(schema, ("properties", "spec"), {})
    required = get(spec, ("required",), ())
    return Definition(
        any(one.get("type") == "Established" and one.get("status") == "True" for one in _listed(get(crd, ("status", "conditions")))),
        tuple(str(one.get("name")) for one in versions),
        get(schema, TEMPLATE_NAME) is not None,
        isinstance(required, list | tuple) and "numNodes" in required,
        get(spec, ("properties", "numNodes", "default")),
        get(schema, (*CHANNEL, "allocationMode")) is not None,
    )


def _listed(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []
