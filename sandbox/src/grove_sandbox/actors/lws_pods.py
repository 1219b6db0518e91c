"""LwsPods: the pods and headless Services of a LeaderWorkerSet, with the labels, annotations and variables of the real controller."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from grove_sandbox.actors.body import Body, annotations_of, labels_of, owners_of, uid_of
from grove_sandbox.product import Kind, kinds

PREFIX: Final = "leaderworkerset.sigs.k8s.io/"
NAME, GROUP, WORKER = PREFIX + "name", PREFIX + "group-index", PREFIX + "worker-index"
GROUP_KEY, REVISION = PREFIX + "group-key", PREFIX + "template-revision-hash"
"""Labels of pods."""
SIZE, LEADER, SUBDOMAIN_POLICY = PREFIX + "size", PREFIX + "leader-name", PREFIX + "subdomainPolicy"
"""Annotations of pods."""
LEADER_INDEX: Final = "0"
UNIQUE: Final = "UniquePerReplica"


def size_of(lws: Body) -> int:
    """How many pods a group has."""
    return int(lws["spec"]["leaderWorkerTemplate"].get("size", 1))


def template_revision(lws: Body) -> str:
    """The revision of the templates: a change of anything that pods are made from is a new one."""
    parts = [lws["spec"]["leaderWorkerTemplate"], lws["spec"].get("networkConfig")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]


def is_subdomain_unique(lws: Body) -> bool:
    """Whether each group has a headless Service of its own."""
    return (lws["spec"].get("networkConfig") or {}).get("subdomainPolicy") == UNIQUE


def group_index(pod: Body) -> int:
    """The group of a pod; -1 if its label is no number."""
    text = labels_of(pod).get(GROUP, "")
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def is_leader(pod: Body) -> bool:
    """Whether the pod is the leader of its group."""
    return labels_of(pod).get(WORKER) == LEADER_INDEX


def controller_of(body: Body) -> str:
    """The uid of the object's controller; empty: it has none."""
    return str(next((owner["uid"] for owner in owners_of(body) if owner.get("controller")), ""))


def leader_pod(lws: Body, group: int) -> dict[str, Any]:
    """The leader of a group, controlled by the set."""
    templates = lws["spec"]["leaderWorkerTemplate"]
    namespace, name = lws["metadata"]["namespace"], f"{lws['metadata']['name']}-{group}"
    labels = {
        NAME: lws["metadata"]["name"],
        GROUP: str(group),
        WORKER: LEADER_INDEX,
        GROUP_KEY: hashlib.sha1(f"{namespace}/{name}".encode(), usedforsecurity=False).hexdigest(),
        REVISION: template_revision(lws),
    }
    annotations = {SIZE: str(size_of(lws))} | ({SUBDOMAIN_POLICY: UNIQUE} if is_subdomain_unique(lws) else {})
    template = templates.get("leaderTemplate") or templates["workerTemplate"]
    subdomain = name if is_subdomain_unique(lws) else lws["metadata"]["name"]
    metadata = {"name": name, "labels": labels, "annotations": annotations, "ownerReferences": [_owner(kinds.LEADER_WORKER_SET, lws)]}
    return _pod(lws, template, metadata, subdomain)


def worker_pod(lws: Body, leader: Body, index: int) -> dict[str, Any]:
    """A worker of the leader's group, controlled by the leader."""
    leader_labels, name = labels_of(leader), leader["metadata"]["name"]
    labels = {key: leader_labels.get(key, "") for key in (NAME, GROUP, GROUP_KEY, REVISION)} | {WORKER: str(index)}
    annotations = {SIZE: annotations_of(leader).get(SIZE, ""), LEADER: name}
    template = lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    metadata = {"name": f"{name}-{index}", "labels": labels, "annotations": annotations, "ownerReferences": [_owner(kinds.POD, leader)]}
    return _pod(lws, template, metadata, leader["spec"].get("subdomain", ""))


def shared_service(lws: Body) -> dict[str, Any]:
    """The headless Service of all pods of a set."""
    name = lws["metadata"]["name"]
    return _service(lws, name, {NAME: name}, _owner(kinds.LEADER_WORKER_SET, lws))


def group_service(lws: Body, leader: Body) -> dict[str, Any]:
    """The headless Service of the pods of one group."""
    selector = {NAME: lws["metadata"]["name"], GROUP: labels_of(leader).get(GROUP, "")}
    return _service(lws, leader["metadata"]["name"], selector, _owner(kinds.POD, leader))


def _service(lws: Body, name: str, selector: Mapping[str, str], owner: Body) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": lws["metadata"]["namespace"],
        "labels": {NAME: lws["metadata"]["name"]},
        "ownerReferences": [owner],
    }
    spec = {"clusterIP": "None", "selector": dict(selector), "publishNotReadyAddresses": True}
    return {"apiVersion": kinds.SERVICE.api_version, "kind": kinds.SERVICE.name, "metadata": metadata, "spec": spec}


def _owner(kind: Kind, body: Body) -> Body:
    owner = {"apiVersion": kind.api_version, "kind": kind.name, "name": body["metadata"]["name"], "uid": uid_of(body)}
    return owner | {"controller": True, "blockOwnerDeletion": True}


def _pod(lws: Body, template: Body, metadata: Mapping[str, Any], subdomain: str) -> dict[str, Any]:
    """A pod of a template, with more metadata, and with the variables in front of those of every container."""
    labels, annotations = metadata["labels"], metadata["annotations"]
    own: Mapping[str, Any] = template.get("metadata") or {}
    namespace = lws["metadata"]["namespace"]
    variables = {
        "LWS_LEADER_ADDRESS": f"{labels[NAME]}-{labels[GROUP]}.{subdomain}.{namespace}",
        "LWS_GROUP_SIZE": annotations[SIZE],
        "LWS_WORKER_INDEX": labels[WORKER],
    }
    spec = {**template["spec"], "hostname": metadata["name"], "subdomain": subdomain}
    for field in ("containers", "initContainers"):
        if spec.get(field):
            spec[field] = [_with_variables(container, variables) for container in spec[field]]
    complete = {
        **metadata,
        "namespace": namespace,
        "labels": {**(own.get("labels") or {}), **labels},
        "annotations": {**(own.get("annotations") or {}), **annotations},
    }
    return {"apiVersion": kinds.POD.api_version, "kind": kinds.POD.name, "metadata": complete, "spec": spec}


def _with_variables(container: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    others = [entry for entry in container.get("env") or () if entry.get("name") not in variables]
    return {**container, "env": [*({"name": name, "value": value} for name, value in variables.items()), *others]}
