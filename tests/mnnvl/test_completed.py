"""N33: a set whose pods have completed is settled, is not recycled, and may release its domains until it needs new pods."""

from datetime import timedelta
from typing import Any

import pytest

from engine.verb import Verb
from resources.base import kinds, labels
from resources.domains.status import State, domain_statuses
from resources.reports.summary import summary
from tests.builders import clique, podcliqueset
from tests.laws.fabric_worlds import pass_, scale, settle
from tests.laws.rack import Rack
from tests.laws.toy import START
from tests.mnnvl.asking import ask, complaints, done_to_domains, owners, plan_of, root, uids, up
from tests.mnnvl.sets import auto, gpu, gpus, named

Body = dict[str, Any]


def job(manifest: Body, *, release: str | None = labels.ON_COMPLETION) -> Body:
    """The set, with pods that are not restarted when they have succeeded, and the annotation."""
    for each in manifest["spec"]["template"]["cliques"]:
        each["spec"]["podSpec"]["restartPolicy"] = "OnFailure"
    annotations = dict(manifest["metadata"].get("annotations") or {})
    metadata = {**manifest["metadata"], "annotations": annotations | ({labels.RELEASE_DOMAINS: release} if release else {})}
    return {**manifest, "metadata": metadata}


def complete(toy: Rack, *, of: str = "", failed_before: bool = False) -> None:
    """The pods whose name contains `of` succeed."""
    last = {"lastState": {"terminated": {"exitCode": 1}}} if failed_before else {}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": toy.stamp()}
    containers = [{"name": "main", "ready": False, "started": False, **last}]
    for id in toy.pods():
        if of in id.name:
            toy.write(id, {"status": {"phase": "Succeeded", "conditions": [scheduled], "containerStatuses": containers}})


def state(toy: Rack) -> tuple[str, dict[str, State]]:
    """The state of the set `demo`, and of its domains."""
    observed = next(each for each in toy.world().roots if each.root.id == root())
    domains = domain_statuses(observed, plan_of(toy), toy.configuration)
    return summary(observed, plan_of(toy), domains).state, {each.id.name: each.state for each in domains}


def is_at_rest(toy: Rack) -> bool:
    """Whether the plans have no operation, and wait for nothing."""
    return not any((*plan.operations, *plan.deferred, *plan.pending) for plan in toy.plans())


@pytest.mark.parametrize("failed_before", [False, True])
def test_N33_a_completed_set_is_settled_and_never_recycled(failed_before: bool) -> None:
    toy = up(job(auto(2, gpu(replicas=2), terminationDelay="10s"), release=None))
    before = set(toy.pods())
    complete(toy, failed_before=failed_before)
    settle(toy)
    toy.now = START + timedelta(hours=1)
    settle(toy)

    assert is_at_rest(toy)
    assert before == set(toy.pods())
    assert state(toy) == ("completed", {"demo-0": State.COMPLETED, "demo-1": State.COMPLETED})
    gang = toy.objects[kinds.PODGANG.id("default", "demo-0")]
    assert gang["status"]["phase"] == "Succeeded"


def test_N33_domains_are_released_when_all_their_pods_have_completed_and_stay_away() -> None:
    toy = up(job(auto(2, gpu(replicas=2))))
    complete(toy, of="demo-0-")
    done = done_to_domains(toy)

    assert done == [("delete", "demo-0"), ("release", "demo-0")]
    assert list(toy.domains()) == ["demo-1"]
    complete(toy)
    settle(toy)
    assert (toy.domains(), is_at_rest(toy), len(toy.pods())) == ({}, True, 4)
    assert state(toy) == ("completed", {"demo-0": State.RELEASED, "demo-1": State.RELEASED})


def test_N33_a_domain_with_a_running_pod_or_a_foreign_claim_stays() -> None:
    toy = up(job(auto(1, gpu(replicas=2))))
    first, second = toy.pods()
    complete(toy, of=first.name)
    settle(toy)
    assert list(toy.domains()) == ["demo-0"]

    claim = toy.objects[kinds.RESOURCE_CLAIM.id("default", f"{second.name}-mnnvl-claim")]
    foreign = {"name": "theirs", "namespace": "default", "annotations": {"pod": second.name}}
    toy.put({**claim, "metadata": foreign})
    complete(toy)
    toy.objects[kinds.RESOURCE_CLAIM.id("default", "theirs")]["metadata"]["annotations"] = {"pod": "theirs"}
    settle(toy)

    assert [wait.why for wait in plan_of(toy).pending] == ["all its pods have completed; waits for 1 claim (theirs) to be gone"]
    assert "deletionTimestamp" not in toy.domains()["demo-0"]["metadata"]


