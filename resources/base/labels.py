"""Labels: the keys of labels, annotations and finalizers, and the sets of labels that objects carry."""

from collections.abc import Mapping, Sequence
from typing import Any

MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"

PODCLIQUE = "grove.io/podclique"
PODGANG = "grove.io/podgang"
BASE_PODGANG = "grove.io/base-podgang"
REPLICA_INDEX = "grove.io/podcliqueset-replica-index"
SCALING_GROUP = "grove.io/podcliquescalinggroup"
GROUP_REPLICA_INDEX = "grove.io/podcliquescalinggroup-replica-index"
POD_INDEX = "grove.io/podclique-pod-index"
GROUP_POD_INDEX = "grove.io/podcliquescalinggroup-pod-index"
"""The label of a pod with its index among all pods of its replica of a scaling group."""
IDENTITY = frozenset(
    (MANAGED_BY, PART_OF, NAME, COMPONENT, PODCLIQUE, PODGANG, BASE_PODGANG, REPLICA_INDEX, SCALING_GROUP, GROUP_REPLICA_INDEX)
)
"""The labels that say what an object belongs to. It has them for life."""
TEMPLATE_HASH = "grove.io/pod-template-hash"
SCHEDULER_NAME = "grove.io/scheduler-name"
EPOCH = "grove.io/epoch"
SET_OF_POD = "leaderworkerset.sigs.k8s.io/name"
"""The label of a pod with the name of its LeaderWorkerSet."""
GANG_ROLE = "grove.io/podgang-role"
"""The labels of PodGangs that Grove v0.1.0-alpha.12 or later has made. The engine's have none of them."""

TOPOLOGY_NAME = "grove.io/topology-name"
"""The annotation of a PodGang with the name of its topology binding. It is never inherited from the user's annotations."""

GROVE_PREFIX = "grove.io/"
"""The prefix of Grove's keys, which are not copied from a set to its gangs."""

ENGINE_PREFIX = "engine.grove.io/"
"""The prefix of the engine's own keys, which are about the object that has them and are not copied to others."""

STEERING_SETS = (ENGINE_PREFIX, "scheduling.grove.io/", "kai.scheduler/")
"""The beginnings of annotations that steer sets. Grove's own are written by admission, and may not change."""
VLLM_BACKEND = "nvidia.com/vllm-distributed-executor-backend"
"""The annotation of a graph, or of its service, that names the executor of vLLM over several nodes: `mp` or `ray`, in any case."""
STEERING_GRAPHS = (
    *(*STEERING_SETS, GROVE_PREFIX),
    *("nvidia.com/enable-grove", "nvidia.com/kai-scheduler-queue", "nvidia.com/enable-metrics", VLLM_BACKEND),
    *("nvidia.com/volcano-queue", "nvidia.com/grove-update-strategy"),
)
"""Those that steer graphs."""

DOMAIN_PLACEMENT = "engine.grove.io/domain-placement"
"""The annotation of a set that asks to keep the pods of each of its fabric domains together (`resources.model.domain`)."""

RELEASE_DOMAINS = f"{ENGINE_PREFIX}release-domains"
"""The annotation of a set that says when its fabric domains are released although it exists."""
ON_COMPLETION = "on-completion"
"""The value of `RELEASE_DOMAINS`: when all pods of the domain have completed."""

PROTECT = f"{ENGINE_PREFIX}protect"
"""The annotation of a root that no command may remove while it has it."""
PRUNE = f"{ENGINE_PREFIX}prune"
"""The annotation of a root that stays when it has left the files of its ApplySet: `disabled`."""
ENABLED = "enabled"
"""The value of `PRUNE` with which a root is removed, as without the annotation."""

TAKE_OVER = f"{ENGINE_PREFIX}take-over"
"""The annotation of a set, or of its graph, that the engine may take over from Grove v0.1.0-alpha.12 or later: `true`."""

ALLOW_REPLACE = f"{ENGINE_PREFIX}allow-replace"
"""The annotation of a graph whose set may be deleted and created again: `true`."""

POD_FORM = f"{ENGINE_PREFIX}pod-form"
"""The annotation of a graph, and of what runs its services, that records the form of its pods (`resources.dynamo.model.form`)."""
GRAPH_SCHEDULER = f"{ENGINE_PREFIX}graph-scheduler"
"""The annotation of a graph that records its scheduler, where no profiles are listed (`resources.dynamo.graph_scheduler`)."""
ENABLE_GROVE = "nvidia.com/enable-grove"
"""The annotation of a graph that may forbid Grove."""
PROVIDER = "nvidia.com/workload-provider"
"""The annotation that records what runs a graph: `grove` or `component`."""
OTHER_VERSION = f"{ENGINE_PREFIX}other-version"
"""The annotation of a converted graph with what its version has no field for (`resources.dynamo.versions.converted`)."""
VLLM_EXECUTORS = f"{ENGINE_PREFIX}vllm-executors"
"""The annotation of a graph that records by which executor the nodes of each vLLM service on several nodes join: `decode=mp,prefill=ray`
(`resources.dynamo.backends.executor`)."""
WRITTEN_AS = f"{ENGINE_PREFIX}written-as"
"""The annotation of a graph that records the version in which it was first written, where its pods depend on it: `v1alpha1`
(`resources.dynamo.model.runtime`)."""
WORKER_SUFFIX = f"{ENGINE_PREFIX}worker-suffix"
"""The annotation of a graph whose workers of one generation do not talk to those of another during an update: `enabled`
(`resources.dynamo.model.generation`)."""
SPREAD = f"{ENGINE_PREFIX}spread"
"""The annotation of a graph's service whose replicas may have several pods on one node: `disabled`."""
SPREAD_GROUPS = f"{ENGINE_PREFIX}spread-groups"
"""The annotation of a set with the names of its scaling groups, separated by commas, of which every replica has its pods on different
nodes (`resources.children.pod`)."""

