"""Wrong: values of another type than they should have, in places where a server reads them before it judges."""

from typing import Any

from tests.contract.scenario import Scenario, Step
from tests.contract.scenarios.applying import applied
from tests.contract.scenarios.custom import TOYS, toy, with_toys

PODS, NODES, LEASES = "/api/v1/namespaces/{ns}/pods", "/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases"
MAPS = "/api/v1/namespaces/{ns}/configmaps"


def _map(name: Any = "a", /, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def _managed(**entry: Any) -> dict[str, Any]:
    """An entry of the managers as it should be, with something else in it."""
    usual = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}
    return {**usual, **entry}


def _managers(name: str, **entry: Any) -> dict[str, Any]:
    return _map(name, managedFields=[_managed(**entry)])


MANAGERS = Scenario(
    "wrong-managers",
    (
        Step("as it should be", "POST", MAPS, _managers("good")),
        Step("fields that are a text", "POST", MAPS, _managers("text", fieldsV1="x")),
        Step("fields that are a number", "POST", MAPS, _managers("number", fieldsV1=1)),
        Step("fields that are a list", "POST", MAPS, _managers("list", fieldsV1=["f:data"])),
        Step("a field that is a text", "POST", MAPS, _managers("inner", fieldsV1={"f:data": "x"})),
        Step("a field that is null", "POST", MAPS, _managers("null", fieldsV1={"f:data": None})),
        Step("a step of no sort", "POST", MAPS, _managers("step", fieldsV1={"data": {}})),
        Step("a key that is none", "POST", MAPS, _managers("key", fieldsV1={"k:x": {}})),
        Step("a value that is none", "POST", MAPS, _managers("value", fieldsV1={"v:x": {}})),
        Step("an index that is none", "POST", MAPS, _managers("index", fieldsV1={"i:x": {}})),
        Step("no fields", "POST", MAPS, _managers("none", fieldsV1=None)),
        Step("fields of another type", "POST", MAPS, _managers("type", fieldsType="FieldsV2")),
        Step("another operation", "POST", MAPS, _managers("operation", operation="Guess")),
        Step("no operation", "POST", MAPS, _managers("nothing", operation="")),
        Step("no manager", "POST", MAPS, _managers("nobody", manager="")),
        Step("a version that is a number", "POST", MAPS, _managers("version", apiVersion=1)),
        Step("an entry that is a text", "POST", MAPS, _map("entry", managedFields=["x"])),
        Step("an entry that is null", "POST", MAPS, _map("nil", managedFields=[None])),
        Step("managers that are a text", "POST", MAPS, _map("word", managedFields="x")),
        Step("a time that is none", "POST", MAPS, _managers("time", time="x")),
        Step(
            "a patch with wrong fields",
            "PATCH",
            f"{MAPS}/good",
            {"data": {"a": "b"}, "metadata": {"managedFields": [_managed(fieldsV1=1)]}},
            "merge",
        ),
        Step(
            "a patch with a wrong step", "PATCH", f"{MAPS}/good", {"metadata": {"managedFields": [_managed(fieldsV1={"x": {}})]}}, "merge"
        ),
        Step("as it is", "GET", f"{MAPS}/good"),
    ),
)

