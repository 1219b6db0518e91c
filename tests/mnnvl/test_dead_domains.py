"""N32: pods whose domain was deleted, replaced, or is being deleted: who is told, of whom, since when, and what to do."""

from engine import world
from engine.memo import Memo
from engine.observed import Unlisted, live
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from resources.domains.status import DomainStatus, State, domain_statuses
from resources.registry import BLUEPRINTS
from tests.builders import group
from tests.laws.fabric_worlds import settle
from tests.laws.rack import Rack
from tests.laws.toy import NOT_CHILDREN, REFERENCES
from tests.mnnvl.asking import plan_of, root, up
from tests.mnnvl.sets import auto, computedomain, gpu, named


def alarms(toy: Rack, name: str = "demo") -> dict[str, str]:
    """Reason -> text of the alarms about domains."""
    return {alarm.reason: alarm.text for alarm in plan_of(toy, name).alarms}


def gone(toy: Rack, name: str) -> None:
    """The domain and its template vanish, as when somebody removes all its finalizers."""
    del toy.objects[toy.domain(name)]
    toy.objects.pop(kinds.RESOURCE_CLAIM_TEMPLATE.id("default", name), None)


def workers(toy: Rack, *, of: str = "worker") -> list[str]:
    """The names of the pods of a clique."""
    return [id.name for id in toy.pods() if of in id.name]


def status(toy: Rack, domain: str = "demo-0") -> DomainStatus:
    """The status of a domain of the set `demo`."""
    observed = next(each for each in toy.world().roots if each.root.id == root())
    return next(each for each in domain_statuses(observed, plan_of(toy), toy.configuration) if each.id.name == domain)


def test_N32_a_domain_that_is_being_deleted_names_its_pods_since_when_and_the_command() -> None:
    toy = up(auto(1, gpu(replicas=2)))
    first, second = workers(toy)
    at = toy.stamp()
    toy.delete(toy.domain("demo-0"))

    link = "NVLink is cut for 2 pods"
    assert alarms(toy) == {
        "ComputeDomainTerminating": f"ComputeDomain demo-0 is being deleted since {at}: {link} ({first}, {second}); it is kept until its "
        f"users are gone, then created again; delete them: kubectl -n default delete pod {first} {second}"
    }
    cut = status(toy).cut
    assert cut is not None and (status(toy).state, cut.pods) == (State.TERMINATING, (first, second))


def test_N32_a_domain_that_is_gone_and_then_replaced_is_told_each_time() -> None:
    toy = up(auto(1, gpu(replicas=1)))
    (pod,) = workers(toy)
    gone(toy, "demo-0")
    lost, missing = alarms(toy), status(toy)
    settle(toy)
    replaced = alarms(toy)

    cut, remedy = f"NVLink is cut for 1 pod ({pod})", f"delete it: kubectl -n default delete pod {pod}"
    assert lost == {"ComputeDomainGone": f"ComputeDomain demo-0 does not exist any more: {cut} since it was deleted; {remedy}"}
    created = toy.domains()["demo-0"]["metadata"]["creationTimestamp"]
    assert replaced == {"ComputeDomainReplaced": f"ComputeDomain demo-0 was created again at {created}: {cut} since then; {remedy}"}
    assert (missing.state, status(toy).state) == (State.MISSING, State.REPLACED)

    toy.delete(kinds.POD.id("default", pod))
    settle(toy)
    assert (alarms(toy), status(toy).cut) == ({}, None)


def test_N32_a_user_domain_whose_template_has_another_name_is_noticed_by_the_claims_of_its_pods() -> None:
    toy = Rack()
    toy.put(computedomain("rack-a", "channel"))
    toy.put(named("rack-a"))
    settle(toy)
    (worker,) = workers(toy)
    del toy.objects[toy.domain("rack-a")]

    assert list(alarms(toy)) == ["ComputeDomainGone"]
    settle(toy)
    (reason, text) = next(iter(alarms(toy).items()))
    assert (reason, f"kubectl -n default delete pod {worker}" in text) == ("ComputeDomainReplaced", True)
    assert "frontend" not in text


def test_N32_of_two_domains_in_a_set_only_pods_of_the_lost_one_are_named() -> None:
    manifest = named("rack-a", replicas=2)
    manifest["spec"]["template"]["cliques"][0]["annotations"] = {"nvidia.com/computedomain": "rack-$(GROVE_PCS_INDEX)"}
    toy = up(manifest)
    gone(toy, "rack-1")
    settle(toy)

    (text,) = alarms(toy).values()
    (lost,) = [name for name in workers(toy) if name.startswith("demo-1-")]
    assert text.startswith("ComputeDomain rack-1 was created again") and f"NVLink is cut for 1 pod ({lost})" in text


def test_N32_pods_of_scaling_groups_count_and_many_pods_are_selected_by_their_clique() -> None:
    toy = up(auto(1, gpu("first", replicas=9), gpu("second"), groups=(group("g", "first"),)))
    toy.delete(toy.domain("demo-0"))
    (text,) = alarms(toy).values()

    assert "NVLink is cut for 10 pods (" in text
    assert text.endswith("kubectl -n default delete pod -l 'grove.io/podclique in (demo-0-g-0-first,demo-0-second)'")


def test_N32_the_selector_is_not_used_where_it_would_delete_other_pods() -> None:
    toy = up(auto(1, gpu(replicas=10)))
    toy.write(toy.pods()[0], {"status": {"phase": "Succeeded", "conditions": []}, "spec": {"restartPolicy": "Never"}})
    toy.delete(toy.domain("demo-0"))
    (text,) = alarms(toy).values()

    assert "e.g. the first 8: kubectl -n default delete pod demo-0-worker-" in text and " in (" not in text


def test_N32_an_unchanged_world_gives_the_same_alarm_and_an_unlisted_kind_gives_none() -> None:
    toy = up(auto(1))
    toy.delete(toy.domain("demo-0"))
    memo = Memo()
    first, second = (tuple(each.alarms for each in toy.plans(memo)) for _ in range(2))

    assert first == second and first != ((),)


def test_N32_pods_that_have_ended_or_are_being_deleted_are_not_cut_off() -> None:
    toy = up(auto(1, gpu(replicas=2)))
    first, second = toy.pods()
    toy.write(first, {"status": {"phase": "Succeeded", "conditions": []}})
    toy.write(second, {"metadata": {"deletionTimestamp": toy.stamp()}})
    toy.delete(toy.domain("demo-0"))

    assert status(toy).cut is None


def test_N32_no_pod_is_called_cut_off_while_domains_cannot_be_listed() -> None:
    toy = up(auto(1))
    gone(toy, "demo-0")
    lives = [live(body) for body in toy.objects.values()]
    roots = [each for each in lives if each.id.kind == kinds.PODCLIQUESET.name]
    children = [each for each in lives if each.id.kind not in NOT_CHILDREN]
    references = [each for each in lives if each.id.kind in REFERENCES]
    observed = world.assemble(BLUEPRINTS, roots, children, {COMPUTE_DOMAIN.name: Unlisted("403")}, references=references)

    assert [plan.alarms for plan in toy.plans_of(observed)] == [()]
