"""Paths: where a field of a v1alpha1 graph is in the v1beta1 graph that it was read from; for issues and warnings."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from resources.base.fields import mapping, mappings
from resources.base.names import NVIDIA_GPU
from resources.dynamo.model.pod_template import MAIN
from resources.dynamo.versions.api_versions import ALPHA_ONLY
from resources.dynamo.versions.to_beta import ONLY_ALPHA
from resources.schema.issues import Entry

Path = tuple[str | int, ...]
SERVICES: Final = ("spec", "services")
COMPONENTS: Final = ("spec", "components")
POD_SPEC: Final = ("podTemplate", "spec")
METADATA: Final = ("podTemplate", "metadata")
SAVED: Final = ("metadata", "annotations", ALPHA_ONLY)
OF_SERVICE: Final[Mapping[str, Path]] = {
    "componentType": ("type",),
    "subComponentType": ("type",),
    "extraPodMetadata": METADATA,
    "labels": (*METADATA, "labels"),
    "annotations": (*METADATA, "annotations"),
    "sharedMemory": ("sharedMemorySize",),
    "volumeMounts": ("compilationCache",),
    "gpuMemoryService": ("experimental", "gpuMemoryService"),
    "failover": ("experimental", "failover"),
    "checkpoint": ("experimental", "checkpoint"),
}
"""Field of a service -> the path in a component."""
WHOLE: Final = frozenset({"componentType", "subComponentType", "sharedMemory"})
"""The fields of which nothing below has a path of its own."""
OF_MAIN: Final = {"envs": "env", "livenessProbe": "livenessProbe", "readinessProbe": "readinessProbe"}
"""Field of a service -> the field of the container `main`."""
OF_CACHE: Final = {"name": "pvcName", "mountPoint": "mountPath"}
_SAVED_FIELDS: Final = "|".join(ONLY_ALPHA)
_OWN: Final = re.escape(f"{ALPHA_ONLY}: ")
"""What precedes a field of v1alpha1 that is in the annotation of a v1beta1 graph."""
FIELDS: Final = (
    (re.compile(r"\bspec\.services must have at least one service"), "spec.components must have at least one component"),
    (re.compile(r"\.extraPodSpec\.mainContainer\b"), ".podTemplate.spec.containers[main]"),
    (re.compile(r"\.extraPodSpec\b"), ".podTemplate.spec"),
    (re.compile(r"\.resources\.(limits|requests)\.gpu\b"), r".podTemplate.spec.containers[main].resources.\1[nvidia.com/gpu]"),
    (re.compile(r"(?<![.\w\]])resources\.limits\.gpu\b"), "the limit nvidia.com/gpu"),
    (re.compile(r"\.extraPodMetadata\b"), ".podTemplate.metadata"),
    (re.compile(r"\.sharedMemory\.(?:size|disabled)\b"), ".sharedMemorySize"),
    (re.compile(r"\.volumeMounts\[\d+\](?=: volumeMount with useAsCompilationCache)"), ".compilationCache"),
    (re.compile(r"volumeMount with useAsCompilationCache=true requires an explicit mountPoint"), "requires an explicit mountPath"),
    (re.compile(r"\bvolumeMounts and sharedMemory\b"), "compilationCache and sharedMemorySize"),
    (re.compile(rf"(?<!{_OWN})\bspec\.(?:pvcs\b|services\[[^\]]*\]\.(?:{_SAVED_FIELDS})\b)"), rf"{ALPHA_ONLY}: \g<0>"),
    (re.compile(rf"(?<!{_OWN})\bspec\.services\b"), "spec.components"),
    (re.compile(r"\bspec\.envs\b"), "spec.env"),
    (re.compile(r"\bmainContainer\b"), "main"),
    (re.compile(r"\bcomponentType: worker\b"), "type: worker"),
    (re.compile(r"(?<=\])\.(?:componentType|subComponentType)(?=: )"), ".type"),
    (re.compile(r"\bsharedMemory\.disabled\b"), "sharedMemorySize: 0"),
)
"""What texts say of fields of v1alpha1 -> the same of v1beta1."""
NOUNS: Final = (
    (re.compile(r"\b([Aa]n?|[Tt]he|that|another|other|each|no|its|for) service(s?)(?![-\w./\]]| accounts?(?![-\w]))"), r"\1 component\2"),
    (re.compile(r"(?<![-\w./\[])services(?= on (?:several nodes|one node)\b)"), "components"),
    (re.compile(r"((?:^|[;:,] ))service (?=\S)"), r"\1component "),
)
"""Where texts name a service -> the same with the noun of v1beta1. Names of components, which may be `service`, are left alone."""


class ComponentPaths(Struct, frozen=True):
    """The places of the components and containers of one graph."""

    indices: Mapping[str, int]
    """Component -> its index."""
    containers: Mapping[str, tuple[int | None, tuple[int, ...]]]
    """Component -> the index of its container `main`, if it has one, and those of its other containers."""

    def of(self, path: Path) -> Path:
        """The path in the v1beta1 graph; the nearest field that there is."""
        if path[:2] == ("spec", "envs"):
            return "spec", "env", *path[2:]
        if path[:2] == ("spec", "pvcs"):
            return SAVED
        if path[:2] == COMPONENTS:
            return self.named(path)
        if path[:2] != SERVICES:
            return path
        if len(path) == 2 or str(path[2]) not in self.indices:
            return COMPONENTS
        name, rest = str(path[2]), path[3:]
        if rest and rest[0] in ONLY_ALPHA:
            return SAVED
        return *COMPONENTS, Entry(self.indices[name], name), *self._below(name, rest)

    def named(self, path: Path) -> Path:
        """The path in the v1beta1 graph, with the component as texts name it; itself for a component without a name."""
        if path[:2] != COMPONENTS or len(path) == len(COMPONENTS):
            return path
        name = next((name for name, index in self.indices.items() if index == path[2]), "")
        return (*COMPONENTS, Entry(int(path[2]), name), *path[3:]) if name else path

    def _below(self, name: str, rest: Path) -> Path:
        """The path below a component."""
        match rest:
            case ("extraPodSpec", "mainContainer", *below):
                return self._main(name, *below)
            case ("extraPodSpec", "containers", int(index), *below):
                others = self.containers[name][1]
                return (*POD_SPEC, "containers", *((others[index], *below) if index < len(others) else ()))
            case ("extraPodSpec", *below):
                return *POD_SPEC, *below
            case ("resources", kind, "gpu", *_):
                return self._main(name, "resources", kind, NVIDIA_GPU)
            case ("resources", *below):
                return self._main(name, "resources", *below)
            case ("volumeMounts", _, field, *_) if field in OF_CACHE:
                return "compilationCache", OF_CACHE[str(field)]
            case (field, *below) if field in OF_MAIN:
                return self._main(name, OF_MAIN[str(field)], *below)
            case (field, *below) if field in OF_SERVICE:
                return *OF_SERVICE[str(field)], *(() if field in WHOLE else below)
        return rest

    def _main(self, name: str, *below: str | int) -> Path:
        index = self.containers[name][0]
        return (*POD_SPEC, "containers", *((index, *below) if index is not None else ()))


def component_paths(body: Any) -> ComponentPaths:
    """The places in a v1beta1 graph."""
    components = mappings(mapping(mapping(body).get("spec")).get("components"))
    indices = {name: index for index, component in enumerate(components) if isinstance(name := component.get("name"), str)}
    return ComponentPaths(indices, {str(component.get("name")): _containers(component) for component in components})


def _containers(component: Any) -> tuple[int | None, tuple[int, ...]]:
    containers = mappings(mapping(mapping(mapping(component).get("podTemplate")).get("spec")).get("containers"))
    names = [container.get("name") for container in containers]
    main = names.index(MAIN) if MAIN in names else None
    return main, tuple(index for index, name in enumerate(names) if name != MAIN)


def in_beta(text: str) -> str:
    """A text about a v1alpha1 graph in the words of v1beta1."""
    return _replaced(text, (*FIELDS, *NOUNS))


def with_fields_of_beta(text: str) -> str:
    """A text about the fields of a v1alpha1 service that are part of a pod template."""
    return _replaced(text, FIELDS)


def _replaced(text: str, words: Iterable[tuple[re.Pattern[str], str]]) -> str:
    for pattern, replacement in words:
        text = pattern.sub(replacement, text)
    return text
