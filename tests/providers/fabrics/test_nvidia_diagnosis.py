"""The findings about a domain and its pods: observation, cause and advice, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given

from engine.observed import Live, live
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, DRIVER_FINALIZER, FINALIZER
from resources.ports.inspection import Diagnosis
from resources.ports.queries import QueryResult, QueryResults
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
from tests.resources.manifests import JSON

ID = COMPUTE_DOMAIN.id("default", "demo-0")
NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
SKIPPED = "Failed to prepare dynamic resources: NodePrepareResources skipped 1 ResourceClaims"
LEFT_OUT = "Failed to prepare dynamic resources: NodePrepareResources left out 1 claims"
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
        "kubectl describe pod NAME",
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
        [pod(node="n1", phase="Running"), domain("demo-0", joined("n1", "a.1"), joined("n2", "a.2")), template()],
        "its pod runs in 2 NVLink cliques",
        "NVLink does not connect these cliques: a.1, a.2",
        "an affinity to nvidia.com/gpu.clique",
    ),
    Row(
        "an old driver",
        [pod(node="n1", phase="Running"), domain(mode=False), template()],
        "its pod runs, and no node has joined",
        "driver 25.3 treats numNodes 0 as complete",
        "upgrade",
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
        [terminating(FINALIZER), pod(node="n1", phase="Running"), claim("p", "n1")],
        "being deleted, only the engine's finalizer is left",
        "the engine releases it when these are gone: pod p, claim p-claim",
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


def test_a_domain_without_problems_has_no_findings() -> None:
    objects = [
        domain("demo-0", joined("n1"), joined("n2")),
        template(),
        *(pod(f"p{number}", f"n{number}", "Running") for number in (1, 2)),
        *(claim(f"p{number}", f"n{number}") for number in (1, 2)),
        *(node(f"n{number}", "uid-demo-0") for number in (1, 2)),
        daemon_set(),
    ]

    assert diagnosed(*objects) == []


def test_the_driver_has_time_to_notice_a_domain_and_to_release_it() -> None:
    early = datetime(2026, 1, 1, 0, 0, 29, tzinfo=UTC)

    assert not any("finalizer" in one.observation for one in diagnosed(domain(finalizers=[FINALIZER]), template(), now=early))
    assert not any("has not released" in one.observation for one in diagnosed(terminating(FINALIZER, DRIVER_FINALIZER, minutes=0.9)))


def test_pods_with_the_same_finding_are_reported_together() -> None:
    pods = [pod(f"p{number}", message=FULL) for number in range(40)]
    (one,) = [one for one in diagnosed(*pods, domain(), template()) if one.bad]

    assert one.observation == "40 pods (p0, p1, p10, p11, p12 and 35 more): Pending, cannot allocate all claims"


def test_findings_about_something_wrong_come_first() -> None:
    findings = diagnosed(domain(finalizers=[FINALIZER]), template())

    assert [one.bad for one in findings] == [True, False]


def test_pods_that_have_ended_or_do_not_claim_the_domain_have_no_findings() -> None:
    other = made("v1", "Pod", "other", "default", spec={}, status={"phase": "Pending"})

    assert [one.bad for one in diagnosed(pod(phase="Succeeded"), other, CLAIMLESS, domain(), template())] == [False]


def test_an_event_about_an_earlier_pod_of_the_same_name_is_ignored() -> None:
    old = event("p", "FailedResourceClaimCreation", "not found", uid="uid-of-an-older-p")

    assert [one.bad for one in diagnosed(pod(), old, domain(), template())] == [False]


@given(JSON)
def test_malformed_objects_are_diagnosed_without_an_error(junk: Any) -> None:
    odd = live({**domain().body, "spec": junk, "status": junk})
    nodes = live({**domain().body, "status": {"status": "Ready", "nodes": junk}})
    parameters = {"devices": {"config": [{"opaque": {"driver": "compute-domain.nvidia.com", "parameters": junk}}]}}
    claims = made("resource.k8s.io/v1", "ResourceClaim", "c", "default", spec=parameters)

    for each in (odd, nodes):
        assert isinstance(diagnosed(each, pod(node="n1", phase="Running"), claims, refused()), list)