APPLIED = Scenario(
    "wrong-applied",
    (
        Step("a map", "POST", MAPS, _map()),
        applied("a version that is a number", f"{MAPS}/a", {**_map(), "apiVersion": 1}),
        applied("a version that is a list", f"{MAPS}/a", {**_map(), "apiVersion": ["v1"]}),
        applied("a kind that is a number", f"{MAPS}/a", {**_map(), "kind": 1}),
        applied("no version", f"{MAPS}/a", {"kind": "ConfigMap", "metadata": {"name": "a"}}),
        applied("a version with two slashes", f"{MAPS}/a", {**_map(), "apiVersion": "a/b/c"}),
        applied("a name that is a number", f"{MAPS}/a", _map(1)),
        applied("a namespace that is a number", f"{MAPS}/a", _map(namespace=1)),
        applied("metadata that are a text", f"{MAPS}/a", {**_map(), "metadata": "x"}),
        applied("metadata that are a list", f"{MAPS}/a", {**_map(), "metadata": []}),
        applied("no metadata", f"{MAPS}/a", {"apiVersion": "v1", "kind": "ConfigMap"}),
        applied("a list", f"{MAPS}/a", []),
        applied("a text", f"{MAPS}/a", "x"),
        applied("nothing", f"{MAPS}/a", None),
        Step("a merge patch that is a list", "PATCH", f"{MAPS}/a", [], "merge"),
        Step("a merge patch that is a text", "PATCH", f"{MAPS}/a", "x", "merge"),
        Step("a merge patch that is null", "PATCH", f"{MAPS}/a", None, "merge"),
        Step("a strategic patch that is a list", "PATCH", f"{MAPS}/a", [], "strategic"),
        Step("keys to retain that are a text", "PATCH", f"{MAPS}/a", {"$retainKeys": "x"}, "strategic"),
        Step(
            "an order that is a number",
            "PATCH",
            f"{MAPS}/a",
            {"metadata": {"finalizers": [], "$setElementOrder/finalizers": 1}},
            "strategic",
        ),
        Step(
            "items to delete that are an object",
            "PATCH",
            f"{MAPS}/a",
            {"metadata": {"$deleteFromPrimitiveList/finalizers": {}}},
            "strategic",
        ),
        Step("a kind that is a number, in a merge patch", "PATCH", f"{MAPS}/a", {"kind": 1}, "merge"),
        Step("a version that is a list, in a merge patch", "PATCH", f"{MAPS}/a", {"apiVersion": []}, "merge"),
        Step("a new kind that is a number", "POST", MAPS, {**_map("b"), "kind": 1}),
        Step("a new version that is a list", "POST", MAPS, {**_map("b"), "apiVersion": []}),
        Step("a delete with a dry run that is a number", "DELETE", f"{MAPS}/a", {"dryRun": 1.5}),
        Step("a delete with a dry run of truths", "DELETE", f"{MAPS}/a", {"dryRun": [True]}),
        Step("a delete with preconditions that are a list", "DELETE", f"{MAPS}/a", {"preconditions": []}),
        Step("a delete with a uid that is a number", "DELETE", f"{MAPS}/a", {"preconditions": {"uid": 5}}),
        Step("a delete with a way that is a list", "DELETE", f"{MAPS}/a", {"propagationPolicy": []}),
        Step("a delete with orphans in words", "DELETE", f"{MAPS}/a", {"orphanDependents": "yes"}),
        Step("a delete with grace in words", "DELETE", f"{MAPS}/a", {"gracePeriodSeconds": "yes"}),
        Step(
            "a delete with no options but null",
            "DELETE",
            f"{MAPS}/none",
            {"gracePeriodSeconds": None, "preconditions": None, "dryRun": None},
        ),
        Step("a merge patch to null", "PATCH", f"{MAPS}/a", {"metadata": None}, "merge"),
        Step("metadata in a merge patch that are a text", "PATCH", f"{MAPS}/a", {"metadata": "x"}, "merge"),
        Step("a JSON patch that is an object", "PATCH", f"{MAPS}/a", {"op": "add"}, "json-patch"),
        Step("a JSON patch of texts", "PATCH", f"{MAPS}/a", ["add"], "json-patch"),
        Step("a JSON patch to a number", "PATCH", f"{MAPS}/a", [{"op": "replace", "path": "", "value": 1}], "json-patch"),
        Step("a JSON patch to a list", "PATCH", f"{MAPS}/a", [{"op": "replace", "path": "", "value": []}], "json-patch"),
        Step("a JSON patch of null", "PATCH", f"{MAPS}/a", [None], "json-patch"),
        Step("a JSON patch without a path", "PATCH", f"{MAPS}/a", [{"op": "add", "value": 1}], "json-patch"),
    ),
)

_POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}}


def _since(time: Any) -> dict[str, Any]:
    """A status of a pod with a condition of that time."""
    return {"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}]}}


def _asked(title: str, time: Any) -> Step:
    return Step(title, "PATCH", f"{PODS}/p/status", _since(time), "merge")


_LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}


def _lease(name: str, time: Any) -> dict[str, Any]:
    return {**_LEASE, "metadata": {"name": name}, "spec": {"renewTime": time}}


