"""Discovery: what a server serves, in two requests where it can, tolerating the parts that do not answer."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

import anyio
import msgspec

from engine.errors import ClusterError, ServerFault, Unauthorized, Unreachable
from engine.ids import Kind
from engine.report.printable import clipped
from providers.kubernetes.wire import JSON, Answer, Request

T = TypeVar("T")
Send = Callable[[Request], Awaitable[Answer]]

AGGREGATED = ",".join([*(f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")), JSON])
SILENT = "the API service behind it does not answer"


@dataclass(frozen=True, slots=True)
class Served:
    """A kind that a server serves, and what one can do with it."""

    kind: Kind
    verbs: frozenset[str]
    singular: str = ""
    short_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Discovery:
    """Everything that a server serves, in every version, the preferred version of a group first."""

    served: tuple[Served, ...]
    incomplete: Mapping[str, str]
    """`group/version` -> why nobody knows what is in it."""

    def serves(self, kind: Kind) -> bool:
        """Whether exactly that group, version and kind is there."""
        return any((one.kind.group, one.kind.version, one.kind.name) == (kind.group, kind.version, kind.name) for one in self.served)

    def kinds(self) -> tuple[Kind, ...]:
        """What can be listed and watched: each kind once, in its preferred version."""
        preferred: dict[tuple[str, str], Kind] = {}
        for one in self.served:
            if one.verbs >= {"list", "watch"}:
                preferred.setdefault((one.kind.group, one.kind.name), one.kind)
        return tuple(preferred.values())


async def discover(send: Send) -> Discovery:
    """Ask the server. Raises what the two roots of the API refuse; a group that fails is only reported."""
    served: list[Served] = []
    incomplete: dict[str, str] = {}
    for root in ("/api", "/apis"):
        content = (await send(Request("GET", root, accept=AGGREGATED))).content
        groups = _read(_aggregated, content)
        if groups.kind == "APIGroupDiscoveryList":
            served.extend(_of_groups(groups.items))
            incomplete.update((_group_version(group.metadata.name, version.version), SILENT) for group, version in _stale(groups.items))
        else:
            listed, holes = await _one_by_one(send, root, content)
            served.extend(listed)
            incomplete.update(holes)
    return Discovery(tuple(served), incomplete)


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _ResponseKind(msgspec.Struct, frozen=True):
    kind: str = ""


class _Subresource(msgspec.Struct, frozen=True):
    subresource: str


class _Resource(msgspec.Struct, frozen=True, rename="camel"):
    resource: str
    response_kind: _ResponseKind | None = None
    scope: str = "Namespaced"
    singular_resource: str = ""
    short_names: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()
    subresources: tuple[_Subresource, ...] = ()


class _Version(msgspec.Struct, frozen=True):
    version: str
    resources: tuple[_Resource, ...] = ()
    freshness: str = "Current"


class _Group(msgspec.Struct, frozen=True):
    metadata: _Named = _Named()
    versions: tuple[_Version, ...] = ()


class _Aggregated(msgspec.Struct, frozen=True):
    kind: str = ""
    items: tuple[_Group, ...] = ()


_aggregated = msgspec.json.Decoder(_Aggregated)


def _of_groups(groups: Iterable[_Group]) -> Iterator[Served]:
    for group in groups:
        for version in group.versions:
            for resource in version.resources:
                if resource.response_kind and resource.response_kind.kind:
                    yield _served(group.metadata.name, version.version, resource, resource.response_kind.kind)


def _served(group: str, version: str, resource: _Resource, name: str) -> Served:
    status = any(sub.subresource == "status" for sub in resource.subresources)
    kind = Kind(group, version, name, resource.resource, resource.scope == "Namespaced", status)
    return Served(kind, resource.verbs, resource.singular_resource, resource.short_names)


def _stale(groups: Iterable[_Group]) -> Iterator[tuple[_Group, _Version]]:
    return ((group, version) for group in groups for version in group.versions if version.freshness == "Stale")


class _GroupVersion(msgspec.Struct, frozen=True):
    version: str = ""


class _LegacyGroup(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion = _GroupVersion()


class _LegacyRoot(msgspec.Struct, frozen=True):
    versions: tuple[str, ...] = ()
    groups: tuple[_LegacyGroup, ...] = ()


class _LegacyResource(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    kind: str
    namespaced: bool = True
    singular_name: str = ""
    short_names: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset()


class _LegacyResources(msgspec.Struct, frozen=True):
    resources: tuple[_LegacyResource, ...] = ()


_legacy_root = msgspec.json.Decoder(_LegacyRoot)
_legacy_resources = msgspec.json.Decoder(_LegacyResources)


async def _one_by_one(send: Send, root: str, content: bytes) -> tuple[list[Served], dict[str, str]]:
    """The same from a server that answers for one group and version at a time: all are asked at once."""
    wanted = list(_versions(_read(_legacy_root, content)))
    found: dict[tuple[str, str], list[Served]] = {}
    holes: dict[str, str] = {}

    async def ask(group: str, version: str) -> None:
        try:
            answer = await send(Request("GET", f"{root}/{_group_version(group, version)}"))
            found[group, version] = list(_of_legacy(group, version, _read(_legacy_resources, answer.content).resources))
        except (Unreachable, Unauthorized):
            raise
        except ClusterError as error:
            holes[_group_version(group, version)] = clipped(str(error), 200)

    try:
        async with anyio.create_task_group() as tasks:
            for group, version in wanted:
                tasks.start_soon(ask, group, version)
    except* ClusterError as errors:
        raise errors.exceptions[0] from None
    return [one for key in wanted for one in found.get(key, ())], holes


def _versions(root: _LegacyRoot) -> Iterator[tuple[str, str]]:
    """Every group and version, the preferred version of a group first."""
    yield from (("", version) for version in root.versions)
    for group in root.groups:
        preferred = group.preferred_version.version
        for version in sorted((one.version for one in group.versions), key=lambda version: version != preferred):
            yield group.name, version


def _of_legacy(group: str, version: str, resources: tuple[_LegacyResource, ...]) -> Iterator[Served]:
    with_status = {one.name.removesuffix("/status") for one in resources if one.name.endswith("/status")}
    for one in resources:
        if "/" not in one.name:
            kind = Kind(group, version, one.kind, one.name, one.namespaced, one.name in with_status)
            yield Served(kind, one.verbs, one.singular_name, one.short_names)


def _read(decoder: msgspec.json.Decoder[T], content: bytes) -> T:
    try:
        return decoder.decode(content)
    except msgspec.MsgspecError:
        raise ServerFault("the server does not say what it serves; is it a Kubernetes API server?") from None


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version
