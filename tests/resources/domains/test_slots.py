"""Slots: a note for each clique whose pods claim more than one slot of a node."""

from typing import Any

import pytest

from providers.fabrics.nvidia.names import CHANNEL_CLASS, NAMED
from tests.builders import group
from tests.laws.rack import Rack
from tests.mnnvl.asking import plan_of, sharing
from tests.mnnvl.sets import gpu, gpus

Body = dict[str, Any]
RACK = {NAMED: "rack"}
CHANNEL = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}
OLDER = {"name": "channel", "deviceClassName": CHANNEL_CLASS}
OTHER = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 8}}
END = "and a node has one: they can never be scheduled"


def claim_template(name: str, *requests: Body) -> Body:
    """A user's ResourceClaimTemplate."""
    metadata = {"name": name, "namespace": "default"}
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


def claim(name: str, *requests: Body) -> Body:
    """A user's ResourceClaim."""
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": {"requests": list(requests)}},
    }


def claiming(*claims: Body, **more: Any) -> Body:
    """A clique with GPUs and these claims."""
    return gpu(pod_spec={**gpus(), "resourceClaims": list(claims)}, **more)


def by_template(name: str) -> Body:
    """An entry of a pod's claims, through a template."""
    return {"name": f"by-{name}", "resourceClaimTemplateName": name}


def existing(name: str, entry: str = "own") -> Body:
    """An entry of a pod's claims, for a claim that exists."""
    return {"name": entry, "resourceClaimName": name}


def notes(manifest: Body, *objects: Body) -> tuple[str, ...]:
    """The notes in the plan of a new set, in a cluster with these objects."""
    toy = Rack()
    for body in (*objects, manifest):
        toy.put(body)
    return plan_of(toy).notes


@pytest.mark.parametrize(
    "request_", [CHANNEL, OLDER, {"name": "either", "firstAvailable": [{**OLDER, "name": "a"}, {**OLDER, "name": "b"}]}]
)
def test_the_claim_of_a_domain_and_one_through_a_user_s_template_are_two(request_: Body) -> None:
    manifest = sharing(claiming(by_template("mine"), annotations=RACK))

    assert notes(manifest, claim_template("mine", OTHER, request_)) == (
        f"pods of clique worker claim 2 slots for ComputeDomains (ComputeDomain rack, claim by-mine), {END}",
    )


def test_two_claims_of_a_user_are_two_without_any_domain_of_ours() -> None:
    manifest = sharing(claiming(by_template("mine"), existing("given")))

    assert notes(manifest, claim_template("mine", CHANNEL), claim("given", CHANNEL)) == (
        f"pods of clique worker claim 2 slots for ComputeDomains (claim by-mine, ResourceClaim given), {END}",
    )


def test_one_claim_for_several_channels_is_too_much_too() -> None:
    several = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS, "count": 2}}

    assert notes(sharing(claiming(by_template("mine"))), claim_template("mine", several)) == (
        f"pods of clique worker claim 2 slots for ComputeDomains (claim by-mine), {END}",
    )


def test_claims_that_are_shared_within_a_set_or_a_group_count_for_the_pods_that_use_them() -> None:
    share = {"name": "mine", "scope": "AllReplicas", "filter": {"childCliqueNames": ["worker"]}}
    template = {"name": "mine", "templateSpec": {"spec": {"devices": {"requests": [CHANNEL]}}}}
    cliques = (gpu(annotations=RACK), gpu("other", annotations=RACK))
    expected = (f"pods of clique worker claim 2 slots for ComputeDomains (ComputeDomain rack, resourceSharing mine), {END}",)

    assert notes(sharing(*cliques, resourceClaimTemplates=[template], resourceSharing=[share])) == expected
    in_group = group("racks", "worker", resourceSharing=[{"name": "mine", "scope": "PerReplica"}])
    assert notes(sharing(*cliques, groups=[in_group], resourceClaimTemplates=[template])) == expected


@pytest.mark.parametrize(
    "claims",
    [
        [by_template("gpus")],
        [by_template("unknown")],
        [existing("given"), existing("given", "again")],
        [by_template("admin")],
        [by_template("perhaps"), by_template("mine")],
    ],
)
def test_other_devices_unknown_templates_and_one_claim_listed_twice_are_no_second_slot(claims: list[Body]) -> None:
    objects = (
        claim_template("gpus", OTHER),
        claim_template("mine", CHANNEL),
        claim_template("admin", CHANNEL, {"name": "look", "exactly": {"deviceClassName": CHANNEL_CLASS, "adminAccess": True}}),
        claim_template("perhaps", {"name": "any", "firstAvailable": [OLDER, {"name": "b", "deviceClassName": "gpu.example.com"}]}),
        claim("given", CHANNEL),
    )

    assert notes(sharing(claiming(*claims)), *objects) == ()
