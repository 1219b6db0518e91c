"""What is seen of a domain and its pods, where it comes from, and what to do: row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given

from engine.observed import Live, live
from providers.fabrics.nvidia import Nvidia
from providers.fabrics.nvidia_words import COMPUTE_DOMAIN, FINALIZER, RELEASED
from resources.ports.inspection import Diagnosis
from resources.ports.queries import QueryResult, QueryResults
from tests.providers.fabrics.objects import claim, daemon, daemon_set, domain, event, inventory, joined, made, node, pod, template
from tests.resources.manifests import JSON

ID = COMPUTE_DOMAIN.id("default", "demo-0")
NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
SKIPPED = "Failed to prepare dynamic resources: NodePrepareResources skipped 1 ResourceClaims"
LEFT_OUT = "Failed to prepare dynamic resources: NodePrepareResources left out 1 claims"
FULL = "0/2 nodes are available: 2 cannot allocate all claims."


def diagnosed(*lives: Live, now: datetime = NOW) -> list[Diagnosis]:
    """What is said of `demo-0`, given these objects: each question is answered with those of its kind."""
    fabric = Nvidia()
    answers = {
        question: QueryResult(tuple(one for one in lives if one.id.kind == question.kind.name and _is_asked(one, question.namespace)))
        for question in fabric.clues(ID)
    }
    return list(fabric.explain(ID, QueryResults(answers), now))


def _is_asked(one: Live, namespace: str) -> bool:
    return namespace in ("", one.id.namespace)


def going(*finalizers: str, minutes: float = 5, **more: Any) -> Live:
    """The domain, deleted some minutes ago and held by these."""
    return domain(deletionTimestamp=(NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ"), finalizers=list(finalizers), **more)


def refused(name: str = "p", message: str = SKIPPED) -> Live:
    """A kubelet that could not prepare a pod."""
    return event(name, "FailedPrepareDynamicResources", message)


CLAIMLESS = event("p", "FailedResourceClaimCreation", 'PodResourceClaim mnnvl-claim: template "demo-0" not found')
WAITING = pod(node="n1")
CROWD = (pod(message=FULL), inventory("n1"))
STALE = "claim default/p-claim: ComputeDomain not found: uid-old"
ELSEWHERE = "the ResourceClaim's namespace is different than the ComputeDomain's namespace"


@dataclass(frozen=True)
class Row:
    """A row of the table: what is there, and what must be said of it."""

    name: str
    there: Sequence[Live]
    seen: str
    cause: str
    advice: str = ""
    bad: bool = True


ROWS = (
    Row("no domain", [pod(), CLAIMLESS], "pod p: Pending, FailedResourceClaimCreation", "ComputeDomain demo-0 does not exist"),
    Row("no domain, told of it", [pod(), CLAIMLESS], "claimed by pod p", "it does not exist", "engine sync"),
    Row(
        "a domain that goes",
        [pod(), CLAIMLESS, going(FINALIZER)],
        "pod p: Pending, FailedResourceClaimCreation",
        "ResourceClaimTemplate demo-0 is not there: ComputeDomain demo-0 is being deleted",
    ),
    Row(
        "a controller that is down",
        [pod(), CLAIMLESS, domain()],
        "pod p: Pending, FailedResourceClaimCreation",
        "the controller of the DRA driver has not made it for ComputeDomain demo-0",
        "engine preflight",
    ),
    Row(
        "a template that came late",
        [pod(), CLAIMLESS, domain(), template()],
        "pod p: Pending, FailedResourceClaimCreation",
        "is there by now; the claim is tried again later and later, up to 16 minutes",
        "kubectl -n default annotate pod p touched=now",
    ),
    Row(
        "a gang that is not complete",
        [pod(schedulingGates=[{"name": "grove.io/podgang-pending-creation"}]), domain(), template()],
        "pod p: Pending, with scheduling gates",
        "this is no matter of the domain",
        bad=False,
    ),
    Row(
        "no inventory", [pod(message=FULL), domain(), template()], "pod p: Pending, cannot allocate all claims", "no node offers a channel"
    ),
    Row(
        "channels of the same domain",
        [*CROWD, domain(), template(), claim("q", "n1")],
        "pod p: Pending, cannot allocate all claims",
        "n1 by pod default/q of this domain",
        "a node takes one pod in a ComputeDomain, of the same domain as well",
    ),
    Row(
        "channels of another domain",
        [*CROWD, domain(), template(), claim("q", "n1", "uid-far", "b"), domain("far", namespace="b")],
        "pod p: Pending, cannot allocate all claims",
        "n1 by pod b/q of ComputeDomain b/far",
        "a node is in one ComputeDomain at a time",
    ),
    Row(
        "channels, told by an event",
        [pod(), event("p", "FailedScheduling", FULL), domain(), template(), inventory("n1"), claim("q", "n1")],
        "pod p: Pending, cannot allocate all claims",
        "n1 by pod default/q",
    ),
    Row(
        "a node of another domain",
        [WAITING, refused(), domain(), template(), node("n1", "uid-far"), domain("far", namespace="b")],
        "pod p: ContainerCreating on n1, NodePrepareResources gave no answer",
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
        "no daemon of the domain runs on node n1: its DaemonSet is not there",
    ),
    Row(
        "no daemon, a DaemonSet that goes",
        [WAITING, refused(), domain(), node("n1", "uid-demo-0"), daemon_set(deletionTimestamp="2026-01-01T00:59:00Z")],
        "pod p: ContainerCreating on n1",
        "DaemonSet dra-driver/computedomain-daemon is being deleted",
    ),
    Row(
        "no daemon, a DaemonSet that has no place",
        [WAITING, refused(), domain(), template(), node("n1", "uid-demo-0"), daemon_set(), daemon("n2")],
        "pod p: ContainerCreating on n1",
        "DaemonSet dra-driver/computedomain-daemon wants 2, has 1, 1 ready",
    ),
    Row(
        "a daemon that does not start",
        [WAITING, refused(), domain(), template(), node("n1", "uid-demo-0"), daemon("n1", ready=False)],
        "pod p: ContainerCreating on n1",
        "its daemon dra-driver/daemon-n1 is not ready: IMEX does not start",
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
        "the domain has 18 nodes of NVLink clique c.1, and no more fit",
    ),
    Row(
        "a daemon that is ready by now",
        [WAITING, refused(), domain(), template(), node("n1", "uid-demo-0"), daemon("n1")],
        "pod p: ContainerCreating on n1",
        "the next attempt succeeds",
        bad=False,
    ),
    Row(
        "a zombie",
        [WAITING, refused(), going(FINALIZER), node("n1", "uid-demo-0")],
        "pod p: ContainerCreating on n1",
        "ComputeDomain demo-0 is being deleted: its driver has taken down what the pod waits for",
        "delete the pod once the domain is gone",
    ),
    Row(
        "a claim of a domain that is gone",
        [WAITING, refused(message=STALE), domain(), template()],
        "pod p: ContainerCreating, FailedPrepareDynamicResources",
        "a claim is bound to the uid, not to the name",
        "the pod must be made anew",
    ),
    Row(
        "a claim of another namespace",
        [WAITING, refused(message=ELSEWHERE), domain(), template()],
        "pod p: ContainerCreating, FailedPrepareDynamicResources",
        "its claim leads into a domain that is gone, or is in another namespace",
        "the pod must be made anew",
    ),
    Row(
        "nodes without fabric",
        [pod(node="n1", phase="Running"), domain("demo-0", joined("n1", "")), template()],
        "its pod runs, on nodes without NVLink fabric: n1",
        "slower paths",
    ),
    Row(
        "two cliques",
        [pod(node="n1", phase="Running"), domain("demo-0", joined("n1", "a.1"), joined("n2", "a.2")), template()],
        "its pod runs, in 2 NVLink cliques",
        "NVLink does not reach from one to another: a.1, a.2",
        "an affinity to nvidia.com/gpu.clique",
    ),
    Row(
        "an old driver",
        [pod(node="n1", phase="Running"), domain(mode=False), template()],
        "its pod runs, and no node has joined",
        "driver 25.3 takes numNodes 0 for done",
        "upgrade",
    ),
    Row(
        "a driver that has not noticed",
        [domain(finalizers=[FINALIZER]), template()],
        f"its driver's finalizer {RELEASED} is missing",
        "does not run, or is not of this version",
        "engine preflight",
    ),
    Row(
        "ours to release, in use",
        [going(FINALIZER), pod(node="n1", phase="Running"), claim("p", "n1")],
        "Terminating, and held by us alone",
        "we let go of it when these are gone: pod p, claim p-claim",
    ),
    Row("ours to release", [going(FINALIZER)], "Terminating, and held by us alone", "it is ours to let go of", "engine sync"),
    Row(
        "the driver's to release, down",
        [going(FINALIZER, RELEASED), template(), daemon_set()],
        "Terminating, and its driver has not let go of it",
        "the controller of the DRA driver does not run, or does not look there: ResourceClaimTemplate/default/demo-0 "
        f"({RELEASED}), DaemonSet/dra-driver/computedomain-daemon ({RELEASED})",
    ),
    Row(
        "the driver's to release, hindered",
        [going(FINALIZER, RELEASED), template(finalizers=[RELEASED, "example.com/mine"])],
        "Terminating, and its driver has not let go of it",
        "others hold what it has made: ResourceClaimTemplate/default/demo-0",
    ),
    Row(
        "the driver's to release, confused",
        [going(FINALIZER, RELEASED), daemon_set(), daemon_set(name="another")],
        "Terminating, and its driver has not let go of it",
        "there is more than one DaemonSet of this domain",
    ),
    Row(
        "the driver's to release, nothing left",
        [going(FINALIZER, RELEASED)],
        "Terminating, and its driver has not let go of it",
        "nothing that it has made is left",
    ),
    Row("somebody else's", [going(FINALIZER, "example.com/x")], "Terminating, and held by example.com/x", "neither we nor its driver"),
    Row(
        "a template in the way",
        [domain(), template(uid="")],
        "ResourceClaimTemplate demo-0 is not the driver's",
        "the driver makes none of its own beside it, and says nothing",
        "remove it",
    ),
    Row(
        "a template of another domain",
        [domain(), template(uid="uid-far"), domain("far")],
        "ResourceClaimTemplate demo-0 is of ComputeDomain default/far",
        "the driver makes none of its own beside it",
    ),
    Row(
        "a word that means nothing", [domain(), template()], "its status says Ready, and no node has joined", "it means nothing", bad=False
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_seen_is_told_with_its_cause_and_what_to_do(row: Row) -> None:
    told = [one for one in diagnosed(*row.there) if row.seen in one.observation and row.cause in one.cause]

    assert len(told) == 1, diagnosed(*row.there)
    assert row.advice in told[0].advice and told[0].bad is row.bad


def test_a_domain_that_is_well_is_not_talked_about() -> None:
    well = [
        domain("demo-0", joined("n1"), joined("n2")),
        template(),
        *(pod(f"p{number}", f"n{number}", "Running") for number in (1, 2)),
        *(claim(f"p{number}", f"n{number}") for number in (1, 2)),
        *(node(f"n{number}", "uid-demo-0") for number in (1, 2)),
        daemon_set(),
    ]

    assert diagnosed(*well) == []


def test_what_has_only_just_begun_is_not_stuck() -> None:
    fresh = datetime(2026, 1, 1, 0, 0, 29, tzinfo=UTC)

    assert not any("finalizer" in one.observation for one in diagnosed(domain(finalizers=[FINALIZER]), template(), now=fresh))
    assert not any("has not let go" in one.observation for one in diagnosed(going(FINALIZER, RELEASED, minutes=0.9)))


def test_pods_of_which_the_same_is_true_are_told_once() -> None:
    pods = [pod(f"p{number}", message=FULL) for number in range(40)]
    (one,) = [one for one in diagnosed(*pods, domain(), template()) if one.bad]

    assert one.observation == "40 pods (p0, p1, p10, p11, p12 and 35 more): Pending, cannot allocate all claims"


def test_what_is_wrong_comes_first() -> None:
    told = diagnosed(domain(finalizers=[FINALIZER]), template())

    assert [one.bad for one in told] == [True, False]


def test_pods_that_have_ended_or_claim_something_else_are_not_of_the_domain() -> None:
    other = made("v1", "Pod", "other", "default", spec={}, status={"phase": "Pending"})

    assert [one.bad for one in diagnosed(pod(phase="Succeeded"), other, CLAIMLESS, domain(), template())] == [False]


def test_an_event_about_a_namesake_of_another_time_is_not_believed() -> None:
    old = event("p", "FailedResourceClaimCreation", "not found", uid="uid-of-an-older-p")

    assert [one.bad for one in diagnosed(pod(), old, domain(), template())] == [False]


@given(JSON)
def test_whatever_a_domain_says_something_is_made_of_it(junk: Any) -> None:
    odd = live({**domain().body, "spec": junk, "status": junk})
    nodes = live({**domain().body, "status": {"status": "Ready", "nodes": junk}})
    parameters = {"devices": {"config": [{"opaque": {"driver": "compute-domain.nvidia.com", "parameters": junk}}]}}
    led = made("resource.k8s.io/v1", "ResourceClaim", "c", "default", spec=parameters)

    for each in (odd, nodes):
        assert isinstance(diagnosed(each, pod(node="n1", phase="Running"), led, refused()), list)
