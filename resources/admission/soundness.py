"""Soundness: what a set must not get wrong for its objects to be computed at all; everything finer is the business of admission."""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import Any

from resources.admission import sharing
from resources.setup import Setup
from resources.template import EXPLICIT

TEMPLATE = "spec.template"


def faults(spec: Mapping[str, Any], setup: Setup) -> tuple[str, ...]:
    """What is wrong with a set whose defaults are filled in: each fault with its field path; none if it can be computed."""
    inner = spec.get("template")
    if not isinstance(inner, Mapping) or not inner.get("cliques"):
        return (f"{TEMPLATE}.cliques: at least one PodClique must be defined",)
    cliques = inner["cliques"]
    order = _order(cliques) if inner.get("cliqueStartupType") == EXPLICIT else ()
    shared = sharing.faults(inner, TEMPLATE)
    return (*_pod_specs(cliques), *_names(cliques), *order, *_groups(inner), *shared, *_schedulers(cliques, setup))


def _pod_specs(cliques: Any) -> Iterator[str]:
    for number, clique in enumerate(cliques):
        path = f"{TEMPLATE}.cliques[{number}].spec.podSpec"
        pod_spec = clique["spec"].get("podSpec")
        if not isinstance(pod_spec, Mapping):
            yield f"{path}: must be an object"
            continue
        if not pod_spec.get("containers"):
            yield f"{path}.containers: at least one container must be defined"
        for field in ("containers", "initContainers"):
            yield from _containers(f"{path}.{field}", pod_spec.get(field) or [])


def _containers(path: str, containers: Any) -> Iterator[str]:
    if not isinstance(containers, list | tuple):
        yield f"{path}: must be a list"
        return
    for number, container in enumerate(containers):
        if not isinstance(container, Mapping):
            yield f"{path}[{number}]: must be an object"
        elif not _is_list_of_maps(container.get("env") or []):
            yield f"{path}[{number}].env: must be a list of objects"


def _is_list_of_maps(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value)


def _names(cliques: Any) -> Iterator[str]:
    for name in _repeated(clique["name"] for clique in cliques):
        yield f"{TEMPLATE}.cliques: Duplicate value: {name!r}"


def _order(cliques: Any) -> Iterator[str]:
    """What is wrong with cliques that say themselves which others they start after."""
    named = {clique["name"]: tuple(clique["spec"].get("startsAfter") or ()) for clique in cliques}
    for number, (name, after) in enumerate((clique["name"], named[clique["name"]]) for clique in cliques):
        path = f"{TEMPLATE}.cliques[{number}].spec.startsAfter"
        if "" in after:
            yield f"{path}: clique dependency must not be empty"
        if name in after:
            yield f"{path}: clique dependency cannot refer to itself: {name!r}"
        for repeated in _repeated(after):
            yield f"{path}: Duplicate value: {repeated!r}"
        if unknown := [other for other in dict.fromkeys(after) if other and other not in named]:
            yield f"{path}: unknown clique names found, all clique dependencies must be defined as cliques: {','.join(unknown)}"
    for circle in _circles({name: set(after) & named.keys() - {name} for name, after in named.items()}):
        yield f"{TEMPLATE}.cliques: clique must not have circular dependencies: {', '.join(sorted(circle))}"


def _circles(arrows: Mapping[str, Set[str]]) -> Iterator[Set[str]]:
    """Names that lead to one another, circle by circle."""
    reached = {name: _reached(name, arrows) for name in arrows}
    told: set[str] = set()
    for name, others in reached.items():
        if name in others and name not in told:
            circle = {other for other in others if name in reached[other]}
            told |= circle
            yield circle


def _reached(start: str, arrows: Mapping[str, Set[str]]) -> Set[str]:
    """Everything that the arrows lead to from there."""
    found: set[str] = set()
    ahead = list(arrows[start])
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += arrows[name]
    return found


def _groups(inner: Mapping[str, Any]) -> Iterator[str]:
    known = {clique["name"] for clique in inner["cliques"]}
    groups = inner.get("podCliqueScalingGroups") or ()
    path = f"{TEMPLATE}.podCliqueScalingGroups"
    for number, group in enumerate(groups):
        unknown = [name for name in group["cliqueNames"] if name not in known]
        if unknown:
            yield f"{path}[{number}].cliqueNames: unidentified PodClique names found: {','.join(unknown)}"
    for name in _repeated(group["name"] for group in groups):
        yield f"{path}: Duplicate value: {name!r}"
    for name in _repeated(name for group in groups for name in group["cliqueNames"]):
        yield f"{path}.cliqueNames: Duplicate value: {name!r}"


def _schedulers(cliques: Any, setup: Setup) -> Iterator[str]:
    named = sorted({(clique["spec"].get("podSpec") or {}).get("schedulerName") or setup.default_scheduler for clique in cliques})
    path = f"{TEMPLATE}.cliques.spec.podSpec.schedulerName"
    if len(named) > 1:
        yield f"{path}: the schedulerName for all pods have to be the same: {', '.join(named)}"
    elif named[0] not in setup.schedulers:
        yield f"{path}: schedulerName must be an enabled scheduler backend; this scheduler is not enabled in OperatorConfiguration"


def _repeated(values: Any) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