SHARED_WITH = f"{ENGINE_PREFIX}shared-with"
"""The annotation of a ResourceClaimTemplate with the names of the other namespaces whose sets may have claims made from it
(`resources.ports.references`)."""
COPIED_CLAIMS = f"{ENGINE_PREFIX}copied-claims"
"""The annotation of a set with the digests of the claim specs that it was given from other namespaces."""

KAI_QUEUE = "kai.scheduler/queue"
"""The label of a pod that names its queue for the KAI scheduler."""

DOMAIN_MEMBERSHIP = f"{ENGINE_PREFIX}domain-membership"
"""The annotation of a replica's base PodGang that records the fabric domains of its cliques (`resources.model.membership`)."""

GANG_TERMINATION = f"{ENGINE_PREFIX}gang-termination"
"""The annotation of a PodGang of which cliques are deleted, and created again, because it was below minAvailable for too long."""
IN_PROGRESS = "in-progress"
"""The value of `GANG_TERMINATION`."""

GANG_FORM = f"{ENGINE_PREFIX}gang-form"
"""The annotation of a PodGang whose pods kube-scheduler places together: by which of its objects (`flat` or `hierarchy`)."""

GANG_TOPOLOGY = f"{ENGINE_PREFIX}gang-topology"
"""The annotation of a PodGang whose topology constraints the API server does not take in kube-scheduler's objects."""
UNSUPPORTED = "unsupported"
"""The value of `GANG_TOPOLOGY`."""

GROUP_NAME = "scheduling.k8s.io/group-name"
"""The annotation of a pod with the name of its PodGroup, for schedulers that have their own."""

GROUP_PROTECTION = "scheduling.k8s.io/podgroup-protection"
"""The finalizer by which Kubernetes keeps a PodGroup of its own until its pods are gone."""

LONGEST_VALUE = 63
"""Kubernetes' limit for the value of a label, in characters."""

MANAGER = "grove-operator"
"""The value of `MANAGED_BY`. It is part of Grove's API, so the engine uses the same value."""

GRAPH_MANAGER = "dynamo-operator"
"""The value of `MANAGED_BY` on the objects of graphs."""

SET_FINALIZER = "grove.io/podcliqueset.grove.io"
CLIQUE_FINALIZER = "grove.io/podclique.grove.io"
GROUP_FINALIZER = "grove.io/podcliquescalinggroup.grove.io"

GRAPH_FINALIZER = "nvidia.com/finalizer"
"""The finalizer of a graph. It goes when its objects are gone."""

GATE = "grove.io/podgang-pending-creation"
"""The scheduling gate of pods whose gang must not be scheduled yet."""

SELECTOR = f"{MANAGED_BY}={MANAGER}"
"""The label selector that matches every child of every set."""


GRAPH_SELECTOR = f"{MANAGED_BY}={GRAPH_MANAGER}"
"""The label selector that matches every object of every graph."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's record of one object's manifest, which must not be copied to another object."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label of every namespace with its name, which Kubernetes keeps."""
APPLYSET_PREFIX = "applyset.kubernetes.io/"
"""The prefix of the keys of ApplySets, of which objects are members that users apply, and not what is made from them."""


def default(root: str) -> dict[str, str]:
    """The labels of every child of the set with the name `root`."""
    return {MANAGED_BY: MANAGER, PART_OF: root}


def child(root: str, component: str, name: str | None = None) -> dict[str, str]:
    """The labels of a child of the set `root`: the default labels, the component label and, if a name is given, the name label."""
    labels = {**default(root), COMPONENT: component}
    return labels if name is None else {**labels, NAME: name}


def without_grove(keys: Mapping[str, str]) -> dict[str, str]:
    """The labels or annotations of a set that are copied to its gangs: not Grove's, the engine's, those of ApplySets and `LAST_APPLIED`."""
    left_out = (GROVE_PREFIX, ENGINE_PREFIX, APPLYSET_PREFIX)
    return {key: value for key, value in keys.items() if not key.startswith(left_out) and key != LAST_APPLIED}


def selector(labels: Mapping[str, str]) -> str:
    """A label selector as text, for example `a=1,b=2`, with the keys in the given order."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def selector_of_namespaces(names: Sequence[str]) -> dict[str, Any]:
    """The label selector, as manifests have it, of the namespaces with these names: Kubernetes labels each with its own."""
    return {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "In", "values": list(names)}]}