TIMES = Scenario(
    "times",
    (
        Step("a pod", "POST", PODS, _POD),
        _asked("a time", "2026-01-02T03:04:05Z"),
        _asked("a time elsewhere", "2026-01-02T03:04:05+02:00"),
        _asked("a part of a second", "2026-01-02T03:04:05.678Z"),
        _asked("a word", "yesterday"),
        _asked("nothing", ""),
        _asked("a day", "2026-01-02"),
        _asked("a month that there is not", "2026-13-02T03:04:05Z"),
        _asked("a day that there is not", "2026-02-30T03:04:05Z"),
        _asked("an hour that there is not", "2026-01-02T24:04:05Z"),
        _asked("a minute that there is not", "2026-01-02T03:60:05Z"),
        _asked("a second that there is not", "2026-01-02T03:04:60Z"),
        _asked("no place", "2026-01-02T03:04:05"),
        _asked("a space for the T", "2026-01-02 03:04:05Z"),
        _asked("something behind it", "2026-01-02T03:04:05Zulu"),
        _asked("a short month", "2026-1-02T03:04:05Z"),
        _asked("a short hour", "2026-01-02T3:04:05Z"),
        _asked("a place that is none", "2026-01-02T03:04:05+2"),
        _asked("a place too far away", "2026-01-02T03:04:05+25:00"),
        _asked("a year of five figures", "12026-01-02T03:04:05Z"),
        _asked("a comma", "2026-01-02T03:04:05,5Z"),
        _asked("a number", 5),
        _asked("a list", []),
        _asked("a truth", True),
        Step("of another name", "POST", PODS, {**_POD, "metadata": {"name": "q", "creationTimestamp": "yesterday"}}),
        Step("a lease in microseconds", "POST", LEASES, _lease("micro", "2026-01-02T03:04:05.678901Z")),
        Step("a lease elsewhere", "POST", LEASES, _lease("far", "2026-01-02T03:04:05.678901-02:00")),
        Step("a lease in seconds", "POST", LEASES, _lease("seconds", "2026-01-02T03:04:05Z")),
        Step("a lease in milliseconds", "POST", LEASES, _lease("milli", "2026-01-02T03:04:05.678Z")),
        Step("a lease in nanoseconds", "POST", LEASES, _lease("nano", "2026-01-02T03:04:05.678901234Z")),
        Step("a lease in words", "POST", LEASES, _lease("words", "now")),
        Step("a lease in numbers", "POST", LEASES, _lease("numbers", 1)),
        *with_toys(
            Step("a toy", "POST", TOYS, toy()),
            *(
                Step(f"since {time}", "PATCH", f"{TOYS}/a", {"spec": {"since": time}}, "merge")
                for time in (
                    "yesterday",
                    "",
                    "2026-01-02",
                    "2026-13-02T03:04:05Z",
                    "2026-02-30T03:04:05Z",
                    "2026-01-02T24:04:05Z",
                    "2026-01-02T03:04:60Z",
                    "2026-01-02T03:04:05",
                    "2026-01-02 03:04:05Z",
                    "2026-01-02t03:04:05z",
                    "2026-01-02T03:04:05.678901234+02:00",
                    "2026-01-02T03:04:05+25:00",
                )
            ),
            Step("a number", "PATCH", f"{TOYS}/a", {"spec": {"since": 5}}, "merge"),
            Step("a broken number", "PATCH", f"{TOYS}/a", {"spec": {"since": 5.5}}, "merge"),
            Step("a truth", "PATCH", f"{TOYS}/a", {"spec": {"since": True}}, "merge"),
            Step("an object", "PATCH", f"{TOYS}/a", {"spec": {"since": {"a": 1}}}, "merge"),
            Step("a toy of yesterday", "POST", TOYS, {**toy("b"), "metadata": {"name": "b", "creationTimestamp": "yesterday"}}),
            Step("a toy that goes yesterday", "PATCH", f"{TOYS}/a", {"metadata": {"deletionTimestamp": "yesterday"}}, "merge"),
        ),
    ),
)

NULLS = Scenario(
    "nulls",
    with_toys(
        Step("a toy", "POST", TOYS, toy(parts=[{"name": "wheel"}], tags=["x"], few=["a"])),
        Step("a part that is null at birth", "POST", TOYS, toy("b", parts=[None])),
        Step("a tag that is null at birth", "POST", TOYS, toy("b", tags=[None])),
        Step("one of few that is null at birth", "POST", TOYS, toy("b", few=[None])),
        Step("a label that is null at birth", "POST", TOYS, toy("c", labels={"a": None})),
        Step("a part that is null", "PATCH", f"{TOYS}/a", {"spec": {"parts": [None]}}, "merge"),
        Step("a part more that is null", "PATCH", f"{TOYS}/a", {"spec": {"parts": [{"name": "wheel"}, None]}}, "merge"),
        Step("a tag that is null", "PATCH", f"{TOYS}/a", {"spec": {"tags": [None]}}, "merge"),
        Step("one of few that is null", "PATCH", f"{TOYS}/a", {"spec": {"few": ["a", None]}}, "merge"),
        Step("lists that become null", "PATCH", f"{TOYS}/a", [{"op": "replace", "path": "/spec/parts", "value": None}], "json-patch"),
        Step("as it is", "GET", f"{TOYS}/a"),
        Step("a secret of null", "POST", "/api/v1/namespaces/{ns}/secrets", {"metadata": {"name": "s"}, "data": {"a": None}}),
        Step("a map of null", "POST", MAPS, {**_map(), "data": {"a": None}}),
        Step("a node of no amount", "POST", NODES, {"metadata": {"name": "n-{ns}"}, "status": {"capacity": {"cpu": None}}}),
        Step("", "DELETE", f"{NODES}/n-{{ns}}"),
        Step("a pod with a container that is null", "POST", PODS, {**_POD, "spec": {"containers": [None]}}),
        Step("a pod with a finalizer that is null", "POST", PODS, {**_POD, "metadata": {"name": "p", "finalizers": [None]}}),
        Step("a pod with an owner that is null", "POST", PODS, {**_POD, "metadata": {"name": "p", "ownerReferences": [None]}}),
    ),
)

SCENARIOS = (MANAGERS, APPLIED, TIMES, NULLS)
