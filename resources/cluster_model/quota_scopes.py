"""Quota scopes: the pods that a ResourceQuota counts, of those that have been asked for in manifests."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from engine.quantity import amount
from resources.base.fields import mapping, mappings
from resources.cluster_model.pod_level import pod_level

PRIORITY_CLASS: Final = "PriorityClass"


class QuotaScope(Struct, frozen=True):
    """One requirement of a quota's `scopes` or `scopeSelector`."""

    name: str
    operator: str
    values: tuple[str, ...] = ()


def scopes_of(spec: Mapping[str, Any]) -> tuple[QuotaScope, ...] | None:
    """The scopes of a quota, none if it counts every object; None if one of them is not known: it is not known what it counts."""
    listed = spec.get("scopes") or ()
    named = [QuotaScope(str(name), "Exists") for name in (listed if isinstance(listed, list | tuple) else ())]
    selected = [
        QuotaScope(str(each.get("scopeName")), str(each.get("operator")), tuple(map(str, each.get("values") or ())))
        for each in mappings(mapping(spec.get("scopeSelector")).get("matchExpressions"))
    ]
    scopes = tuple(dict.fromkeys((*named, *selected)))
    is_known = all(each.name == PRIORITY_CLASS or (each.name in MATCHES and each.operator == "Exists") for each in scopes)
    return scopes if is_known else None


def is_in_scopes(spec: Mapping[str, Any], scopes: Iterable[QuotaScope]) -> bool:
    """Whether a pod with this spec is in all of these scopes."""
    return all(_is_in(spec, scope) for scope in scopes)


def is_judged(spec: Mapping[str, Any], scopes: Sequence[QuotaScope]) -> bool:
    """Whether it is known if a pod that is made with this spec is in all of these scopes.

    Into pods that name no PriorityClass, the API server writes the default of the cluster.
    """
    others = [scope for scope in scopes if scope.name != PRIORITY_CLASS]
    return len(others) == len(scopes) or bool(spec.get("priorityClassName")) or not is_in_scopes(spec, others)


def _is_in(spec: Mapping[str, Any], scope: QuotaScope) -> bool:
    if scope.name != PRIORITY_CLASS:
        return MATCHES[scope.name](spec)
    name = spec.get("priorityClassName") or ""
    match scope.operator:
        case "In":
            return name in scope.values
        case "NotIn":
            return name not in scope.values
        case "DoesNotExist":
            return not name
    return bool(name)


def _ends(spec: Mapping[str, Any]) -> bool:
    return isinstance(spec.get("activeDeadlineSeconds"), int)


def _is_best_effort(spec: Mapping[str, Any]) -> bool:
    """Whether no container asks for CPU or memory, or the pod as a whole, if it says what it asks for."""
    containers = (spec,) if any(pod_level(spec)) else (*mappings(spec.get("containers")), *mappings(spec.get("initContainers")))
    asked = (mapping(mapping(each.get("resources")).get(field)) for each in containers for field in ("requests", "limits"))
    return not any(amount(str(amounts.get(what, "0"))) for amounts in asked for what in ("cpu", "memory"))


MATCHES: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "Terminating": _ends,
    "NotTerminating": lambda spec: not _ends(spec),
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda spec: not _is_best_effort(spec),
}
"""The other scopes -> whether a pod with this spec is in it."""
