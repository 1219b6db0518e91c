"""Discovery: what is served, in the aggregated form and in the older one, group by group."""

from collections.abc import Iterable, Mapping
from typing import Any

from grove_sandbox.http.reviews import ACCESS_REVIEW
from grove_sandbox.kinds.served import Catalogue, Served, verbs_of

AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

VERSION = {
    "major": "1",
    "minor": "37",
    "emulationMajor": "1",
    "emulationMinor": "37",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "36",
    "gitVersion": "v1.37.0+sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}

_SUB_KINDS: Mapping[str, tuple[str, str, str]] = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
_SUB_VERBS: Mapping[str, tuple[str, ...]] = {
    "binding": ("create",),
    "eviction": ("create",),
    "token": ("create",),
    "finalize": ("update",),
}


def aggregated(catalogue: Catalogue, *, core: bool) -> dict[str, Any]:
    """The `APIGroupDiscoveryList` of the core group, or of all others."""
    groups = [
        {
            "metadata": {"name": group} if group else {},
            "versions": [
                {"version": version, "resources": [_entry(each) for each in members], "freshness": "Current"}
                for version, members in versions.items()
            ],
        }
        for group, versions in _groups(catalogue).items()
        if bool(group) != core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": groups}


def versions() -> dict[str, Any]:
    """The document of `/api` in the older form."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(catalogue: Catalogue) -> dict[str, Any]:
    """The document of `/apis` in the older form."""
    groups = [_group(name, of_group) for name, of_group in _groups(catalogue).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(catalogue: Catalogue, name: str) -> dict[str, Any] | None:
    """The document of `/apis/GROUP`; None for a group that is not served."""
    of_group = _groups(catalogue).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, of_group)} if name and of_group else None


def serves(catalogue: Catalogue, group_name: str) -> bool:
    """Whether anything is served in that group."""
    return group_name == ACCESS_REVIEW.group or any(served.kind.group == group_name for served in catalogue)


def resource_list(catalogue: Catalogue, group_name: str, version: str) -> dict[str, Any] | None:
    """The document of `/api/v1` or `/apis/GROUP/VERSION`; None for a version that is not served."""
    members = _groups(catalogue).get(group_name, {}).get(version)
    if members is None:
        return None
    resources = [entry for each in members for entry in _legacy_entries(each)]
    api_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def root(catalogue: Catalogue) -> dict[str, Any]:
    """The document of `/`: all paths."""
    served = _groups(catalogue)
    groups = [f"/apis/{name}" for name in served if name]
    below = [f"/apis/{name}/{version}" for name, of_group in served.items() if name for version in of_group]
    others = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
    return {"paths": sorted([*groups, *below, *others])}


def _groups(catalogue: Catalogue) -> dict[str, dict[str, list[Served]]]:
    """Group, then version (the preferred one first), then kinds in the order of the catalogue."""
    groups: dict[str, dict[str, list[Served]]] = {}
    for served in sorted((*catalogue, _REVIEW), key=lambda served: (served.kind.group, not served.preferred)):
        groups.setdefault(served.kind.group, {}).setdefault(served.kind.version, []).append(served)
    return groups


_REVIEW = Served(ACCESS_REVIEW, singular=ACCESS_REVIEW.name.lower(), list_name="")


def _verbs(served: Served) -> list[str]:
    return ["create"] if served is _REVIEW else list(verbs_of(served))


def _entry(served: Served) -> dict[str, Any]:
    kind = served.kind
    subresources = [
        {
            "subresource": name,
            "responseKind": _gvk(*_sub_kind(served, name)),
            "verbs": list(_SUB_VERBS.get(name, ("get", "patch", "update"))),
        }
        for name in served.subresources
    ]
    return {
        "resource": kind.plural,
        "responseKind": _gvk(kind.group, kind.version, kind.name),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": _verbs(served),
        **({"shortNames": list(served.short_names)} if served.short_names else {}),
        **({"categories": list(served.categories)} if served.categories else {}),
        **({"subresources": subresources} if subresources else {}),
    }


def _gvk(group_name: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group_name, "version": version, "kind": kind}


def _sub_kind(served: Served, subresource: str) -> tuple[str, str, str]:
    return _SUB_KINDS.get(subresource, (served.kind.group, served.kind.version, served.kind.name))


def _group(name: str, of_group: Iterable[str]) -> dict[str, Any]:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in of_group]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _legacy_entries(served: Served) -> Iterable[dict[str, Any]]:
    kind = served.kind
    yield {
        "name": kind.plural,
        "singularName": served.singular,
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": _verbs(served),
        **({"shortNames": list(served.short_names)} if served.short_names else {}),
        **({"categories": list(served.categories)} if served.categories else {}),
    }
    for name in served.subresources:
        sub_group, sub_version, sub_kind = _sub_kind(served, name)
        foreign = (sub_group, sub_version) != (kind.group, kind.version)
        yield {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **({"group": sub_group, "version": sub_version} if foreign else {}),
            "kind": sub_kind,
            "verbs": list(_SUB_VERBS.get(name, ("get", "patch", "update"))),
        }
