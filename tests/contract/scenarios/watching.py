"""Watching: which events follow a revision, through which selector, and how a watch is refused."""

from tests.contract.scenario import Scenario, Step, watched
from tests.contract.scenarios.bodies import MAPS, NS, PODS, config, pod
from tests.contract.scenarios.deleting import HOLD, options

WATCHING = Scenario(
    "watching",
    (
        Step("from here on", "POST", MAPS, config("start"), keep={"rv": "metadata.resourceVersion"}),
        Step("made", "POST", MAPS, config("a", labels={"x": "1"})),
        Step("changed", "PATCH", f"{MAPS}/a", {"data": {"k": "w"}}, "merge"),
        Step("not changed", "PATCH", f"{MAPS}/a", {"data": {"k": "w"}}, "merge"),
        Step("leaves the selection", "PATCH", f"{MAPS}/a", {"metadata": {"labels": {"x": "2"}}}, "merge"),
        Step("enters it again", "PATCH", f"{MAPS}/a", {"metadata": {"labels": {"x": "1"}}}, "merge"),
        Step("held", "PATCH", f"{MAPS}/a", {"metadata": {"finalizers": HOLD}}, "merge"),
        Step("marked", "DELETE", f"{MAPS}/a"),
        Step("released", "PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}}, "merge"),
        Step("another, made and gone", "POST", MAPS, config("b")),
        Step("gone", "DELETE", f"{MAPS}/b"),
        watched("everything", MAPS, resourceVersion="{rv}"),
        watched("through a selector", MAPS, resourceVersion="{rv}", labelSelector="x%3D1"),
        watched("one by name", MAPS, resourceVersion="{rv}", fieldSelector="metadata.name%3Db"),
        watched("from the beginning", MAPS, labelSelector="x"),
        watched("one as it is", MAPS, fieldSelector="metadata.name%3Dstart"),
        watched("one as it is, at any revision", MAPS, fieldSelector="metadata.name%3Dstart", resourceVersion="0"),
        watched("no revision", MAPS, resourceVersion="x"),
        watched("a bad selector", MAPS, labelSelector="a%20b"),
        watched("initial events need a match", MAPS, sendInitialEvents="true"),
        watched(
            "initial events and where they end",
            MAPS,
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            allowWatchBookmarks="true",
            labelSelector="x",
        ),
    ),
)

BIND = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "{ns}-node"}}
DYING = Scenario(
    "watching-a-pod-die",
    (
        Step("a node", "POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "{ns}-node"}}),
        Step("a pod", "POST", PODS, pod("a"), keep={"rv": "metadata.resourceVersion"}),
        Step("on a node", "POST", f"{PODS}/a/binding", BIND),
        Step("ready", "PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, "merge"),
        Step("asked to go", "DELETE", f"{PODS}/a"),
        Step("gone", "DELETE", f"{PODS}/a", options(gracePeriodSeconds=0)),
        watched("the whole story", PODS, resourceVersion="{rv}"),
        watched("as its node's kubelet sees it", PODS, resourceVersion="{rv}", fieldSelector="spec.nodeName%3D{ns}-node"),
        watched("in all namespaces", "/api/v1/pods", resourceVersion="{rv}", fieldSelector="metadata.namespace%3D{ns}"),
        Step("the node goes", "DELETE", "/api/v1/nodes/{ns}-node"),
        Step("nothing is left", "GET", f"{NS}/pods"),
    ),
)

SCENARIOS = (WATCHING, DYING)
