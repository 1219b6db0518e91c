"""Hostile: requests about objects of many kinds, in which somebody has put anything anywhere."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from engine.ids import Kind
from grove_sandbox.api.request import Request
from grove_sandbox.api.verbs import Api
from grove_sandbox.clock import VirtualClock
from grove_sandbox.installation.installation import definitions
from grove_sandbox.types.shapes import Shape
from resources.schema.crds import crds
from sandbox.tests.in_memory import CRD
from tests.contract.scenario import HOW, filled
from tests.contract.scenarios import custom
from tests.resources.manifests import clique, pcs, put

Body = Mapping[str, Any]

_TOYS = filled(custom.definition(), {"ns": "toys"})
_OURS = ("podcliquesets.grove.io", "podcliques.grove.io")
_PODS = {"containers": [{"name": "main", "image": "i:1"}]}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": _PODS}
_SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}
_CLAIM = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
_CHANNEL = {"channel": {"resourceClaimTemplate": {"name": "t"}}}
_ROLE = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
_HOOK = {"name": "a.example.com", "clientConfig": {"url": "https://a"}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
_SCALED = {"scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}, "maxReplicas": 3}

# group/version, plural, the body of an object beside its name, and what there is below it
KINDS: tuple[tuple[str, str, Body, tuple[str, ...]], ...] = (
    ("v1", "pods", {"spec": _PODS, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, ("status", "binding", "eviction")),
    ("v1", "secrets", {"data": {"a": "YQ=="}, "type": "Opaque"}, ()),
    ("v1", "configmaps", {"data": {"a": "b"}}, ()),
    ("v1", "nodes", {"spec": {}, "status": {"capacity": {"cpu": "1"}}}, ("status",)),
    ("v1", "services", {"spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}, ("status",)),
    ("v1", "serviceaccounts", {}, ("token",)),
    ("v1", "namespaces", {}, ("status", "finalize")),
    ("apps/v1", "deployments", {"spec": _SELECTED}, ("status", "scale")),
    ("apps/v1", "daemonsets", {"spec": _SELECTED}, ("status",)),
    ("apps/v1", "statefulsets", {"spec": {**_SELECTED, "serviceName": "a"}}, ("status", "scale")),
    ("batch/v1", "jobs", {"spec": {"template": {**_TEMPLATE, "spec": {**_PODS, "restartPolicy": "Never"}}}}, ("status",)),
    ("autoscaling/v2", "horizontalpodautoscalers", {"spec": _SCALED}, ("status",)),
    ("coordination.k8s.io/v1", "leases", {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}, ()),
    ("rbac.authorization.k8s.io/v1", "roles", _ROLE, ()),
    ("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", {"webhooks": [_HOOK]}, ()),
    ("resource.k8s.io/v1", "resourceclaims", {"spec": _CLAIM}, ("status",)),
    ("resource.k8s.io/v1", "resourceclaimtemplates", {"spec": {"spec": _CLAIM}}, ()),
    ("apiextensions.k8s.io/v1", "customresourcedefinitions", {"spec": _TOYS["spec"]}, ("status",)),
    ("grove.io/v1alpha1", "podcliquesets", {"spec": pcs(clique("w"))["spec"]}, ("status", "scale")),
    ("grove.io/v1alpha1", "podcliques", {"spec": {"roleName": "a", "replicas": 1, "podSpec": _PODS}}, ("status", "scale")),
    ("resource.nvidia.com/v1beta1", "computedomains", {"spec": _CHANNEL}, ("status",)),
    (
        "resource.nvidia.com/v1beta1",
        "computedomaincliques",
        {"daemons": [{"nodeName": "n", "ipAddress": "192.0.2.1", "cliqueID": "q"}]},
        (),
    ),
)

ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, 1.5, "", "a", "A b", "1e999", "\x00", "é", "x" * 300, "2026-01-01T00:00:00Z"]
    + [[], {}, [None], [[]], {"a": None}, {"": {}}, ["a"], [{"name": "a"}] * 2, {"f:a": 1}, "{", "(", "1/2", "a/b/c", "$patch"]
)
JUNK = ODD | st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2), max_leaves=4
)


@dataclass(frozen=True, slots=True)
class Deed:
    """One request, as it goes over the wire."""

    method: str
    path: str
    body: bytes
    media: str = HOW["json"]


def world() -> Api:
    """A new API that serves all of these kinds."""
    return _SERVING.fork(VirtualClock())


def _serving() -> Api:
    """An API that serves them. To define them takes longer than the requests that are sent to it, so every world is a fork of one."""
    api = Api(VirtualClock(), seed=1)
    kind = api.catalogue.find(CRD.group, CRD.version, CRD.plural)
    for definition in (*(each for each in crds() if each["metadata"]["name"] in _OURS), *definitions()):
        api.create(Request(kind, manager="test"), definition)
    return api


def shape_of(api: Api, version: str, plural: str) -> tuple[Kind, Shape]:
    """The kind and the shape of what is served there."""
    group, _, plain = version.rpartition("/")
    served = api.catalogue.find(group, plain, plural)
    return served.kind, served.shape


_SERVING = _serving()


@st.composite
def ways(draw: st.DrawFn, shape: Shape) -> tuple[str | int, ...]:
    """A path to some place that there may be in an object of that shape."""
    way: list[str | int] = []
    while len(way) < draw(st.integers(1, 9)):
        if shape.fields:
            key = draw(st.sampled_from(sorted(shape.fields)))
            if draw(st.integers(0, 15)) == 0:
                directives = ("$patch", "$retainKeys", f"$setElementOrder/{key}", f"$deleteFromPrimitiveList/{key}")
                return (*way, draw(st.sampled_from(directives)))
            way.append(key)
            shape = shape.child(key)
        elif shape.type == "array":
            way.append(0)
            shape = shape.item
        elif shape.values is not None:
            way.append("a")
            shape = shape.values
        else:
            break
    return tuple(way)


@st.composite
def spoilt(draw: st.DrawFn, body: Any, shape: Shape) -> Any:
    """The body with anything in one place or two."""
    for _ in range(draw(st.integers(1, 2))):
        body = placed(body, draw(ways(shape)), draw(JUNK))
    return body


def placed(body: Any, way: tuple[str | int, ...], value: Any) -> Any:
    """The body with a value at a place; what is missing on the way is made, and what is of another sort makes room."""
    if not way:
        return value
    step, rest = way[0], way[1:]
    if isinstance(step, int):
        items = list(body) if isinstance(body, list) else []
        return [placed(items[0] if items else None, rest, value), *items[1:]]
    fields = body if isinstance(body, Mapping) else {}
    return {**fields, step: placed(fields.get(step), rest, value)}


@st.composite
def deeds(draw: st.DrawFn) -> tuple[Deed, ...]:
    """A sound object is made, or one that is not, and then some more is done to it."""
    version, plural, fields, below = draw(st.sampled_from(KINDS))
    kind, shape = shape_of(_SERVING, version, plural)
    name = _TOYS["metadata"]["name"] if plural == CRD.plural else "a"
    sound = {"apiVersion": version, "kind": kind.name, "metadata": {"name": name}, **fields}
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    where = f"{root}/namespaces/default/{plural}" if kind.namespaced else f"{root}/{plural}"
    first = draw(st.sampled_from((sound, sound, None))) or draw(spoilt(sound, shape))
    return (
        Deed("POST", where, _written(first)),
        *draw(st.lists(_more(where, name, sound, shape, below), min_size=1, max_size=3)),
    )


@st.composite
def _more(draw: st.DrawFn, where: str, name: str, sound: Body, shape: Shape, below: tuple[str, ...]) -> Deed:
    part = draw(st.sampled_from(("", *below)))
    path = f"{where}/{name}" + (f"/{part}" if part else "")
    method = "POST" if part in ("binding", "eviction", "token") else draw(st.sampled_from(("PUT", "PATCH", "PATCH", "PATCH", "DELETE")))
    bare = {key: sound[key] for key in ("apiVersion", "kind", "metadata")}
    if method != "PATCH":
        start = sound if method == "PUT" and part != "scale" else {**bare, "kind": "Scale"} if part == "scale" else {}
        sent = draw(spoilt(start, shape) | spoilt(start, _ASIDE) | JUNK)
        return Deed(method, path if method != "DELETE" else f"{where}/{name}", _written(sent))
    how = draw(st.sampled_from(("merge", "json-patch", "strategic", "apply")))
    if how == "json-patch":
        sent = draw(st.lists(_operations(shape), max_size=3) | JUNK)
    else:
        sent = draw(spoilt(bare if how == "apply" else {}, shape) | JUNK | spoilt(sound, shape))
    return Deed(method, f"{path}?force=true" if how == "apply" else path, _written(sent), HOW[how])


def _leaf(kind: str) -> Shape:
    return Shape(kind)


_ASIDE = Shape(
    "object",
    fields={
        "spec": Shape("object", fields={key: _leaf("string") for key in ("replicas", "expirationSeconds", "audiences")}),
        "metadata": Shape("object", fields={key: _leaf("string") for key in ("name", "namespace", "resourceVersion", "uid")}),
        "target": Shape("object", fields={"name": _leaf("string")}),
        "deleteOptions": Shape("object", fields={key: _leaf("string") for key in ("gracePeriodSeconds", "preconditions")}),
        "preconditions": Shape("object", fields={key: _leaf("string") for key in ("uid", "resourceVersion")}),
        **{key: _leaf("string") for key in ("kind", "apiVersion", "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "dryRun")},
    },
)
"""What is sent that is no object: scales, bindings, evictions, requests for tokens, options of deletes."""


@st.composite
def _operations(draw: st.DrawFn, shape: Shape) -> Any:
    """An operation of a JSON patch."""
    name = draw(st.sampled_from(("add", "remove", "replace", "test", "copy", "move")))
    sound = {"op": name, "path": _pointer(draw(ways(shape))), "from": _pointer(draw(ways(shape))), "value": draw(JUNK)}
    return draw(st.just(sound) | st.builds(put, st.just(sound), st.sampled_from([("op",), ("path",), ("from",)]), JUNK))


def _pointer(way: tuple[str | int, ...]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in way)


def _written(value: Any) -> bytes:
    return json.dumps(value).encode()


def steps(deeds: tuple[Deed, ...]) -> Iterator[Deed]:
    """The deeds, and a look at what has come of each."""
    for deed in deeds:
        yield deed
        yield Deed("GET", deed.path.partition("?")[0], b"", "")
