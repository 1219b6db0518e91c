"""Nodes, claims and pods are counted once, and no name stands twice in one line, however claims are allocated and reserved."""

import re
from typing import Any

from engine.observed import Live, live
from engine.report.printable import some
from providers.fabrics.nvidia import inspection as nvidia
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import CHANNEL, DRIVER, FINALIZER
from tests.providers.fabrics.objects import claim, domain, inventory, joined, pod
from tests.providers.fabrics.test_nvidia_checks import demo, found, site
from tests.providers.fabrics.test_nvidia_diagnosis import FULL, diagnosed, terminating

CHANNEL_OF = {"driver": DRIVER, "device": CHANNEL}


def allocated(
    name: str, node: str, *, users: tuple[str, ...] = (), results: tuple[dict[str, Any], ...] = (), uid: str = "uid-demo-0"
) -> Live:
    """A claim with the channel of a node, reserved for these pods, with other devices allocated besides."""
    body = claim(name, node, uid).body
    reserved = [{"resource": "pods", "name": user} for user in users or (name,)]
    devices = {"results": [*results, {**CHANNEL_OF, "pool": node}]}
    return live({**body, "status": {"allocation": {"devices": devices}, "reservedFor": reserved}})


def cause_of_pending(*lives: Live) -> str:
    """Why the pod `p` finds no node."""
    return next(finding.cause for finding in diagnosed(pod(message=FULL), domain(), inventory("n1"), inventory("n2"), *lives))


def test_a_claim_that_two_pods_share_is_one_use_of_its_node_with_both_names() -> None:
    cause = cause_of_pending(allocated("q", "n1", users=("q", "r")), allocated("s", "n2"))

    assert cause.endswith("n1 is used by pods default/q, default/r of this domain, n2 is used by pod default/s of this domain")


def test_a_claim_for_several_devices_uses_one_node() -> None:
    others = ({"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}, {**CHANNEL_OF, "pool": "n1"})
    cause = cause_of_pending(allocated("q", "n1", results=others), allocated("s", "n2"))

    assert re.findall(r"n\d is used", cause) == ["n1 is used", "n2 is used"]


def test_two_claims_of_one_pod_on_one_node_name_the_node_once() -> None:
    twice = (
        allocated("q", "n1"),
        live({**allocated("q", "n1").body, "metadata": {"name": "q-other", "namespace": "default", "uid": "u2"}}),
    )

    assert cause_of_pending(*twice, allocated("s", "n2")).count("n1 ") == 1
    assert (
        "1 of 2 are available"
        in found(site({nvidia.CLAIMS: [*twice]}, sets=(demo(1, 3, name="x"),)))["nodes for requested domains"].finding
    )


def test_a_pod_and_its_claims_are_one_user_of_a_domain_that_is_being_deleted() -> None:
    shared = allocated("q", "n1", users=("p", "q"))
    (finding, *_) = diagnosed(terminating(FINALIZER), pod(node="n1"), pod("q", node="n1"), shared, allocated("far", "n2"))

    assert finding.cause == "the engine releases it when these are gone: pod p, pod q, claim far-claim"


def test_a_node_that_the_domain_lists_twice_has_joined_once() -> None:
    twice = domain("demo-0", joined("n1", "", "NotReady"), joined("n1", ""), joined("n2"))
    cause = next(finding for finding in diagnosed(twice, pod(node="n1", phase="Running")) if "without NVLink" in finding.observation)

    assert [(node.node, node.ready) for node in Nvidia().joined_nodes(twice)] == [("n1", True), ("n2", True)]
    assert cause.observation == "its pod runs on nodes without NVLink fabric: n1"


def test_a_list_has_every_name_once_and_counts_the_others() -> None:
    assert some(["b", "a", "b"]) == "b, a"
    assert some([*"abcdefg", *"abcdefg"]) == "a, b, c, d, e and 2 more"


def test_the_advice_about_several_pods_names_them() -> None:
    (finding, *_) = diagnosed(pod(message=FULL), pod("q", message=FULL), domain(), inventory("n1"))

    assert finding.observation == "2 pods (p, q): Pending, cannot allocate all claims"
    assert finding.advice == "check them: kubectl -n default describe pod p q"
