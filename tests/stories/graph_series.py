"""The edits of graphs that are compared on a real API server: multi-node services on Grove and in LeaderWorkerSets, Ingresses, adapters."""

from typing import Any

from engine.resource import Body
from engine.runtime.sync_report import Ending
from resources.base import kinds, labels
from tests.controlplane.enforcement import INGRESS, LEADER_WORKER_SET, Policy
from tests.stories.edits import (
    Act,
    Edit,
    EditSeries,
    all_deleted,
    applied,
    collected,
    deleted,
    enforced,
    lifted,
    limited,
    patched,
    scaled,
    together,
    unlabelled,
)
from tests.stories.graphs import graph, service

ON: Body = {"scalingAdapter": {"enabled": True}}
HOST: Body = {"enabled": True, "host": "chat", "ingressControllerClassName": "nginx"}
PATHS: dict[str, dict[str, str]] = {"graph-grove": {}, "graph-lws": {"nvidia.com/enable-grove": "false"}}
REPLACED = {"engine.grove.io/allow-replace": "true"}
GIANT: Body = {"resources": {"requests": {"cpu": "900"}}}
VOLUME: Body = {"volumes": [{"name": "weights", "persistentVolumeClaim": {"claimName": "nobody-made-it"}}]}
DEVICE: Body = {"resourceClaims": [{"name": "device", "resourceClaimTemplateName": "nobody-made-it"}]}
UNEXPOSED = patched(kinds.DYNAMO_GRAPH, "chat", {"spec": {"services": {"Frontend": {"ingress": None}}}})
OWNED = (kinds.DEPLOYMENT, kinds.LEADER_WORKER_SET, kinds.VOLCANO_POD_GROUP, kinds.SERVICE, kinds.INGRESS, kinds.POD)
"""The kinds of objects that a graph without Grove consists of."""
NO_SETS = Policy("no-sets", "graph-lws", kinds.LEADER_WORKER_SET, "false", "no-sets here", LEADER_WORKER_SET)


def chat(path: str, replicas: int = 1, *, nodes: int = 2, version: int = 1, host: str = "", **fields: Any) -> dict[str, Any]:
    """A graph of a frontend, with an Ingress for a host, and of a service on several nodes."""
    exposed: dict[str, Any] = {"ingress": {**HOST, "host": host}} if host else {}
    frontend = service(componentType="frontend", script="python3 -m dynamo.frontend", resources={}, **exposed)
    script = f"python3 -m dynamo.vllm --model m -tp 16 --seed {version}"
    decode = service(replicas, nodes=nodes, script=script, **{"resources": {}, **fields})
    return graph("chat", PATHS[path] | REPLACED, Frontend=frontend, decode=decode)


def with_pods(path: str, spec: Body) -> dict[str, Any]:
    """A graph whose service on several nodes has pods with that in their spec besides."""
    made = chat(path)
    made["spec"]["services"]["decode"]["extraPodSpec"].update(spec)
    return made


def of_decode(fields: Body) -> Act:
    """Fields of that service are changed by somebody else, or removed: what the engine has applied stays in place if it is not named."""
    return patched(kinds.DYNAMO_GRAPH, "chat", {"spec": {"services": {"decode": fields}}})


