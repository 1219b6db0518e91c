"""Sharing: what a set must not get wrong about the resource claims that its pods share."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

Entry = Mapping[str, Any]

SCOPES: Final = ("AllReplicas", "PerReplica")


def faults(inner: Mapping[str, Any], path: str) -> Iterator[str]:
    """What is wrong with `resourceClaimTemplates` and `resourceSharing` of a template whose cliques and groups have names."""
    templates = inner.get("resourceClaimTemplates") or ()
    own = {template.get("name") for template in templates}
    cliques = {clique["name"] for clique in inner["cliques"]}
    groups = inner.get("podCliqueScalingGroups") or ()
    yield from _templates(templates, f"{path}.resourceClaimTemplates")
    yield from _shares(inner, own, path)
    yield from _filters(inner, path, {"childCliqueNames": cliques, "childScalingGroupNames": {group["name"] for group in groups}})
    for number, group in enumerate(groups):
        yield from _shares(group, own, f"{path}.podCliqueScalingGroups[{number}]")
        yield from _filters(group, f"{path}.podCliqueScalingGroups[{number}]", {"childCliqueNames": group["cliqueNames"]})
    for number, clique in enumerate(inner["cliques"]):
        yield from _shares(clique, own, f"{path}.cliques[{number}]")


def _templates(templates: Iterable[Entry], path: str) -> Iterator[str]:
    for number, template in enumerate(templates):
        if not template.get("name"):
            yield f"{path}[{number}].name: template name is required"
        spec = (template.get("templateSpec") or {}).get("spec") or {}
        if not (spec.get("devices") or {}).get("requests"):
            yield f"{path}[{number}].templateSpec.spec.devices.requests: at least one device request is required"
    for name in _repeated(templates):
        yield f"{path}.name: Duplicate value: {name!r}"


def _shares(holder: Entry, own: Collection[str], path: str) -> Iterator[str]:
    entries = holder.get("resourceSharing") or ()
    for number, entry in enumerate(entries):
        here = f"{path}.resourceSharing[{number}]"
        if not entry.get("name"):
            yield f"{here}.name: reference name is required"
        if entry.get("namespace") and entry.get("name") in own:
            yield f"{here}.namespace: namespace must be empty when name matches an internal resourceClaimTemplate"
        if entry.get("scope") not in SCOPES:
            yield f"{here}.scope: Unsupported value: {entry.get('scope')!r}: supported values: {', '.join(map(repr, SCOPES))}"
    for name in _repeated(entries):
        yield f"{path}.resourceSharing.name: Duplicate value: {name!r}"


def _filters(holder: Entry, path: str, known: Mapping[str, Collection[str]]) -> Iterator[str]:
    """A filter that is there names somebody, and nobody who is not there."""
    for number, entry in enumerate(holder.get("resourceSharing") or ()):
        here = f"{path}.resourceSharing[{number}].filter"
        only = entry.get("filter")
        if only is not None and not any(only.get(field) for field in known):
            yield f"{here}: filter must specify at least one {' or '.join(known)} entry"
        for field, names in known.items():
            for place, name in enumerate((only or {}).get(field) or ()):
                if name not in names:
                    yield f"{here}.{field}[{place}]: Not found: {name!r}"


def _repeated(entries: Iterable[Entry]) -> list[str]:
    names = Counter(entry.get("name") for entry in entries)
    return [name for name, count in names.items() if name and count > 1]
