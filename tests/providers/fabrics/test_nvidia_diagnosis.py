"""The findings about a domain and its pods: observation, cause and advice, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.observed import Live, live
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DRIVER_FINALIZER, FINALIZER
from resources.ports.checks import Diagnosis, QueryResult, QueryResults
from tests.providers.fabrics.objects import (
    claim,
    daemon,
    daemon_set,
    deployment,
    domain,
    event,
    inventory,
    joined,
    made,
    node,
    pod,
    template,
)

ID = COMPUTE_DOMAIN.id("default", "demo-0")
NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
SKIPPED = "Failed to prepare dynamic resources: NodePrepareResources skipped 1 ResourceClaims"
LEFT_OUT = "Failed to prepare dynamic resources: NodePrepareResources left out 1 claims"
NO_ROOM = "0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match pod affinity rules."
TOGETHER: dict[str, Any] = {
    "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "nvidia.com/gpu.clique", "labelSelector": {}}]}
}
FULL = "0/2 nodes are available: 2 cannot allocate all claims."


def diagnosed(*lives: Live, now: datetime = NOW) -> list[Diagnosis]:
    """The findings about `demo-0`, given these objects: each query finds those of its kind."""
    fabric = Nvidia()
    answers = {
        question: QueryResult(tuple(one for one in lives if one.id.kind == question.kind.name and _is_asked(one, question.namespace)))
        for question in fabric.domain_queries(ID)
    }
    return list(fabric.diagnose(ID, QueryResults(answers), now))


def _is_asked(one: Live, namespace: str) -> bool:
    return namespace in ("", one.id.namespace)


def terminating(*finalizers: str, minutes: float = 5, **more: Any) -> Live:
    """The domain, deleted some minutes ago, with these finalizers."""
    return domain(deletionTimestamp=(NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ"), finalizers=list(finalizers), **more)


def refused(name: str = "p", message: str = SKIPPED) -> Live:
    """The event of a kubelet that could not prepare a pod."""
    return event(name, "FailedPrepareDynamicResources", message)


def crashing() -> Live:
    """A pod whose container fails again and again."""
    statuses = [{"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    status = {"phase": "Running", "containerStatuses": statuses}
    return live({**pod(node="n1").body, "status": status})


def owned_claim(uid: str = "uid-demo-0") -> Live:
    """A claim on the domain with that uid, owned by the pod `p`."""
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}]
    body = claim("p", "n1", uid).body
    return live({**body, "metadata": {**body["metadata"], "ownerReferences": owners}})


JOINS = {"annotations": {"nvidia.com/computedomain": "demo-$(GROVE_PCS_INDEX)"}, "labels": {"grove.io/podcliqueset-replica-index": "0"}}
"""The metadata of a pod of replica 0 that joins a named domain."""
CONTROLLER = deployment("controller", dra_driver_nvidia_gpu_component="controller")
CLAIMLESS = event("p", "FailedResourceClaimCreation", 'PodResourceClaim mnnvl-claim: template "demo-0" not found')
WAITING = pod(node="n1")
CROWD = (pod(message=FULL), inventory("n1"))
STALE = "claim default/p-claim: ComputeDomain not found: uid-old"
ELSEWHERE = "the ResourceClaim's namespace is different than the ComputeDomain's namespace"


@dataclass(frozen=True)
class Row:
    """A row of the table: the objects, and the finding that is expected."""

    name: str
    objects: Sequence[Live]
    observation: str
    cause: str
    advice: str = ""
    bad: bool = True


ROWS = (
    Row("no domain", [pod(), CLAIMLESS], "pod p: Pending, event FailedResourceClaimCreation", "ComputeDomain demo-0 does not exist"),
    Row("no domain, for the domain", [pod(), CLAIMLESS], "claimed by pod p", "it does not exist", "run engine sync"),
    Row(
        "a domain that terminates",
        [pod(), CLAIMLESS, terminating(FINALIZER)],
        "pod p: Pending, event FailedResourceClaimCreation",
        "ResourceClaimTemplate demo-0 does not exist: ComputeDomain demo-0 is being deleted",
    ),
    Row(
        "a controller that is down",
        [pod(), CLAIMLESS, domain()],
        "pod p: Pending, event FailedResourceClaimCreation",
        "the controller of the DRA driver has not created it for ComputeDomain demo-0",
        "check that the controller of the DRA driver runs: engine preflight",
    ),
    Row(
        "a controller that is down, in a known namespace",
        [pod(), CLAIMLESS, domain(), CONTROLLER],
        "pod p: Pending, event FailedResourceClaimCreation",
        "the controller of the DRA driver (namespace system) has not created it for ComputeDomain demo-0",
        "kubectl -n system get deployments,pods",
    ),
    Row(
        "a template that came late",
        [pod(), CLAIMLESS, domain(), template()],
        "pod p: Pending, event FailedResourceClaimCreation",
        "exists by now; the claim is tried again with a growing delay of up to 16 minutes",
        "kubectl -n default annotate pod p touched=now",
    ),
    Row(
        "a gang that is not complete",
        [pod(schedulingGates=[{"name": "grove.io/podgang-pending-creation"}]), domain(), template()],
        "pod p: Pending with scheduling gates",
        "the domain is not the reason",
        bad=False,
    ),
    Row(
        "no inventory", [pod(message=FULL), domain(), template()], "pod p: Pending, cannot allocate all claims", "no node offers a channel"
    ),
    Row(
        "all channels are free",
        [pod(message=FULL), domain(), template(), inventory("n1"), inventory("n2")],
        "pod p: Pending, cannot allocate all claims",
        "other claims of the pod, or its node selection, exclude the nodes that have one: n1, n2",
        "kubectl -n default describe pod p",
    ),
    Row(
        "channels of the same domain",
        [*CROWD, domain(), template(), claim("q", "n1")],
        "pod p: Pending, cannot allocate all claims",
        "n1 is used by pod default/q of this domain",
        "a node takes one pod in a ComputeDomain, also of the same domain",
    ),
    Row(
        "channels of another domain",
        [*CROWD, domain(), template(), claim("q", "n1", "uid-far", "b"), domain("far", namespace="b")],
        "pod p: Pending, cannot allocate all claims",
        "n1 is used by pod b/q of ComputeDomain b/far",
        "a node is in one ComputeDomain at a time",
    ),
    Row(
        "free channels on nodes that the pod cannot use",
        [*CROWD, inventory("n2"), inventory("n3"), domain(), template(), claim("q", "n1")],
        "pod p: Pending, cannot allocate all claims",
        "of this domain; other claims of the pod, or its node selection, exclude the nodes with a free one: n2, n3",
    ),
    Row(
        "channels, reported by an event",
        [pod(), event("p", "FailedScheduling", FULL), domain(), template(), inventory("n1"), claim("q", "n1")],
        "pod p: Pending, cannot allocate all claims",
        "n1 is used by pod default/q",
    ),
    Row(
        "a node of another domain",
        [WAITING, refused(), domain(), template(), node("n1", "uid-far"), domain("far", namespace="b")],
        "pod p: ContainerCreating on n1, NodePrepareResources returned no result",
        "node n1 is still in ComputeDomain b/far",
        "wait until its pods have left n1",
    ),
    Row(
        "a node of a dead domain",
        [WAITING, refused(message=LEFT_OUT), domain(), template(), node("n1", "dead")],
        "pod p: ContainerCreating on n1",
        "node n1 is still in a ComputeDomain that does not exist (uid dead)",
        "kubectl label node n1 resource.nvidia.com/computeDomain-",
    ),
    Row(
        "no daemon, no DaemonSet",
        [WAITING, refused(), domain(), template(), node("n1", "uid-demo-0")],
        "pod p: ContainerCreating on n1",
        "no daemon of the domain runs on node n1: the controller of the DRA driver has not created its DaemonSet",
    ),
    Row(
        "no daemon, a DaemonSet that terminates",
        [WAITING, refused(), domain(), node("n1", "uid-demo-0"), daemon_set(deletionTimestamp="2026-01-01T00:59:00Z")],
        "pod p: ContainerCreating on n1",
        "DaemonSet dra-driver/computedomain-daemon is being deleted",
    ),
    Row(
        "no daemon, a DaemonSet with too few pods",
        [WAITING, refused(), domain(), template(), node("n1", "uid-demo-0"), daemon_set(), daemon("n2")],
        "pod p: ContainerCreating on n1",
        "DaemonSet dra-driver/computedomain-daemon has 1 of 2 pods, 1 ready",
        "kubectl -n dra-driver describe daemonset computedomain-daemon",
    ),
    Row(
        "a daemon that does not start",
        [WAITING, refused(), domain(), template(), node("n1", "uid-demo-0"), daemon("n1", ready=False)],
        "pod p: ContainerCreating on n1",
        "its daemon dra-driver/daemon-n1 is not ready: IMEX has not started",
        "kubectl -n dra-driver logs daemon-n1; the host's own nvidia-imex.service must not run",
    ),
    Row(
        "more nodes than a clique takes",
        [
            WAITING,
            refused(),
            domain("demo-0", *(joined(f"m{number}") for number in range(18))),
            template(),
            node("n1", "uid-demo-0"),
            daemon("n1", ready=False),
        ],
        "pod p: ContainerCreating on n1",
        "the domain has 18 nodes of NVLink clique c.1, which is the limit",
    ),
    Row(
        "a daemon that is ready by now",
        [WAITING, refused(), domain(), template(), node("n1", "uid-demo-0"), daemon("n1")],
        "pod p: ContainerCreating on n1",
        "the next attempt succeeds",
        bad=False,
    ),
    Row(
        "a domain that terminates under its pod",
        [WAITING, refused(), terminating(FINALIZER), node("n1", "uid-demo-0")],
        "pod p: ContainerCreating on n1",
        "ComputeDomain demo-0 is being deleted: the DRA driver has removed what the pod needs",
        "delete the pod after the domain is gone",
    ),
    Row(
        "a claim of a deleted domain",
        [WAITING, refused(message=STALE), domain(), template()],
        "pod p: ContainerCreating, event FailedPrepareDynamicResources",
        "a claim is bound to the uid, not to the name",
        "delete it: kubectl -n default delete pod p",
    ),
    Row(
        "a claim of another namespace",
        [WAITING, refused(message=ELSEWHERE), domain(), template()],
        "pod p: ContainerCreating, event FailedPrepareDynamicResources",
        "its claim refers to a domain that was deleted or is in another namespace",
        "delete it: kubectl -n default delete pod p",
    ),
    Row(
        "a pod that crashes in a domain that is being deleted",
        [crashing(), owned_claim(), terminating(FINALIZER)],
        "pod p: CrashLoopBackOff, NVLink is cut",
        "since 2026-01-01T00:55:00Z: the DRA driver has ended NVLink; this is the likely cause of its failures",
        "delete it: kubectl -n default delete pod p",
    ),
    Row(
        "a pod that runs in an earlier domain of that name",
        [pod(node="n1", phase="Running"), owned_claim("uid-old"), domain(), template()],
        "pod p: Running, NVLink is cut",
        "its claim refers to an earlier ComputeDomain demo-0, which was deleted; the one that exists was created at 2026-01-01T00:00:00Z",
        "delete it: kubectl -n default delete pod p",
    ),
    Row(
        "a pod of a user's domain that is gone",
        [made("v1", "Pod", "p", "default", metadata=JOINS, spec={}, status={"phase": "Running"}), owned_claim("uid-old")],
        "pod p: Running, NVLink is cut",
        "ComputeDomain demo-0, which it claims, does not exist any more: the DRA driver has ended NVLink",
        "delete it: kubectl -n default delete pod p",
    ),
    Row(
        "nodes without fabric",
        [pod(node="n1", phase="Running"), domain("demo-0", joined("n1", "")), template()],
        "its pod runs on nodes without NVLink fabric: n1",
        "slower networks",
    ),
    Row(
        "two cliques",
        [
            *(pod(name, node=node, phase="Running") for name, node in (("p", "n1"), ("q", "n2"), ("r", "n3"))),
            *(domain("demo-0", joined("n1", "a.1"), joined("n2", "a.2"), joined("n3", "a.1")), template()),
        ],
        "its 3 pods run in 2 NVLink cliques",
        "NVLink does not connect these cliques: a.1 (2 nodes), a.2 (1 node)",
        "annotate their PodCliqueSet with engine.grove.io/domain-placement: required, then delete its pods",
    ),
    Row(
        "more pods than a clique can have",
        [
            *(pod(f"p{number}", node=f"n{number}", phase="Running") for number in range(20)),
            *(domain("demo-0", *(joined(f"n{number}", f"a.{number % 2}") for number in range(20))), template()),
        ],
        "its 20 pods run in 2 NVLink cliques",
        "a.0 (10 nodes), a.1 (10 nodes)",
        "use at most 18 pods in a domain",
    ),
    Row(
        "two cliques in spite of an affinity",
        [
            *(pod(name, node=node, phase="Running", affinity=TOGETHER) for name, node in (("p", "n1"), ("q", "n2"))),
            *(domain("demo-0", joined("n1", "a.1"), joined("n2", "a.2")), template()),
        ],
        "its 2 pods run in 2 NVLink cliques",
        "a.1 (1 node), a.2 (1 node)",
        "delete the pods of their PodCliqueSet that are outside of the clique that shall remain",
    ),
    Row(
        "two cliques by a scheduler that may not observe affinity",
        [
            *(pod(name, node=node, phase="Running", schedulerName="lpx-scheduler") for name, node in (("p", "n1"), ("q", "n2"))),
            *(domain("demo-0", joined("n1", "a.1"), joined("n2", "a.2")), template()),
        ],
        "its 2 pods run in 2 NVLink cliques",
        "a.1 (1 node), a.2 (1 node)",
        "lpx-scheduler must place the pods in one clique, by its own means",
    ),
    Row(
        "no room in the clique of the others",
        [
            pod(node="n1", phase="Running", affinity=TOGETHER),
            pod("q", message=NO_ROOM, affinity=TOGETHER),
            *(inventory("n1"), inventory("n2"), node("n1", clique="a.1"), node("n2", clique="a.2"), claim("p", "n1")),
            *(domain("demo-0", joined("n1", "a.1")), template()),
        ],
        "pod q: Pending, no node matches its affinity",
        "there is no room for it: a.1 has 0 of 1 nodes free, a.2 has 1 of 1 nodes free",
        "fewer pods in the domain or fewer other workloads",
    ),
    Row(
        "no node with the label",
        [pod("q", message=NO_ROOM, affinity=TOGETHER), inventory("n1"), node("n1"), domain(), template()],
        "pod q: Pending, no node matches its affinity",
        "no node with a channel has nvidia.com/gpu.clique",
        "GPU feature discovery sets this label",
    ),
    Row(
        "an old driver",
        [pod(node="n1", phase="Running"), domain(mode=False), template()],
        "its pod runs, and no node has joined",
        "driver 25.3 treats numNodes 0 as complete",
        "There is no way back from 0.4 or later to 25.x",
    ),
    Row(
        "a driver that has not noticed",
        [domain(finalizers=[FINALIZER]), template()],
        f"the driver's finalizer {DRIVER_FINALIZER} is missing",
        "does not run, or is of another version",
        "engine preflight",
    ),
    Row(
        "ours to release, in use",
        [terminating(FINALIZER), pod(node="n1", phase="Running"), claim("p", "n1"), claim("foreign", "n2")],
        "being deleted, only the engine's finalizer is left",
        "the engine releases it when these are gone: pod p, claim foreign-claim",
    ),
    Row(
        "ours to release",
        [terminating(FINALIZER)],
        "being deleted, only the engine's finalizer is left",
        "the engine has to release it",
        "engine sync",
    ),
    Row(
        "the driver's to release, down",
        [terminating(FINALIZER, DRIVER_FINALIZER), template(), daemon_set()],
        "being deleted, the driver has not released its finalizer",
        "the controller of the DRA driver (namespace dra-driver) does not run, or does not watch that namespace: "
        "ResourceClaimTemplate/default/demo-0 "
        f"({DRIVER_FINALIZER}), DaemonSet/dra-driver/computedomain-daemon ({DRIVER_FINALIZER})",
    ),
    Row(
        "the driver's to release, hindered",
        [terminating(FINALIZER, DRIVER_FINALIZER), template(finalizers=[DRIVER_FINALIZER, "example.com/mine"])],
        "being deleted, the driver has not released its finalizer",
        "objects that the driver created have finalizers of others: ResourceClaimTemplate/default/demo-0",
    ),
    Row(
        "the driver's to release, confused",
        [terminating(FINALIZER, DRIVER_FINALIZER), daemon_set(), daemon_set(name="another")],
        "being deleted, the driver has not released its finalizer",
        "the domain has more than one DaemonSet",
    ),
    Row(
        "the driver's to release, nothing left",
        [terminating(FINALIZER, DRIVER_FINALIZER)],
        "being deleted, the driver has not released its finalizer",
        "nothing that it created is left",
    ),
    Row(
        "a foreign finalizer",
        [terminating(FINALIZER, "example.com/x")],
        "being deleted, other finalizers are left: example.com/x",
        "neither the engine nor the DRA driver",
    ),
    Row(
        "a template in the way",
        [domain(), template(uid="")],
        "ResourceClaimTemplate demo-0 was not created by the DRA driver",
        "the driver cannot create its own of that name and reports no error",
        "delete that ResourceClaimTemplate",
    ),
    Row(
        "a template of another domain",
        [domain(), template(uid="uid-far"), domain("far")],
        "ResourceClaimTemplate demo-0 belongs to ComputeDomain default/far",
        "the driver cannot create its own of that name",
    ),
    Row(
        "Ready without nodes",
        [domain(), template()],
        "its status is Ready, and no node has joined",
        "the driver reports Ready for every domain",
        bad=False,
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_finding_has_its_cause_and_advice(row: Row) -> None:
    findings = [one for one in diagnosed(*row.objects) if row.observation in one.observation and row.cause in one.cause]

    assert len(findings) == 1, diagnosed(*row.objects)
    assert row.advice in findings[0].advice and findings[0].bad is row.bad
