"""Fields that are zero: what a server leaves out of them, in every built-in kind that we write, is no difference; what it keeps is one."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from engine.diff import Rules, compare
from engine.ids import Kind
from engine.operation import Cause
from engine.resource import Policy
from grove_sandbox.kinds.served import builtins
from grove_sandbox.types.shapes import Shape
from resources.base import kinds
from resources.base.fields import omitted_fields
from tests.contract import record_omitted_fields
from tests.contract.answers import sending
from tests.contract.record_omitted_fields import ELSEWHERE, SCALARS
from tests.contract.server import Server

Body = dict[str, Any]
ZEROS = {"string": "", "boolean": False, "integer": 0, "number": 0, "bytes": ""}
SCALABLE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
    {"type": "Object", "object": {"describedObject": SCALABLE, "metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}},
]
BACKEND = {"service": {"name": "x", "port": {"number": 80}}}
RULE = {"host": "a.example", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}
POD = {"containers": [{"name": "c", "image": "x"}]}
REQUEST = {"name": "r", "exactly": {"deviceClassName": "c.example", "allocationMode": "ExactCount", "count": 1}}

OBJECTS: dict[Kind, Body] = {
    kinds.SERVICE: {"spec": {"selector": {"a": "b"}, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}},
    kinds.SERVICE_ACCOUNT: {"automountServiceAccountToken": True, "secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}]},
    kinds.SECRET: {"type": "Opaque", "data": {"key": "dg=="}, "immutable": True},
    kinds.ROLE: {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    kinds.ROLE_BINDING: {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "default"}],
    },
    kinds.AUTOSCALER: {"spec": {"scaleTargetRef": SCALABLE, "minReplicas": 1, "maxReplicas": 3, "metrics": METRICS}},
    kinds.RESOURCE_CLAIM: {"spec": {"devices": {"requests": [REQUEST]}}},
    kinds.PVC: {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    kinds.INGRESS: {"spec": {"ingressClassName": "x", "rules": [RULE], "tls": [{"hosts": ["a.example"], "secretName": "s"}]}},
    kinds.DEPLOYMENT: {
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": POD},
        }
    },
    kinds.POD: {"spec": POD},
}
"""An object of each kind, with all parts that we write."""

FILLED_IN = {
    (kinds.SERVICE, "spec.clusterIP"),
    (kinds.SERVICE, "spec.ports.protocol"),
    (kinds.SERVICE, "spec.sessionAffinity"),
    (kinds.SERVICE, "spec.type"),
    (kinds.SECRET, "type"),
    (kinds.PVC, "spec.volumeMode"),
    (kinds.DEPLOYMENT, "spec.strategy.type"),
    (kinds.DEPLOYMENT, "spec.template.spec"),
    (kinds.ROLE_BINDING, "roleRef.apiGroup"),
    (kinds.RESOURCE_CLAIM, "spec.devices.requests.exactly.allocationMode"),
    (kinds.RESOURCE_CLAIM, "spec.devices.requests.exactly.count"),
}
"""Fields for which the server puts another value where they are zero. We never write a zero there."""


class Variant(Struct, frozen=True):
    """An object of which one field is zero."""

    path: str
    body: Body
    presence: str
    """Of the field, as `grove_sandbox.types.shapes` writes it: empty if it is left out where it is zero."""


def variants(value: Any, shape: Shape, path: str = "") -> Iterator[Variant]:
    """The object with each scalar field of its parts set to zero in turn."""
    for key, child in shape.fields.items():
        where = f"{path}.{key}" if path else key
        if key in ("apiVersion", "kind", "status") and not path or child.name in ELSEWHERE:
            continue
        if child.type in SCALARS:
            yield Variant(where, {**value, key: ZEROS[child.type]}, child.presence)
        elif child.type == "array" and child.item.fields:
            for index, entry in enumerate(value.get(key, ())):
                for each in variants(entry, child.item, where):
                    entries = [*value[key][:index], each.body, *value[key][index + 1 :]]
                    yield Variant(each.path, {**value, key: entries}, each.presence)
        elif child.fields and isinstance(value.get(key), dict):
            for each in variants(value[key], child, where):
                yield Variant(each.path, {**value, key: each.body}, each.presence)


SHAPES = {served.kind: served.shape for served in builtins()}
kinds_written = pytest.mark.parametrize("kind", record_omitted_fields.WRITTEN, ids=lambda kind: kind.name)


def collection(kind: Kind) -> str:
    """The path of the objects of a kind in the namespace `default`, for dry runs."""
    group = f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"
    return f"/{group}/namespaces/default/{kind.plural}?dryRun=All"


@pytest.mark.anyio
@kinds_written
async def test_an_object_with_a_zero_is_in_sync_once_it_is_stored(kind: Kind, server: Server) -> None:
    rules = Rules(Policy(omitted=omitted_fields(kind)), Cause.DRIFT)
    stored = 0
    async with sending(server) as send:
        for variant in variants(OBJECTS[kind], SHAPES[kind]):
            frame = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "x", "namespace": "default"}}
            sent = {**frame, **variant.body}
            code, answer = await send("POST", collection(kind), sent, "application/json")
            if code == 201:
                stored += 1
                differs = bool(compare(sent, answer, rules).changes)
                assert differs == ((kind, variant.path) in FILLED_IN), (variant.path, answer)
    assert stored or not list(variants(OBJECTS[kind], SHAPES[kind]))


@kinds_written
def test_a_zero_that_a_server_keeps_is_a_difference_from_no_value(kind: Kind) -> None:
    rules = Rules(Policy(omitted=omitted_fields(kind)), Cause.DRIFT)
    frame = {"metadata": {"name": "x", "namespace": "default"}}
    for variant in variants(OBJECTS[kind], SHAPES[kind]):
        without = {**frame, **_without(variant.body, variant.path.split("."))}

        assert bool(compare({**frame, **variant.body}, without, rules).changes) == (variant.presence != ""), variant.path


def _without(value: Any, path: list[str]) -> Any:
    """The value without the field, in the entries of lists that have it as a zero."""
    if isinstance(value, list):
        return [_without(entry, path) for entry in value]
    if not isinstance(value, dict):
        return value
    key, *rest = path
    if rest:
        return {**value, key: _without(value[key], rest)} if key in value else value
    return {name: entry for name, entry in value.items() if name != key or entry not in ("", False, 0) or entry is True}


def test_the_recorded_fields_are_those_of_the_recorded_types() -> None:
    """If not: `python -m tests.contract.record_omitted_fields`."""
    assert record_omitted_fields.written() == record_omitted_fields.FILE.read_text("ascii")
