"""N34: an update or a recycling of a replica whose domain is being deleted does not wait for itself (tests/laws plays every moment)."""

from engine.verb import Verb
from tests.laws.fabric_worlds import settle
from tests.laws.test_vacating_laws import crash, cut_off, demo, edit, left, of_clique, step, uids, up


def test_N34_an_update_moves_all_pods_of_the_domain_at_once_and_says_why() -> None:
    toy = up(demo())
    toy.delete(toy.domain("demo-0"))
    edit(toy, demo(2))
    (plan,) = toy.plans()

    deleted = [operation for operation in plan.operations if operation.verb is Verb.DELETE and operation.id.kind == "Pod"]
    assert len(deleted) == 8
    why = "ComputeDomain demo-0 is being deleted and NVLink is cut: the update of replica 0 needs it to be created again"
    assert why in {operation.why for operation in deleted}

    settle(toy)
    assert (left(toy), cut_off(toy)) == ([], [])


def test_N34_a_replica_whose_turn_has_not_come_keeps_its_pods() -> None:
    toy = up(demo(replicas=2))
    toy.delete(toy.domain("demo-1"))
    edit(toy, demo(2, replicas=2))
    before = {id: uid for id, uid in uids(toy).items() if id.name.startswith("demo-1-")}
    step(toy, 1)

    assert before.items() <= uids(toy).items()
    settle(toy)
    assert (left(toy), cut_off(toy)) == ([], [])


def test_N34_a_crash_alone_moves_no_other_pod_until_the_gang_is_recycled() -> None:
    toy = up(demo())
    toy.delete(toy.domain("demo-0"))
    crash(toy, *of_clique(toy, "demo-0-g-1-b"))
    before = uids(toy)
    step(toy, 5)

    assert before == uids(toy)
    step(toy, 30)
    assert before.items().isdisjoint(uids(toy).items())
    assert (left(toy), cut_off(toy)) == ([], [])
