"""The summary of a workload: its pods and gangs, its waits, and its state."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Observed, live, slice_of
from engine.operation import Cause, Create, WriteStatus
from engine.plan import Objection, Plan, Wait
from engine.reason import BLOCKERS, Reason
from engine.report.meaning import SAID
from resources.domains.cut_off import CutOff
from resources.domains.status import DomainStatus, State
from resources.reports.summary import GangSummary, WaitSince, summary

ROOT = ResourceId("grove.io", "PodCliqueSet", "a", "x")


def thing(kind: str, name: str, api_version: str = "v1", **rest: Any) -> dict[str, Any]:
    """An object as a server returns it."""
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", "creationTimestamp": "2026-01-01T00:00:00Z", **rest.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def pod(name: str, ready: bool, since: str = "2026-01-01T00:01:00Z", **metadata: Any) -> dict[str, Any]:
    """A scheduled pod of gang `x-0`."""
    conditions = [
        {"type": "PodScheduled", "status": "True"},
        {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since},
    ]
    metadata = {"labels": {"grove.io/podgang": "x-0"}, **metadata}
    return thing("Pod", name, metadata=metadata, status={"phase": "Running", "conditions": conditions})


def observed(*children: dict[str, Any], **root: Any) -> Observed:
    """A set of two replicas, one of them available, with these children."""
    spec, status = {"replicas": 2}, {"availableReplicas": 1, "updatedReplicas": 2}
    body = thing("PodCliqueSet", "x", "grove.io/v1alpha1", spec=spec, status=status, **root)
    return Observed(live(body), {"0": slice_of(live(child) for child in children)})


def pod_id(name: str) -> ResourceId:
    """A pod of the set's namespace."""
    return ResourceId("", "Pod", "a", name)


def test_pods_are_counted_in_total_and_by_gang() -> None:
    gang = thing("PodGang", "x-0", "scheduler.grove.io/v1alpha1", status={"phase": "Running"})

    result = summary(observed(pod("p", True), pod("q", False), gang), Plan(ROOT))

    assert (result.replicas, result.available, result.updated) == (2, 1, 2)
    assert (result.pods, result.ready, result.scheduled) == (2, 1, 2)
    assert result.gangs == (GangSummary("x-0", "Running", 2, 1),)


def test_a_wait_begins_when_its_object_stopped_being_ready_or_was_deleted() -> None:
    world = observed(pod("p", False, "2026-01-01T00:02:00Z"), pod("q", True, deletionTimestamp="2026-01-01T00:03:00Z"))

    result = summary(
        world,
        Plan(
            ROOT,
            pending=(Wait(pod_id("q"), "is being deleted"), Wait(pod_id("p"), "not ready"), Wait(pod_id("r"), "no room")),
            deferred=(Wait(pod_id("s"), "taken", blocked=True, reason=Reason.NAME_CONFLICT),),
        ),
    )

    assert result.waits == (
        WaitSince(pod_id("p"), "not ready", datetime(2026, 1, 1, 0, 2, tzinfo=UTC), None),
        WaitSince(pod_id("q"), "is being deleted", datetime(2026, 1, 1, 0, 3, tzinfo=UTC), None),
        WaitSince(pod_id("r"), "no room", None, None),
        WaitSince(pod_id("s"), "taken", None, None, "delete or rename it", Reason.NAME_CONFLICT),
    )


@pytest.mark.parametrize("reason", [None, *sorted(BLOCKERS)], ids=str)
def test_whatever_is_blocked_says_what_to_do(reason: Reason | None) -> None:
    (wait,) = summary(observed(), Plan(ROOT, deferred=(Wait(pod_id("s"), "why", blocked=True, reason=reason),))).waits

    assert wait.advice or reason in SAID


def test_the_wait_of_a_clique_begins_when_its_first_pod_stopped_being_ready() -> None:
    owned: dict[str, Any] = {
        "ownerReferences": [{"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "c", "uid": "u-c", "controller": True}]
    }
    times = ("2026-01-01T00:05:00Z", "2026-01-01T00:04:00Z")
    pods = [pod(f"p{number}", False, at, **owned) for number, at in enumerate(times)]
    clique = thing("PodClique", "c", "grove.io/v1alpha1")
    id = ResourceId("grove.io", "PodClique", "a", "c")

    result = summary(observed(clique, pod("ready", True, **owned), *pods), Plan(ROOT, pending=(Wait(id, "1 of 3 pods ready"),)))

    assert [wait.since for wait in result.waits] == [datetime(2026, 1, 1, 0, 4, tzinfo=UTC)]


def test_a_gang_is_whole_when_it_runs_and_all_its_pods_are_ready() -> None:
    cases = (
        GangSummary("x", "Running", 2, 2),
        GangSummary("x", "Running", 2, 1),
        GangSummary("x", "Pending", 2, 2),
        GangSummary("x", "Running", 0, 0),
    )

    assert [gang.is_complete for gang in cases] == [True, False, False, False]


def test_the_state_is_the_gravest_that_applies() -> None:
    create = (Create(pod_id("p"), "why", Cause.INTENT, manifest={}),)
    status = (WriteStatus(ROOT, "why", Cause.DRIFT, patch={}),)
    waits = (Wait(pod_id("p"), "why"),)
    blocked = (*waits, Wait(pod_id("q"), "why", blocked=True))
    terminating = {"metadata": {"deletionTimestamp": "2026-01-01T00:03:00Z"}}

    states = [
        summary(observed(), plan).state
        for plan in (
            Plan(ROOT),
            Plan(ROOT, status),
            Plan(ROOT, is_unplanned=True),
            Plan(ROOT, pending=waits),
            Plan(ROOT, deferred=waits, pending=waits),
            Plan(ROOT, deferred=blocked, pending=waits),
            Plan(ROOT, create, blocked, waits),
            Plan(ROOT, create, objections=(Objection("budget", "no"),)),
            Plan(ROOT, create, problems=("what?",)),
        )
    ]

    assert states == ["settled", "settled", "unplanned", "pending", "later", "blocked", "changing", "denied", "faulty"]
    assert summary(observed(**terminating), Plan(ROOT, create)).state == "deleting"


@pytest.mark.parametrize(
    ("plan", "whole", "cut"),
    [
        (Plan(ROOT, pending=(Wait(pod_id("p"), "why"),)), "pending", "degraded"),
        (Plan(ROOT, deferred=(Wait(pod_id("p"), "why"),)), "later", "degraded"),
        (Plan(ROOT, deferred=(Wait(pod_id("p"), "why", blocked=True),)), "blocked", "blocked"),
        (Plan(ROOT, (Create(pod_id("p"), "why", Cause.INTENT, manifest={}),)), "changing", "changing"),
    ],
)
def test_a_set_that_only_waits_while_nvlink_is_cut_is_degraded(plan: Plan, whole: str, cut: str) -> None:
    domain = DomainStatus(ResourceId("resource.nvidia.com", "ComputeDomain", "a", "x-0"), State.JOINED)
    severed = replace(domain, cut=CutOff(("p",), "NVLink", None, "delete p"))

    assert [summary(observed(), plan, domains=(each,)).state for each in (domain, severed)] == [whole, cut]


def test_a_note_does_not_change_the_state() -> None:
    result = summary(observed(), Plan(ROOT, notes=("rack has no effect",)))

    assert (result.notes, result.state) == (("rack has no effect",), "settled")
