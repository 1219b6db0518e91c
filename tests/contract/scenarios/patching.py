"""Patching: the three ordinary sorts of patch, and how each is refused."""

from typing import Any

from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.bodies import MAPS, PODS, config, pod
from tests.contract.scenarios.updating import TEMPLATES, pod_template


def _operated(title: str, *operations: Any) -> Step:
    """A JSON patch of the config map."""
    return Step(title, "PATCH", f"{MAPS}/a", list(operations), "json-patch")


JSON_PATCH = Scenario(
    "json-patch",
    (
        Step("a config map", "POST", MAPS, config(data={"a": "1", "b": "2"}), keep={"rv": "metadata.resourceVersion"}),
        _operated("add", {"op": "add", "path": "/data/c~1d", "value": "3"}),
        _operated("remove", {"op": "remove", "path": "/data/b"}),
        _operated("replace", {"op": "replace", "path": "/data/a", "value": "9"}),
        _operated(
            "copy and move", {"op": "copy", "from": "/data/a", "path": "/data/e"}, {"op": "move", "from": "/data/a", "path": "/data/f"}
        ),
        _operated("a test that holds", {"op": "test", "path": "/data/f", "value": "9"}, {"op": "add", "path": "/data/g", "value": "1"}),
        _operated("a test that fails", {"op": "test", "path": "/data/f", "value": "0"}, {"op": "add", "path": "/data/h", "value": "1"}),
        _operated("a test of nothing", {"op": "test", "path": "/data/none", "value": "0"}),
        _operated("remove what is not there", {"op": "remove", "path": "/data/none"}),
        _operated("replace what is not there", {"op": "replace", "path": "/data/none", "value": "x"}),
        _operated("add below nothing", {"op": "add", "path": "/nowhere/none", "value": "x"}),
        _operated(
            "at an old revision",
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "{rv}"},
            {"op": "add", "path": "/data/i", "value": "1"},
        ),
        Step("no list", "PATCH", f"{MAPS}/a", {"op": "add"}, "json-patch"),
        _operated("no such operation", {"op": "nonsense", "path": "/data"}),
        _operated("nothing changes"),
        _operated("a wrong type comes of it", {"op": "add", "path": "/data/n", "value": 5}),
        Step(
            "an unknown field comes of it",
            "PATCH",
            f"{MAPS}/a?fieldValidation=Strict",
            [{"op": "add", "path": "/foo", "value": 5}],
            "json-patch",
        ),
    ),
)

MERGE_PATCH = Scenario(
    "merge-patch",
    (
        Step("a config map", "POST", MAPS, config(data={"a": "1", "b": "2"}), keep={"rv": "metadata.resourceVersion"}),
        Step("null removes", "PATCH", f"{MAPS}/a", {"data": {"a": None, "c": "3"}}, "merge"),
        Step("nothing changes", "PATCH", f"{MAPS}/a", {}, "merge"),
        Step("at an old revision", "PATCH", f"{MAPS}/a", {"metadata": {"resourceVersion": "{rv}"}, "data": {"a": "1"}}, "merge"),
        Step("a list", "PATCH", f"{MAPS}/a", [1], "merge"),
        Step("strict", "PATCH", f"{MAPS}/a?fieldValidation=Strict", {"foo": 1}, "merge"),
        Step("a wrong type comes of it", "PATCH", f"{MAPS}/a", {"data": {"n": 5}}, "merge"),
        Step("another kind", "PATCH", f"{MAPS}/a", {"kind": "Pod"}, "merge"),
        Step("a dry run", "PATCH", f"{MAPS}/a?dryRun=All", {"data": {"dry": "run"}}, "merge"),
        Step("all data", "PATCH", f"{MAPS}/a", {"data": None}, "merge"),
        Step("force is for apply alone", "PATCH", f"{MAPS}/a?force=true", {"data": {"x": "y"}}, "merge"),
    ),
)

TEMPLATE = f"{TEMPLATES}/d"


def _patched(title: str, **spec: Any) -> Step:
    """A strategic patch of the pods of a template."""
    return Step(title, "PATCH", TEMPLATE, {"template": {"spec": spec}}, "strategic")


def _main(title: str, *env: Any) -> Step:
    """A strategic patch of the environment of its main container."""
    return _patched(title, containers=[{"name": "main", "env": list(env)}])


def _finalizers(title: str, **metadata: Any) -> Step:
    return Step(title, "PATCH", f"{PODS}/a", {"metadata": metadata}, "strategic")


_ORDER = {"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}]}
STRATEGIC = Scenario(
    "strategic-patch",
    (
        Step("a template", "POST", TEMPLATES, pod_template({"name": "main", "image": "i:1"})),
        _patched("a container more", containers=[{"name": "side", "image": "s:1"}]),
        _main("an environment", {"name": "A", "value": "1"}, {"name": "B", "value": "2"}),
        _main("merged by name", {"name": "B", "value": "3"}, {"name": "C", "value": "4"}),
        _patched("one deleted", containers=[{"name": "side", "$patch": "delete"}]),
        _main("replaced", {"$patch": "replace"}, {"name": "Z", "value": "26"}),
        _patched("an order", **_ORDER, containers=[{"name": "side", "image": "s:2"}]),
        _patched("another order", **{"$setElementOrder/containers": [{"name": "main"}, {"name": "side"}]}),
        _patched("a volume", volumes=[{"name": "v", "emptyDir": {}}]),
        # The server tries a patch on the object of its watch cache first. Without the volume there, it warns of an unknown $retainKeys.
        Step("", "AWAIT", f"{TEMPLATE}?resourceVersion=0", {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}),
        _patched("retained keys", volumes=[{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]),
        Step("a map replaced", "PATCH", TEMPLATE, {"template": {"metadata": {"labels": {"$patch": "replace", "x": "y"}}}}, "strategic"),
        _patched("no merge key", containers=[{"image": "x"}]),
        _patched("a directive that is none", containers=[{"name": "main", "$patch": "nonsense"}]),
        Step("a pod", "POST", PODS, {**pod(), "metadata": {"name": "a", "finalizers": ["example.com/a", "example.com/b"]}}),
        _finalizers("a finalizer more", finalizers=["example.com/c"]),
        _finalizers("one from the list", **{"$deleteFromPrimitiveList/finalizers": ["example.com/b"]}),
        _finalizers("all", finalizers=None),
    ),
)

SCENARIOS = (JSON_PATCH, MERGE_PATCH, STRATEGIC)