@pytest.mark.parametrize("need", ["a pod is deleted", "a pod fails", "the clique is scaled", "the template is edited"])
def test_N33_a_later_need_creates_the_domain_again_before_its_pods(need: str) -> None:
    toy = up(job(auto(1, gpu(replicas=2))))
    complete(toy)
    settle(toy)
    assert toy.domains() == {}
    if need == "a pod is deleted":
        toy.delete(toy.pods()[0])
    elif need == "a pod fails":
        toy.write(toy.pods()[0], {"status": {"phase": "Failed"}})
    elif need == "the clique is scaled":
        scale(toy, kinds.PODCLIQUE.id("default", "demo-0-worker"), 3)
    else:
        spec = job(auto(1, gpu(replicas=2, pod_spec={**gpus("4"), "priority": 1})))["spec"]
        toy.write(root(), {"spec": {"template": spec["template"]}, "metadata": {"generation": 2}})
    settle(toy)  # `check` refuses a pod before its domain and template.

    assert list(toy.domains()) == ["demo-0"]
    running = [id for id in toy.pods() if toy.objects[id]["status"]["phase"] == "Running"]
    assert running and all(toy.given(id.name) == uids(toy)["demo-0"] for id in running)
    assert is_at_rest(toy)


def test_N33_of_a_shared_domain_a_completed_set_gives_up_its_ownership() -> None:
    toy = up(job(named("rack-a")), named("rack-a", name="other"))
    assert owners(toy, "rack-a") == ["demo", "other"]
    complete(toy, of="demo-0-worker")
    settle(toy)

    assert (owners(toy, "rack-a"), is_at_rest(toy)) == (["other"], True)
    toy.delete(next(id for id in toy.pods() if "demo-0-worker" in id.name))
    settle(toy)
    assert sorted(owners(toy, "rack-a")) == ["demo", "other"]


def test_N33_without_the_annotation_nothing_is_released_and_removing_it_brings_the_domain_back() -> None:
    toy = up(job(auto(1)))
    complete(toy)
    settle(toy)
    assert toy.domains() == {}
    toy.write(root(), {"metadata": {"annotations": {labels.RELEASE_DOMAINS: None}}})
    settle(toy)

    assert (list(toy.domains()), is_at_rest(toy)) == (["demo-0"], True)


def test_N33_a_restart_policy_other_than_always_causes_a_warning_about_the_domains_of_completed_pods() -> None:
    said = [each for each in ask(job(auto(1, gpu()), release=None)).warnings if "ComputeDomains of pods that have completed stay" in each]

    assert len(said) == 1 and "engine.grove.io/release-domains: on-completion" in said[0]
    for without in (job(auto(1, gpu())), auto(1, gpu()), job(podcliqueset("demo", clique("frontend")), release=None)):
        assert not [each for each in ask(without).warnings if "have completed stay" in each]


def test_N33_another_value_is_rejected_and_the_annotation_stays_on_the_set() -> None:
    message = 'metadata.annotations.engine.grove.io/release-domains: Invalid value: "yes": must be "on-completion"'

    assert complaints(job(auto(1), release="yes")) == [message]
    assert complaints(job(auto(1), release="yes"), old=auto(1)) == [message]
    assert ask(job(auto(1))).allowed
    toy = up(job(auto(1)))
    assert labels.RELEASE_DOMAINS not in (toy.objects[kinds.PODGANG.id("default", "demo-0")]["metadata"].get("annotations") or {})


def test_N33_a_crash_between_two_calls_neither_loses_nor_repeats_anything() -> None:
    toy = up(job(auto(2)))
    complete(toy)
    for _ in range(12):
        (plan,) = toy.plans()
        toy.apply(operation for operation in plan.operations[:1] if operation.verb is not Verb.CREATE)
        toy.live()
    pass_(toy)

    assert (toy.domains(), is_at_rest(toy)) == ({}, True)
