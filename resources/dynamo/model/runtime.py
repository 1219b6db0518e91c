"""Runtime: which version of Dynamo the image of a service has, as its tag or the service itself says."""

import re
from typing import Final

from msgspec import Struct

from engine.resource import Body
from resources.dynamo.model.framework import WORKERS
from resources.dynamo.model.graph import GraphService, InferenceGraph

Version = tuple[int, int, int]
"""Major, minor, patch. What follows a version, for example `-cuda13` in a tag, does not count."""
NEWEST: Final[Version] = (10**9, 0, 0)
"""Stands for an unknown version: the newest rules apply."""
MUST_BE_SEMVER: Final = "must be valid semver"

_NUMBER = r"(0|[1-9][0-9]{0,8})"
_SEMVER = re.compile(rf"v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:[-+.][0-9A-Za-z.+_-]*)?", re.ASCII)
_OFFICIAL = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*-runtime", re.ASCII)


class ImageName(Struct, frozen=True):
    """An image as it is named."""

    name: str
    """The last part of its path."""
    tag: str
    """Empty without one."""

    @property
    def is_official(self) -> bool:
        """Whether it is named as Dynamo's own images are, e.g. `vllm-runtime`, in whatever registry."""
        return _OFFICIAL.fullmatch(self.name) is not None


class Runtime(Struct, frozen=True):
    """The version of Dynamo that a service runs."""

    image: ImageName
    version: Version | None
    """`NEWEST` where it should be known and is not; None for an image of the user's own without a version."""

    @property
    def is_assumed(self) -> bool:
        """Whether nothing says the version, and the newest one is assumed."""
        return self.version == NEWEST

    def is_at_least(self, *version: int) -> bool:
        """Whether it is that version or a later one; False if nothing is known."""
        return self.version is not None and self.version >= version


def version_of(text: str) -> Version | None:
    """The version in a text that consists of one; None for anything else."""
    match = _SEMVER.fullmatch(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def image_of(container: Body) -> ImageName:
    """The image of a container."""
    last = str(container.get("image") or "").partition("@")[0].rpartition("/")[2]
    name, _, tag = last.partition(":")
    return ImageName(name, tag)


def runtime_of(graph: InferenceGraph, service: GraphService) -> Runtime:
    """The runtime of a service: its `runtimeVersionOverride`, else the tag of its image.

    Dynamo's own images, and all images of a graph that was first written as v1beta1, have a version: it is the newest where the tag is
    none. A graph that is rewritten in the other version keeps its runtime, and with it its pods.
    """
    image = image_of(service.main_container)
    version = version_of(service.spec.runtime_version_override or image.tag)
    must_have = image.is_official or graph.began_as_v1beta1
    return Runtime(image, NEWEST if version is None and must_have else version)


def depends_on_its_version(graph: InferenceGraph) -> bool:
    """Whether the runtime of a worker depends on the version in which the graph was first written: from the third form of pods on."""
    workers = (service for service in graph.services if service.component_type in WORKERS) if graph.knows_ranks else ()
    return any(
        not image_of(service.main_container).is_official and runtime_of(graph, service).version in (None, NEWEST) for service in workers
    )