def of_every_graph(path: str) -> list[Edit]:
    """What is done on either path."""
    no_ingresses = Policy(f"no-ingresses-{path}", path, kinds.INGRESS, "false", "no-ingresses here", INGRESS)
    return [
        Edit("a multi-node service scaled out", manifests=[chat(path, 2)]),
        Edit("another image, and scaled in", manifests=[chat(path, 1, version=2)]),
        Edit("more nodes for each replica", manifests=[chat(path, nodes=3)]),
        Edit("the former number of nodes, and an Ingress", manifests=[chat(path, host="chat")]),
        Edit("another host", manifests=[chat(path, host="talk")]),
        Edit("an Ingress is deleted", deleted(kinds.INGRESS, "chat")),
        Edit("an Ingress is edited", patched(kinds.INGRESS, "chat-frontend", {"spec": {"ingressClassName": "other"}})),
        Edit("an Ingress without its label", unlabelled(kinds.INGRESS, "chat", labels.MANAGED_BY)),
        Edit("no Ingress, and a scaling adapter", manifests=[chat(path, **ON)]),
        Edit("scaled by the adapter", scaled(kinds.SCALING_ADAPTER, "chat-decode", 2)),
        Edit("the adapter is deleted", deleted(kinds.SCALING_ADAPTER, "chat-decode")),
        Edit("no adapter any more", manifests=[chat(path)]),
        Edit(
            "a volume claim that does not exist",
            manifests=[with_pods(path, VOLUME)],
            ending=Ending.STUCK,
            hopeless=True,
            undo=of_decode({"extraPodSpec": {"volumes": None}}),
        ),
        Edit(
            "a claim of devices that does not exist",
            manifests=[with_pods(path, DEVICE)],
            ending=Ending.TIMED_OUT,
            undo=together(of_decode({"extraPodSpec": {"resourceClaims": None}}), all_deleted(kinds.POD, "chat")),
        ),
        Edit("a host that no Ingress may have", manifests=[chat(path, host="no_host")], ending=Ending.STUCK, unknown=True, undo=UNEXPOSED),
        Edit(
            "a policy refuses Ingresses",
            enforced(no_ingresses),
            [chat(path, host="chat")],
            ending=Ending.STUCK,
            unknown=True,
            undo=together(lifted(no_ingresses), UNEXPOSED),
        ),
    ]


GRAPHS_ON_GROVE = EditSeries(
    "graph-grove",
    [chat("graph-grove")],
    [
        *of_every_graph("graph-grove"),
        Edit("a pod is lost", deleted(kinds.POD, "chat-0-frontend")),
        Edit(
            "no node can take it",
            manifests=[chat("graph-grove", **GIANT)],
            ending=Ending.TIMED_OUT,
            undo=of_decode({"resources": {"requests": None}}),
        ),
        Edit("the graph is deleted", deleted(kinds.DYNAMO_GRAPH, "chat")),
    ],
)

GRAPHS_IN_SETS = EditSeries(
    "graph-lws",
    [chat("graph-lws")],
    [
        *of_every_graph("graph-lws"),
        Edit(
            "a quota that the new replica exceeds",
            limited("few", pods=4, used=3),
            [chat("graph-lws", 2)],
            ending=Ending.TIMED_OUT,
            undo=together(deleted(kinds.RESOURCE_QUOTA, "few"), applied(chat("graph-lws"))),
        ),
        Edit(
            "a policy refuses LeaderWorkerSets",
            enforced(NO_SETS),
            [chat("graph-lws", 2)],
            ending=Ending.STUCK,
            unknown=True,
            undo=together(lifted(NO_SETS), applied(chat("graph-lws"))),
        ),
        Edit("the graph is deleted", deleted(kinds.DYNAMO_GRAPH, "chat")),
    ],
)

OBJECTS_OF_GRAPHS = EditSeries(
    "graph-objects",
    [chat("graph-lws")],
    [
        Edit("a LeaderWorkerSet is deleted", deleted(kinds.LEADER_WORKER_SET, "chat")),
        Edit("a LeaderWorkerSet without its label", unlabelled(kinds.LEADER_WORKER_SET, "chat", labels.MANAGED_BY)),
        Edit("a PodGroup is deleted", deleted(kinds.VOLCANO_POD_GROUP, "chat")),
        Edit("a leader is lost", deleted(kinds.POD, "chat-decode-0-0")),
        Edit("a LeaderWorkerSet is scaled", patched(kinds.LEADER_WORKER_SET, "chat-decode-0", {"spec": {"replicas": 0}})),
        Edit("a Service and a Deployment", together(deleted(kinds.SERVICE, "chat-frontend"), deleted(kinds.DEPLOYMENT, "chat"))),
        Edit("dependents first", together(deleted(kinds.DYNAMO_GRAPH, "chat", propagation="Foreground"), collected(*OWNED))),
    ],
)

GRAPH_SERIES = (GRAPHS_ON_GROVE, GRAPHS_IN_SETS, OBJECTS_OF_GRAPHS)
