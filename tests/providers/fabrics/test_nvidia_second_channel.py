"""Findings about pods that claim more than one channel: they can never be scheduled (N23)."""

from typing import Any

import pytest

from engine.observed import Live
from providers.fabrics.nvidia.names import CHANNEL_CLASS
from tests.providers.fabrics.objects import claim, domain, inventory, made, pod, template
from tests.providers.fabrics.test_nvidia_diagnosis import FULL, diagnosed

OURS = {"name": "mnnvl-claim", "resourceClaimTemplateName": "demo-0"}
BY_FAR = {"name": "far", "resourceClaimTemplateName": "far"}
BY_MINE = {"name": "extra", "resourceClaimTemplateName": "mine"}
EXISTING = {"name": "own", "resourceClaimName": "given"}
TWO = "pod p: Pending, claims more than one channel"
NO_CHANNEL = "pod p: Pending, cannot allocate all claims"


def devices(device_class: str) -> dict[str, Any]:
    """The spec of a claim for one device of a class."""
    return {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": device_class}}]}}


def device_template(device_class: str = CHANNEL_CLASS, namespace: str = "default") -> Live:
    """A user's ResourceClaimTemplate `mine`."""
    return made("resource.k8s.io/v1", "ResourceClaimTemplate", "mine", namespace, spec={"spec": devices(device_class)})


def device_claim(device_class: str = CHANNEL_CLASS) -> Live:
    """A user's ResourceClaim `given`."""
    return made("resource.k8s.io/v1", "ResourceClaim", "given", "default", spec=devices(device_class))


def findings(*lives: Live) -> dict[str, str]:
    """Observation -> cause of what is wrong, where the domain `demo-0` and its template exist and q uses the channel of the one node."""
    others = (domain(), template(), inventory("n1"), claim("q", "n1"))
    return {finding.observation: finding.cause for finding in diagnosed(*lives, *others) if finding.bad}


@pytest.mark.parametrize(
    ("claims", "objects", "named"),
    [
        ([OURS, BY_FAR], [domain("far")], "mnnvl-claim, far"),
        ([OURS, {**OURS, "name": "again"}], [], "mnnvl-claim, again"),
        ([OURS, BY_MINE], [device_template()], "mnnvl-claim, extra"),
        ([OURS, EXISTING, {**EXISTING, "name": "again"}], [device_claim()], "mnnvl-claim, own"),
    ],
)
def test_a_pod_with_two_claims_for_channels_has_one_finding_that_names_them(claims: list[Any], objects: list[Live], named: str) -> None:
    cause = f"it claims 2 channels ({named}), and a node has one: no node can ever run it"

    assert findings(pod(message=FULL, resourceClaims=claims), *objects) == {TWO: cause}


@pytest.mark.parametrize(
    ("claims", "objects"),
    [
        ([OURS, BY_MINE], [device_template("gpu.example.com")]),
        ([OURS, BY_MINE], [device_template(namespace="other")]),
        ([OURS, EXISTING], [device_claim("gpu.example.com")]),
        ([OURS, BY_FAR], [domain("far", namespace="other")]),
    ],
)
def test_claims_for_other_devices_and_objects_of_other_namespaces_do_not_count(claims: list[Any], objects: list[Live]) -> None:
    assert list(findings(pod(message=FULL, resourceClaims=claims), *objects)) == [NO_CHANNEL]


def test_pods_with_the_same_claims_are_one_finding_and_pods_with_a_node_are_none() -> None:
    pods = [pod(f"p{number}", message=FULL, resourceClaims=[OURS, BY_FAR]) for number in range(3)]
    running = pod("r", node="n1", phase="Running", resourceClaims=[OURS, BY_FAR])
    observations = list(findings(*pods, running, domain("far")))

    assert [observation for observation in observations if "channel" in observation] == [
        "3 pods (p0, p1, p2): Pending, claims more than one channel"
    ]
