"""How domains are doing, in our words, through a whole life."""

from dataclasses import replace
from typing import Any, cast

import pytest

from engine.memo import Memo
from resources.domains.status import DomainStatus, State, domain_statuses
from resources.ports.fabric import Fabric
from resources.ports.inspection import JoinedNode
from tests.laws.rack import DRIVERS_FINALIZER, Rack
from tests.laws.toy import SETUP
from tests.mnnvl.sets import OURS, auto, gpu, named
from tests.resources.domains.test_replica_domains import pods, rack, root, scale, step

Body = dict[str, Any]


def doing(toy: Rack, name: str = "demo") -> dict[str, DomainStatus]:
    """The domains of a set by name."""
    plans = {plan.root: plan for plan in toy.plans(Memo())}
    seen = next(observed for observed in toy.world().roots if observed.root.id == root(name))
    return {one.id.name: one for one in domain_statuses(seen, plans[root(name)], toy.settings)}


def say(toy: Rack, name: str, *nodes: tuple[str, str]) -> None:
    """What the driver writes into a domain's status: Ready, whatever is true, and its nodes."""
    listed = [{"name": node, "ipAddress": "10.0.0.1", "cliqueID": "c.1", "index": 0, "status": status} for node, status in nodes]
    toy.write(toy.domain(name), {"status": {"status": "Ready", "nodes": listed}})


def test_a_domain_is_missing_then_waits_for_its_driver_then_is_joined_by_its_pods() -> None:
    toy = rack(auto(1, gpu(replicas=1)), settled=False)
    toy.driver = False
    before = doing(toy)["demo-0"]
    step(toy, 2)
    waiting = doing(toy)["demo-0"]
    toy.driver = True
    toy.settle()
    say(toy, "demo-0", ("node", "NotReady"))
    joining = doing(toy)["demo-0"]
    say(toy, "demo-0", ("node", "Ready"))
    there = doing(toy)["demo-0"]

    assert [one.state for one in (before, waiting, joining, there)] == [State.MISSING, State.WAITING, State.JOINING, State.JOINED]
    assert waiting.why == "ResourceClaimTemplate demo-0 of ComputeDomain demo-0 is not made yet by its driver"
    assert (there.maker, there.replica, there.shared, there.pods) == ("engine", 0, False, {"demo-0-worker": 1})
    assert (there.expected, there.ready, there.joined) == (1, 1, (JoinedNode("node", "c.1", True),))
    assert (before.maker, before.why) == ("", "it is made first")


def test_ready_with_nobody_in_it_is_empty_and_never_well() -> None:
    toy = rack(auto(1))
    for pod in toy.pods():
        del toy.objects[pod]
    say(toy, "demo-0")

    assert doing(toy)["demo-0"].state is State.EMPTY


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_domain_whose_pods_have_all_ended_is_completed(phase: str) -> None:
    toy = rack(auto(1))
    for pod in toy.pods():
        toy.write(pod, {"status": {"phase": phase}})
    one = doing(toy)["demo-0"]

    assert (one.state, one.ended, one.pods) == (State.COMPLETED, 1, {})


def test_what_was_deleted_by_hand_terminates_and_tells_who_holds_it() -> None:
    toy = rack(auto(1))
    toy.delete(toy.domain("demo-0"))
    step(toy, 3)
    one = doing(toy)["demo-0"]

    assert (one.state, one.finalizers) == (State.TERMINATING, (OURS,))
    assert one.why.startswith("is being deleted; waits for 1 pod and 1 claim")


def test_what_goes_tells_what_it_waits_for_and_until_when() -> None:
    toy = rack(auto(2))
    toy.stuck = frozenset(pod["metadata"]["name"] for pod in pods(toy))
    scale(toy, 1)
    step(toy)
    found = doing(toy)

    assert (found["demo-1"].state, found["demo-0"].state) == (State.LEAVING, State.JOINING)
    assert "waits for 1 pod" in found["demo-1"].why and found["demo-1"].until is not None
    assert found["demo-1"].replica == 1


def test_the_driver_that_does_not_let_go_is_named() -> None:
    toy = rack(auto(1))
    scale(toy, 0)
    toy.driver = False
    step(toy, 4)
    one = doing(toy)["demo-0"]

    assert (one.state, one.finalizers) == (State.TERMINATING, (OURS, DRIVERS_FINALIZER))
    assert one.why.endswith(f"waits for {DRIVERS_FINALIZER} to let go of it")


def test_a_name_that_is_taken_is_a_missing_domain_with_the_reason() -> None:
    toy = Rack()
    spec = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "theirs"}}}
    metadata = {"name": "demo-0", "namespace": "default"}
    toy.put({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": metadata, "spec": spec})
    toy.put(auto(1))
    step(toy, 3)
    one = doing(toy)["demo-0"]

    assert one.state is State.MISSING and "already exists but is not controlled by" in one.why


def test_a_domain_of_a_set_that_is_not_accepted_is_not_promised() -> None:
    toy = Rack()
    toy.put(named("not a name"))
    toy.put(named("rack-a", "other"))
    toy.write(root("other"), {"metadata": {"annotations": {"grove.io/auto-mnnvl": "perhaps"}}})
    step(toy, 2)

    assert doing(toy, "other")["rack-a"].why == "nothing is made of a set that is faulty"
    assert doing(toy, "demo") == {}


def test_a_name_that_is_another_set_s_own_domain_s_is_taken_too_and_nobody_is_told_that_he_is_in_it() -> None:
    toy = rack(auto(1, gpu(replicas=1)))
    toy.put(named("demo-0", "other"))
    step(toy, 3)
    one = doing(toy, "other")["demo-0"]

    assert one.state is State.MISSING and "already exists but is not controlled by" in one.why
    assert (one.maker, one.others, one.joined) == ("", (), ())


def test_a_shared_domain_names_the_other_sets_and_a_user_s_its_maker() -> None:
    toy = rack(named("rack-a"), named("rack-a", "other"))
    one = doing(toy)["rack-a"]

    assert (one.shared, one.others, one.maker, one.replica) == (True, ("other",), "engine", None)

    mine = Rack()
    spec = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "my-channel"}}}
    metadata = {"name": "rack-a", "namespace": "default"}
    mine.put({"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomain", "metadata": metadata, "spec": spec})
    mine.put(named("rack-a"))
    mine.live()
    mine.settle()
    assert (doing(mine)["rack-a"].maker, doing(mine)["rack-a"].pods) == ("user", {"demo-0-worker": 1})


class Mute:
    """A fabric that does what it must, and tells nothing beside."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric

    def __getattr__(self, name: str) -> Any:
        if name in ("joined", "clues", "explain"):
            raise AttributeError(name)
        return getattr(self.fabric, name)


def test_where_the_driver_does_not_tell_who_has_joined_a_domain_with_pods_is_in_use() -> None:
    toy = Rack()
    toy.settings = replace(SETUP, fabrics=(cast(Fabric, Mute(SETUP.fabrics[0])),))
    toy.put(auto(1))
    toy.settle()

    assert doing(toy)["demo-0"].state is State.USED


def test_a_set_without_domains_has_none_to_tell_of() -> None:
    plain = auto(1)
    plain["metadata"]["annotations"] = {"grove.io/auto-mnnvl": "disabled"}

    assert doing(rack(plain)) == {}
