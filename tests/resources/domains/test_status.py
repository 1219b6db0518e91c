"""How domains are doing, in our words, through a whole life."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.memo import Memo
from providers.fabrics.nvidia.fabric import Nvidia
from resources.domains.status import DomainStatus, State, domain_statuses
from resources.ports.checks import JoinedNode
from resources.ports.fabric import Fabric
from tests.laws.rack import DRIVERS_FINALIZER, Rack
from tests.laws.toy import CONFIGURATION
from tests.mnnvl.sets import OURS, auto, gpu, named
from tests.resources.domains.test_replica_domains import pods, rack, root, scale, step

Body = dict[str, Any]


def statuses(toy: Rack, name: str = "demo") -> dict[str, DomainStatus]:
    """The status of each domain of a set, by name."""
    plans = {plan.root: plan for plan in toy.plans(Memo())}
    seen = next(observed for observed in toy.world().roots if observed.root.id == root(name))
    return {one.id.name: one for one in domain_statuses(seen, plans[root(name)], toy.configuration)}


def report(toy: Rack, name: str, *nodes: tuple[str, str]) -> None:
    """The driver writes the status of a domain: always Ready, and these nodes."""
    listed = [{"name": node, "ipAddress": "10.0.0.1", "cliqueID": "c.1", "index": 0, "status": status} for node, status in nodes]
    toy.write(toy.domain(name), {"status": {"status": "Ready", "nodes": listed}})


def test_a_domain_is_missing_then_pending_then_joining_then_joined() -> None:
    toy = rack(auto(1, gpu(replicas=1)), settled=False)
    toy.driver = False
    missing = statuses(toy)["demo-0"]
    step(toy, 2)
    pending = statuses(toy)["demo-0"]
    toy.driver = True
    toy.settle()
    report(toy, "demo-0", ("node", "NotReady"))
    joining = statuses(toy)["demo-0"]
    report(toy, "demo-0", ("node", "Ready"))
    joined = statuses(toy)["demo-0"]

    assert [one.state for one in (missing, pending, joining, joined)] == [State.MISSING, State.PENDING, State.JOINING, State.JOINED]
    assert pending.why == "the driver has not created ResourceClaimTemplate demo-0 of ComputeDomain demo-0 yet"
    assert (joined.made_by, joined.replica, joined.shared, joined.pods) == ("engine", 0, False, {"demo-0-worker": 1})
    assert (joined.expected, joined.ready, joined.joined) == (1, 1, (JoinedNode("node", "c.1", True),))
    assert (missing.made_by, missing.why) == ("", "it is created in the next pass")


def test_a_ready_domain_without_pods_is_empty() -> None:
    toy = rack(auto(1))
    for pod in toy.pods():
        del toy.objects[pod]
    report(toy, "demo-0")

    assert statuses(toy)["demo-0"].state is State.EMPTY


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_domain_whose_pods_have_all_ended_is_completed(phase: str) -> None:
    toy = rack(auto(1))
    for pod in toy.pods():
        toy.write(pod, {"status": {"phase": phase}})
    one = statuses(toy)["demo-0"]

    assert (one.state, one.ended, one.pods) == (State.COMPLETED, 1, {})
    assert "engine.grove.io/release-domains: on-completion on the set releases it" in one.why


def test_a_domain_deleted_by_a_user_is_terminating_with_its_finalizers() -> None:
    toy = rack(auto(1))
    toy.delete(toy.domain("demo-0"))
    step(toy, 3)
    one = statuses(toy)["demo-0"]

    assert (one.state, one.finalizers) == (State.TERMINATING, (OURS,))
    assert one.why.startswith("is being deleted; waits for 1 pod and 1 claim")


def test_a_releasing_domain_says_what_it_waits_for_and_until_when() -> None:
    toy = rack(auto(2))
    toy.stuck = frozenset(pod["metadata"]["name"] for pod in pods(toy))
    scale(toy, 1)
    step(toy)
    found = statuses(toy)

    assert (found["demo-1"].state, found["demo-0"].state) == (State.RELEASING, State.JOINING)
    assert "waits for 1 pod" in found["demo-1"].why and found["demo-1"].until is not None
    assert found["demo-1"].replica == 1


def test_the_finalizer_of_the_driver_is_named_while_it_is_left() -> None:
    toy = rack(auto(1))
    scale(toy, 0)
    toy.driver = False
    step(toy, 4)
    one = statuses(toy)["demo-0"]

    assert (one.state, one.finalizers) == (State.TERMINATING, (OURS, DRIVERS_FINALIZER))
    assert one.why.endswith(f"waits for the removal of finalizer {DRIVERS_FINALIZER}")


def test_a_name_conflict_is_a_missing_domain_with_the_reason() -> None:
    toy = Rack()
    spec = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "theirs"}}}
    metadata = {"name": "demo-0", "namespace": "default"}
    toy.put({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": metadata, "spec": spec})
    toy.put(auto(1))
    step(toy, 3)
    one = statuses(toy)["demo-0"]

    assert one.state is State.MISSING and "already exists but is not controlled by" in one.why


def test_a_missing_domain_of_a_faulty_set_is_not_created() -> None:
    toy = Rack()
    toy.put(named("not a name"))
    toy.put(named("rack-a", "other"))
    toy.write(root("other"), {"metadata": {"annotations": {"grove.io/auto-mnnvl": "perhaps"}}})
    step(toy, 2)

    assert statuses(toy, "other")["rack-a"].why == "nothing is created for a set with faults"
    assert statuses(toy, "demo") == {}


def test_the_own_domain_of_another_set_is_a_name_conflict_and_not_shared() -> None:
    toy = rack(auto(1, gpu(replicas=1)))
    toy.put(named("demo-0", "other"))
    step(toy, 3)
    one = statuses(toy, "other")["demo-0"]

    assert one.state is State.MISSING and "is an automatic domain of PodCliqueSet demo, which cannot be joined by name" in one.why
    assert (one.made_by, one.other_sets, one.joined) == ("", (), ())


def test_a_shared_domain_names_the_other_sets_and_who_created_it() -> None:
    toy = rack(named("rack-a"), named("rack-a", "other"))
    one = statuses(toy)["rack-a"]

    assert (one.shared, one.other_sets, one.made_by, one.replica) == (True, ("other",), "engine", None)

    other = Rack()
    spec = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "my-channel"}}}
    metadata = {"name": "rack-a", "namespace": "default"}
    other.put({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": metadata, "spec": spec})
    other.put(named("rack-a"))
    other.live()
    other.settle()
    assert (statuses(other)["rack-a"].made_by, statuses(other)["rack-a"].pods) == ("user", {"demo-0-worker": 1})


class Silent(Nvidia):
    """A fabric whose domains do not name their nodes."""

    joined_nodes = Fabric.joined_nodes  # type: ignore[assignment]


def test_a_domain_whose_fabric_reports_no_nodes_is_in_use() -> None:
    toy = Rack()
    toy.configuration = replace(CONFIGURATION, fabrics=(Silent(auto=True),))
    toy.put(auto(1))
    toy.settle()

    assert statuses(toy)["demo-0"].state is State.USED


def test_a_set_without_domains_has_no_statuses() -> None:
    plain = auto(1)
    plain["metadata"]["annotations"] = {"grove.io/auto-mnnvl": "disabled"}

    assert statuses(rack(plain)) == {}


def test_a_proposal_without_the_annotation_does_not_release_the_domains_of_the_stored_set() -> None:
    toy = rack(auto(1, gpu(replicas=1)))
    plans = {plan.root: plan for plan in toy.plans(Memo())}
    stored = next(observed for observed in toy.world().roots if observed.root.id == root("demo"))
    manifest = {**stored.root.body, "metadata": {"name": "demo", "namespace": "default"}}
    (one,) = domain_statuses(replace(stored, proposal=manifest), plans[root("demo")], toy.configuration)

    assert (one.id.name, one.state, one.replica) == ("demo-0", statuses(toy)["demo-0"].state, 0)
    assert one.state is not State.RELEASING
