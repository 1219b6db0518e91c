"""Discovery: the kinds that a server serves. API groups whose server does not answer are reported, not raised."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import anyio
import msgspec
from msgspec import Struct

from engine.errors import ClusterError, ServerFault, Unauthorized, Unreachable
from engine.ids import Kind
from engine.report.printable import clipped
from providers.kubernetes.wire import JSON, HttpRequest, Send

T = TypeVar("T")

AGGREGATED = ",".join([*(f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")), JSON])
"""The Accept header for aggregated discovery; a server that does not support it answers with plain JSON."""
NO_ANSWER = "the API service behind it does not answer"


class ServedKind(Struct, frozen=True):
    """A kind that a server serves, with its verbs and names."""

    kind: Kind
    verbs: frozenset[str]
    singular: str = ""
    short_names: tuple[str, ...] = ()


class Discovery(Struct, frozen=True):
    """All kinds that a server serves, in all versions, the preferred version of a group first."""

    served: tuple[ServedKind, ...]
    incomplete: Mapping[str, str]
    """`group/version` -> why its kinds are not known."""

    def serves(self, kind: Kind) -> bool:
        """Whether that kind is served in exactly that group and version."""
        identity = (kind.group, kind.version, kind.name)
        return any((each.kind.group, each.kind.version, each.kind.name) == identity for each in self.served)

    def kinds(self) -> tuple[Kind, ...]:
        """The kinds that can be listed and watched, each once in its preferred version."""
        preferred: dict[tuple[str, str], Kind] = {}
        for each in self.served:
            if each.verbs >= {"list", "watch"}:
                preferred.setdefault((each.kind.group, each.kind.name), each.kind)
        return tuple(preferred.values())


async def discover(send: Send) -> Discovery:
    """Read the kinds, in two requests if the server supports aggregated discovery, else in one for each group and version.

    Raises errors of `/api` and `/apis`; the error of a single group is reported in `incomplete`.
    """
    served: list[ServedKind] = []
    incomplete: dict[str, str] = {}
    for root in ("/api", "/apis"):
        content = (await send(HttpRequest("GET", root, accept=AGGREGATED))).content
        groups = _read(_aggregated, content)
        if groups.kind == "APIGroupDiscoveryList":
            served.extend(_of_groups(groups.items))
            incomplete.update((_group_version(group.metadata.name, version.version), NO_ANSWER) for group, version in _stale(groups.items))
        else:
            kinds, unknown = await _discover_each(send, root, content)
            served.extend(kinds)
            incomplete.update(unknown)
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


def _of_groups(groups: Iterable[_Group]) -> Iterator[ServedKind]:
    for group in groups:
        for version in group.versions:
            for resource in version.resources:
                if resource.response_kind and resource.response_kind.kind:
                    yield _served(group.metadata.name, version.version, resource, resource.response_kind.kind)


def _served(group: str, version: str, resource: _Resource, name: str) -> ServedKind:
    status = any(sub.subresource == "status" for sub in resource.subresources)
    kind = Kind(group, version, name, resource.resource, resource.scope == "Namespaced", status)
    return ServedKind(kind, resource.verbs, resource.singular_resource, resource.short_names)


def _stale(groups: Iterable[_Group]) -> Iterator[tuple[_Group, _Version]]:
    """The versions whose API service does not answer: the server lists them from an old response or not at all."""
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


async def _discover_each(send: Send, root: str, content: bytes) -> tuple[list[ServedKind], dict[str, str]]:
    """The kinds of every group and version, read concurrently; and `group/version` -> why its kinds are not known."""
    versions = list(_versions(_read(_legacy_root, content)))
    kinds: dict[tuple[str, str], list[ServedKind]] = {}
    unknown: dict[str, str] = {}

    async def read(group: str, version: str) -> None:
        try:
            response = await send(HttpRequest("GET", f"{root}/{_group_version(group, version)}"))
            kinds[group, version] = list(_of_legacy(group, version, _read(_legacy_resources, response.content).resources))
        except (Unreachable, Unauthorized):
            raise
        except ClusterError as error:
            unknown[_group_version(group, version)] = clipped(str(error), 200)

    try:
        async with anyio.create_task_group() as tasks:
            for group, version in versions:
                tasks.start_soon(read, group, version)
    except* ClusterError as errors:
        raise errors.exceptions[0] from None
    return [kind for key in versions for kind in kinds.get(key, ())], unknown


def _versions(root: _LegacyRoot) -> Iterator[tuple[str, str]]:
    """All groups and versions, the preferred version of a group first."""
    yield from (("", version) for version in root.versions)
    for group in root.groups:
        preferred = group.preferred_version.version
        for version in sorted((each.version for each in group.versions), key=lambda version: version != preferred):
            yield group.name, version


def _of_legacy(group: str, version: str, resources: tuple[_LegacyResource, ...]) -> Iterator[ServedKind]:
    with_status = {each.name.removesuffix("/status") for each in resources if each.name.endswith("/status")}
    for each in resources:
        if "/" not in each.name:
            kind = Kind(group, version, each.kind, each.name, each.namespaced, each.name in with_status)
            yield ServedKind(kind, each.verbs, each.singular_name, each.short_names)


def _read(decoder: msgspec.json.Decoder[T], content: bytes) -> T:
    try:
        return decoder.decode(content)
    except msgspec.MsgspecError:
        raise ServerFault("the server did not list its API groups; is it a Kubernetes API server?") from None


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version
