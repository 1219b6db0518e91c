"""Custom kinds: a CRD's schema at work — defaults, pruning, validation — and the generation rules of custom objects."""

from typing import Any

from tests.contract.scenario import Scenario, Step, watched
from tests.contract.scenarios.applying import applied

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "{ns}.example.com"
TOYS = f"/apis/{GROUP}/v1/namespaces/{{ns}}/toys"

_SPEC = {
    "type": "object",
    "required": ["color"],
    "properties": {
        "color": {"type": "string", "enum": ["red", "blue"]},
        "replicas": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "port": {"x-kubernetes-int-or-string": True},
        "since": {"type": "string", "format": "date-time"},
        "maybe": {"type": "string", "nullable": True},
        "given": {"type": "string", "default": "yes"},
        "flag": {"type": "boolean"},
        "ratio": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "few": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 3}},
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "limits": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nested": {"type": "object", "default": {}, "properties": {"depth": {"type": "integer", "default": 7}}},
    },
}
_STATUS = {"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}, "selector": {"type": "string"}}}


def definition(**version: Any) -> dict[str, Any]:
    """The CRD of toys."""
    names = {"plural": "toys", "kind": "Toy", "shortNames": ["ty"], "categories": ["playthings"]}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"toys.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
                    "subresources": {"status": {}, "scale": scale},
                    **version,
                }
            ],
        },
    }


