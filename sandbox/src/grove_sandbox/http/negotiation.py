"""Negotiation: the form of the answer that an `Accept` header asks for."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from grove_sandbox.types.status import StatusError

Shape = Literal["plain", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]

MEDIA_TYPES = "application/json, application/yaml"
_MEDIA = ("application/json", "application/yaml", "*/*", "application/*")
_SHAPES: dict[tuple[str, str, str], Shape] = {
    ("Table", "meta.k8s.io", "v1"): "Table",
    ("PartialObjectMetadata", "meta.k8s.io", "v1"): "PartialObjectMetadata",
    ("PartialObjectMetadataList", "meta.k8s.io", "v1"): "PartialObjectMetadataList",
    ("", "", ""): "plain",
}


class Form(Struct, frozen=True):
    """The form of an answer: a shape, in JSON or YAML."""

    shape: Shape = "plain"
    yaml: bool = False


@lru_cache(maxsize=256)
def negotiate(accept: str) -> Form:
    """The first form of an `Accept` header that the sandbox can write. Raises 406 when there is none, as for protobuf alone."""
    for media, parameters in _choices(accept):
        shape = _SHAPES.get((parameters.get("as", ""), parameters.get("g", ""), parameters.get("v", "")))
        if media in _MEDIA and shape:
            return Form(shape, yaml=media == "application/yaml")
    raise not_acceptable(f"only the following media types are accepted: {MEDIA_TYPES}")


@lru_cache(maxsize=256)
def wants_aggregated(accept: str) -> bool:
    """Whether a client prefers the aggregated form of discovery to plain JSON."""
    for media, parameters in _choices(accept):
        if (parameters.get("as"), parameters.get("g"), parameters.get("v")) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"):
            return True
        if media == "application/json" and "as" not in parameters:
            return False
    return False


def not_acceptable(message: str) -> StatusError:
    """406: the answer cannot be written in the form that is asked for."""
    return StatusError(406, "NotAcceptable", message)


def _choices(accept: str) -> Iterator[tuple[str, dict[str, str]]]:
    for choice in accept.split(",") if accept.strip() else ("*/*",):
        media, *rest = (part.strip() for part in choice.split(";"))
        pairs = (part.partition("=") for part in rest)
        yield media, {key: value for key, _, value in pairs}
