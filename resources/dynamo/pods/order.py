"""Order: the lists of a pod spec whose order means nothing, in one order, so that equal pods are written equally.

Variables are sorted by name, but one follows those that its value refers to: a kubelet replaces `$(NAME)` only if `NAME` comes first. Init
containers, arguments, name servers and search domains keep their order, because theirs means something.
"""

import heapq
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.resource import Body
from resources.base.fields import mapping
from resources.dynamo.backends.kubelet import references

SortKey = Callable[[Body], tuple[Any, ...]]


def in_order(pod: Body) -> dict[str, Any]:
    """The pod spec with its containers, their lists and its own in one order."""
    sorted_pod = _sorted_fields(pod, _POD_KEYS)
    if sorted_pod.get("containers"):
        sorted_pod["containers"] = [_container_in_order(container) for container in sorted_pod["containers"]]
    if _is_list(sorted_pod.get("imagePullSecrets")):
        sorted_pod["imagePullSecrets"] = list({str(mapping(entry).get("name")): entry for entry in sorted_pod["imagePullSecrets"]}.values())
    if mapping(pod.get("dnsConfig")).get("options"):
        sorted_pod["dnsConfig"] = _sorted_fields(pod["dnsConfig"], {"options": _by("name", "value")})
    return sorted_pod


def variables_in_order(envs: Sequence[Body]) -> list[Body]:
    """The variables by name, each behind those of the same list that its value refers to. Variables that refer to one another come last.

    A list in which a name occurs twice stays as it is.
    """
    by_name = {str(env.get("name", "")): env for env in envs}
    if len(by_name) < len(envs):
        return list(envs)
    waiting = {name: {target for target in references(str(env.get("value", ""))) if target in by_name} for name, env in by_name.items()}
    dependents = defaultdict(list)
    for name, targets in waiting.items():
        for target in targets:
            dependents[target].append(name)
    ready = [name for name, targets in waiting.items() if not targets]
    heapq.heapify(ready)
    ordered: list[str] = []
    while ready:
        ordered.append(name := heapq.heappop(ready))
        for dependent in dependents[name]:
            waiting[dependent].discard(name)
            if not waiting[dependent]:
                heapq.heappush(ready, dependent)
    return [by_name[name] for name in (*ordered, *sorted(by_name.keys() - set(ordered)))]


def _container_in_order(container: Body) -> dict[str, Any]:
    sorted_container = _sorted_fields(container, _CONTAINER_KEYS)
    if _is_list(sorted_container.get("env")):
        sorted_container["env"] = variables_in_order(sorted_container["env"])
    return sorted_container


def _sorted_fields(body: Body, keys: Mapping[str, SortKey]) -> dict[str, Any]:
    return {field: sorted(value, key=keys[field]) if field in keys and _is_list(value) else value for field, value in body.items()}


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(entry, Mapping) for entry in value)


def _by(*fields: str) -> SortKey:
    return lambda entry: tuple(str(entry.get(field) or "") for field in fields)


def _by_content(*fields: str) -> SortKey:
    return lambda entry: (*(str(entry.get(field) or "") for field in fields), json.dumps(entry, sort_keys=True, default=str))


def _source(entry: Body) -> tuple[Any, ...]:
    secret, config = mapping(entry.get("secretRef")), mapping(entry.get("configMapRef"))
    return (f"sec:{secret.get('name')}" if secret else f"cm:{config.get('name')}", str(entry.get("prefix") or ""))


_POD_KEYS: Mapping[str, SortKey] = {
    "containers": _by("name"),
    "volumes": _by("name"),
    "imagePullSecrets": _by("name"),
    "tolerations": _by_content("key", "operator", "value", "effect"),
    "topologySpreadConstraints": _by_content("topologyKey", "whenUnsatisfiable"),
    "hostAliases": _by_content("ip"),
}
_CONTAINER_KEYS: Mapping[str, SortKey] = {
    "envFrom": _source,
    "ports": _by_content("name"),
    "volumeMounts": _by("name", "mountPath"),
}