def toy(name: str = "a", /, **spec: Any) -> dict[str, Any]:
    """A toy."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Toy", "metadata": {"name": name}, "spec": {"color": "red", **spec}}


def with_toys(*steps: Step) -> tuple[Step, ...]:
    """Steps between the coming and the going of the CRD."""
    return (
        Step("the kind is defined", "POST", CRDS, definition()),
        Step("", "AWAIT", f"/apis/{GROUP}/v1"),
        *steps,
        Step("the kind goes", "DELETE", f"{CRDS}/toys.{GROUP}"),
    )


DEFINING = Scenario(
    "defining",
    with_toys(
        Step("a toy", "POST", TOYS, toy()),
        Step("not found", "GET", f"{TOYS}/none"),
        Step("a name that does not fit", "POST", CRDS, {**definition(), "metadata": {"name": "other"}}),
        Step("the same again", "POST", CRDS, definition()),
        Step("a category more", "PATCH", f"{CRDS}/toys.{GROUP}", {"spec": {"names": {"categories": ["playthings", "more"]}}}, "merge"),
        Step("", "AWAIT", f"{CRDS}/toys.{GROUP}", {"status": {"acceptedNames": {"categories": ["playthings", "more"]}}}),
        Step("another plural", "PATCH", f"{CRDS}/toys.{GROUP}", {"spec": {"names": {"plural": "games"}}}, "merge"),
    ),
)

SCHEMA = Scenario(
    "schema",
    with_toys(
        Step("defaults", "POST", TOYS, toy(parts=[{"name": "wheel"}])),
        Step(
            "pruning",
            "POST",
            f"{TOYS}?fieldValidation=Ignore",
            toy("pruned", unknown=1, nested={"depth": 1, "x": 2}, open={"any": ["thing"]}),
        ),
        Step("warned", "POST", TOYS, toy("warned", unknown=1)),
        Step("strict", "POST", f"{TOYS}?fieldValidation=Strict", toy("strict", unknown=1, parts=[{"name": "a", "x": 1}])),
        Step("nulls", "POST", TOYS, toy("nulls", given=None, maybe=None)),
        Step("a null that may not be", "POST", TOYS, toy("null", name=None)),
        Step("a wrong type", "POST", TOYS, toy("b", replicas="many")),
        Step("several wrong types", "POST", TOYS, toy("b", replicas=1.5, flag="yes", labels={"a": 1}, tags="x")),
        Step("a choice", "POST", TOYS, toy("b", color="green")),
        Step("something required", "POST", TOYS, {**toy("b"), "spec": {}}),
        Step("required in a list", "POST", TOYS, toy("b", parts=[{"size": 2}])),
        Step("bounds", "POST", TOYS, toy("b", replicas=11)),
        Step("the other bound", "POST", TOYS, toy("b", replicas=-1)),
        Step("too short", "POST", TOYS, toy("b", name="a")),
        Step("too long", "POST", TOYS, toy("b", name="abcdef")),
        Step("a pattern", "POST", TOYS, toy("b", name="ABC")),
        Step("a time", "POST", TOYS, toy("b", since="yesterday")),
        Step("a good time", "POST", TOYS, toy("timed", since="2026-01-01T00:00:00Z")),
        Step("a number or a text", "POST", TOYS, toy("port", port="http")),
        Step("neither", "POST", TOYS, toy("b", port=True)),
        Step("too few", "POST", TOYS, toy("b", few=[])),
        Step("too many", "POST", TOYS, toy("b", few=["a", "b", "c"])),
        Step("twice in a set", "POST", TOYS, toy("b", tags=["x", "x"])),
        Step("twice by key", "POST", TOYS, toy("b", parts=[{"name": "x"}, {"name": "x"}])),
        Step("a text for an object", "POST", TOYS, {**toy("b"), "spec": "x"}),
        Step("a bad label", "POST", TOYS, {**toy("b"), "metadata": {"name": "b", "labels": {"a": "not good"}}}),
        Step("a number for a label", "POST", TOYS, {**toy("b"), "metadata": {"name": "b", "labels": {"a": 1}}}),
        Step("a plain finalizer", "POST", TOYS, {**toy("b"), "metadata": {"name": "b", "finalizers": ["plain"]}}),
        Step("the same in a patch", "PATCH", f"{TOYS}/b", {"metadata": {"finalizers": ["plain", "other"]}}, "merge"),
        Step("", "PATCH", f"{TOYS}/b", {"metadata": {"finalizers": None}}, "merge"),
        Step("", "DELETE", f"{TOYS}/b"),
        Step("no kind", "POST", TOYS, {"metadata": {"name": "b"}, "spec": {"color": "red"}}),
        Step("another kind", "POST", TOYS, {**toy("b"), "kind": "Game"}),
        Step("another version", "POST", f"{TOYS}?fieldValidation=Ignore", {**toy("b"), "apiVersion": f"{GROUP}/v2"}),
        Step("an invalid patch", "PATCH", f"{TOYS}/a", {"spec": {"color": "green"}}, "merge"),
        Step("a strict patch", "PATCH", f"{TOYS}/a?fieldValidation=Strict", {"spec": {"unknown": 1}}, "merge"),
        Step("no strategic patch", "PATCH", f"{TOYS}/a", {"spec": {"color": "blue"}}, "strategic"),
    ),
)

LIFE = Scenario(
    "custom-life",
    with_toys(
        Step("a toy", "POST", TOYS, {**toy(replicas=2), "status": {"phase": "Ignored"}}, keep={"rv": "metadata.resourceVersion"}),
        Step("no revision in a PUT", "PUT", f"{TOYS}/a", toy(replicas=3)),
        Step("a PUT", "PUT", f"{TOYS}/a", {**toy(replicas=3), "metadata": {"name": "a", "resourceVersion": "{rv}"}}),
        Step("a stale PUT", "PUT", f"{TOYS}/a", {**toy(replicas=4), "metadata": {"name": "a", "resourceVersion": "{rv}"}}),
        Step("labels", "PATCH", f"{TOYS}/a", {"metadata": {"labels": {"x": "y"}}}, "merge"),
        Step("a status through the object", "PATCH", f"{TOYS}/a", {"status": {"phase": "No"}}, "merge"),
        Step("a status", "PATCH", f"{TOYS}/a/status", {"status": {"phase": "Good", "replicas": 3, "selector": "a=b"}}, "merge"),
        Step("the same status", "PATCH", f"{TOYS}/a/status", {"status": {"phase": "Good"}}, "merge"),
        Step(
            "a spec and labels through the status",
            "PATCH",
            f"{TOYS}/a/status",
            {"spec": {"replicas": 9}, "metadata": {"labels": {"z": "z"}}},
            "merge",
        ),
        Step("a bad status", "PATCH", f"{TOYS}/a/status", {"status": {"replicas": "x"}}, "merge"),
        Step("the scale", "GET", f"{TOYS}/a/scale"),
        Step("scaled", "PATCH", f"{TOYS}/a/scale?fieldManager=scaler", {"spec": {"replicas": 5}}, "merge"),
        Step("scaled too far", "PATCH", f"{TOYS}/a/scale", {"spec": {"replicas": 50}}, "merge"),
        Step("scaled below nothing", "PATCH", f"{TOYS}/a/scale", {"spec": {"replicas": -1}}, "merge"),
        Step("as it is", "GET", f"{TOYS}/a"),
        Step("its status", "GET", f"{TOYS}/a/status"),
        Step("a PUT of what is not there", "PUT", f"{TOYS}/none", {**toy("none"), "metadata": {"name": "none", "resourceVersion": "1"}}),
        Step("a finalizer", "PATCH", f"{TOYS}/a", {"metadata": {"finalizers": ["example.com/hold"]}}, "merge"),
        Step("deleted, but held", "DELETE", f"{TOYS}/a"),
        Step("deleted again", "DELETE", f"{TOYS}/a"),
        Step("a finalizer more", "PATCH", f"{TOYS}/a", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}, "merge"),
        Step("released", "PATCH", f"{TOYS}/a", {"metadata": {"finalizers": None}}, "merge"),
        Step("gone", "GET", f"{TOYS}/a"),
        watched("all of it", TOYS, resourceVersion="{rv}"),
        # Of a kind that is new, no server remembers what was before it.
        watched("from too long ago", TOYS, resourceVersion="1"),
    ),
)

B = f"{TOYS}/b"
APPLYING = Scenario(
    "custom-applying",
    with_toys(
        applied("creates", B, toy("b", replicas=2, tags=["x"], parts=[{"name": "wheel", "size": 1}], labels={"a": "1"}, limits={"l": "1"})),
        applied("drops", B, toy("b", tags=["x", "z"], parts=[{"name": "door"}], limits={"m": "2"})),
        applied(
            "another",
            B,
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "Toy",
                "metadata": {"name": "b"},
                "spec": {"tags": ["y"], "parts": [{"name": "roof"}], "labels": {"b": "2"}},
            },
            "two",
        ),
        applied(
            "in conflict",
            B,
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "Toy",
                "metadata": {"name": "b"},
                "spec": {"color": "blue", "limits": {"n": "3"}, "parts": [{"name": "door", "size": 9}]},
            },
            "two",
        ),
        applied("the other goes", B, {"apiVersion": f"{GROUP}/v1", "kind": "Toy", "metadata": {"name": "b"}}, "two"),
        applied(
            "a status",
            f"{B}/status",
            {"apiVersion": f"{GROUP}/v1", "kind": "Toy", "metadata": {"name": "b"}, "status": {"phase": "Good"}},
            "controller",
        ),
        Step(
            "an ordinary write",
            "PATCH",
            f"{B}?fieldManager=writer",
            {"spec": {"open": {"deep": {"er": 1}, "list": [1]}, "replicas": 4}},
            "merge",
        ),
        applied("below an open field", B, toy("b", open={"deep": {"er": 1, "est": 2}}), "three"),
        applied("an unknown field", B, toy("b", unknown=1), "three"),
        applied("an invalid value", B, toy("b", replicas=99), "three", force=True),
        applied("twice by key", B, toy("b", parts=[{"name": "x"}, {"name": "x"}]), "three"),
    ),
)

SCENARIOS = (DEFINING, SCHEMA, LIFE, APPLYING)
