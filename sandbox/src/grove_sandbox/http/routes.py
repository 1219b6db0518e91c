"""Routes: the resource that a path names."""

from msgspec import Struct

_OF_NAMESPACES = ("status", "finalize")


class Route(Struct, frozen=True):
    """The parts of a resource's path; empty where the path has none."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def route(path: str) -> Route | None:
    """The resource at `/api/v1/…` or `/apis/GROUP/VERSION/…`, or None for any other path."""
    match path.strip("/").split("/"):
        case ["api", version, *rest] if rest:
            return _resource("", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _resource(group, version, rest)
    return None


def _resource(group: str, version: str, parts: list[str]) -> Route | None:
    if "" in parts:
        return None
    match parts:
        case ["namespaces", namespace, plural, *rest] if plural not in _OF_NAMESPACES and len(rest) <= 2:
            return Route(group, version, plural, namespace, *rest)
        case [plural, *rest] if len(rest) <= 2:
            return Route(group, version, plural, "", *rest)
    return None
