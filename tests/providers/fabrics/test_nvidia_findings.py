"""Findings: which of them there are for a domain, in which order, and when there are none."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given

from engine.observed import live
from providers.fabrics.nvidia.names import DRIVER_FINALIZER, FINALIZER
from tests.providers.fabrics.objects import (
    claim,
    daemon_set,
    domain,
    event,
    joined,
    made,
    node,
    pod,
    template,
)
from tests.providers.fabrics.test_nvidia_diagnosis import CLAIMLESS, FULL, diagnosed, refused, terminating
from tests.resources.manifests import JSON


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
