"""Short ways to ask an `Api`: the requests and bodies that tests of it have in common."""

from typing import Any

from engine.ids import Kind
from grove_sandbox.api.request import Request
from grove_sandbox.api.verbs import Api
from grove_sandbox.clock import VirtualClock

POD = Kind("", "v1", "Pod", "pods", status=True)
CONFIG = Kind("", "v1", "ConfigMap", "configmaps")
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False, status=True)
TOY = Kind("example.com", "v1", "Toy", "toys")


def fresh(**options: Any) -> Api:
    """An API with nothing in it but its first namespaces."""
    return Api(VirtualClock(), seed=1, **options)


def about(api: Api, kind: Kind, name: str = "", namespace: str = "default") -> Request:
    """A request about an object or a collection."""
    served = api.catalogue.find(kind.group, kind.version, kind.plural)
    return Request(served, namespace if kind.namespaced else "", name, manager="test")


def config(name: str, /, **metadata: Any) -> dict[str, Any]:
    """A config map."""
    return {"metadata": {"name": name, **metadata}, "data": {"k": "v"}}


def pod(name: str, /, **spec: Any) -> dict[str, Any]:
    """A pod with one container."""
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "i:1"}], **spec}}


def toys() -> dict[str, Any]:
    """The CRD of toys, which may be anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "toys", "kind": "Toy"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def toy(name: str, /, **metadata: Any) -> dict[str, Any]:
    """A toy."""
    return {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": name, **metadata}}
