"""N1–N23: what a name means, who shares the domain, and who deletes it (docs/behaviour)."""

from itertools import product
from typing import Any

import pytest

from engine.errors import Forbidden
from engine.operation import body_of
from engine.resource import Body
from engine.verb import Verb
from providers.fabrics.nvidia.names import AUTO, CHANNEL_CLASS, COMPUTE_DOMAIN, NAMED
from tests.builders import clique, group, podcliqueset
from tests.laws.fabric_worlds import scale, settle
from tests.laws.rack import Rack
from tests.mnnvl.asking import ask, claimed, complaints, deferred, done_to_domains, events, owners, plan_of, root, sharing, uids, up
from tests.mnnvl.sets import OPTED_OUT, OURS, auto, computedomain, gpu, gpus, named, said
from tests.mnnvl.vendors import two_vendors

AT = "spec.template.cliques[0].annotations[nvidia.com/computedomain]"


def test_N1_the_annotation_elsewhere_has_no_effect_and_causes_a_warning() -> None:
    manifest = said(podcliqueset("demo", gpu()), {AUTO: "disabled", NAMED: "rack"})

    assert any(NAMED in warning and "no effect" in warning for warning in ask(manifest).warnings)
    assert up(manifest).domains() == {}


def test_N2_the_domain_has_exactly_that_name_in_the_namespace_of_the_set() -> None:
    toy = up(named("a.b-c.0"))

    assert [(body["metadata"]["namespace"], name) for name, body in toy.domains().items()] == [("default", "a.b-c.0")]


def test_N3_groups_replicas_and_sets_share_it() -> None:
    member = sharing(gpu(annotations={NAMED: "rack"}), groups=(group("pool", "worker", replicas=2),), replicas=2)
    toy = up(member, named("rack", "other"))

    assert owners(toy, "rack") == ["demo", "other"]
    assert {clique for clique, claims in claimed(toy).items() if claims == ["rack"]} == {
        *(f"demo-{index}-pool-{unit}-worker" for index, unit in product(range(2), range(2))),
        "other-0-worker",
    }


@pytest.mark.parametrize(
    ("spec", "using"),
    [
        ({"containers": [*gpus()["containers"], {"name": "b", "image": "c"}]}, {"main"}),
        ({"containers": [{"name": "a", "image": "c"}, {"name": "b", "image": "c"}]}, {"a", "b"}),
        ({"containers": [{"name": "b", "image": "c"}], "initContainers": gpus()["containers"]}, {"main"}),
    ],
)
def test_N4_gpu_containers_use_the_claim_and_without_any_all_containers_do(spec: dict[str, Any], using: set[str]) -> None:
    toy = up(sharing(clique("worker", pod_spec=spec, annotations={NAMED: "rack"})))
    (pod,) = [toy.objects[id]["spec"] for id in toy.pods()]
    containers = [*pod["containers"], *pod.get("initContainers", ())]

    assert {one["name"] for one in containers if (one.get("resources") or {}).get("claims") == [{"name": "mnnvl-claim"}]} == using


def test_N5_the_template_is_the_one_that_the_domain_of_a_user_names() -> None:
    toy = Rack()
    toy.put(computedomain("rack", "my-channel"))
    toy.put(named("rack"))
    settle(toy)

    assert claimed(toy)["demo-0-worker"] == ["my-channel"]


def test_N6_named_domains_have_another_component_than_those_of_replicas() -> None:
    long = "a" * 64
    toy = up(named("rack"), named(long, "other"))
    labels = {name: body["metadata"]["labels"] for name, body in toy.domains().items()}

    assert labels["rack"] == {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "app.kubernetes.io/name": "rack",
        "app.kubernetes.io/component": "pcs-named-computedomain",
    }
    assert "app.kubernetes.io/name" not in labels[long]


def test_N7_each_set_is_an_owner_and_none_is_the_controller() -> None:
    toy = up(named("rack"), named("rack", "other"))
    references = toy.domains()["rack"]["metadata"]["ownerReferences"]

    assert [one["name"] for one in references] == ["demo", "other"]
    assert not any(one.get("controller") or one.get("blockOwnerDeletion") for one in references)


def test_N7_a_set_that_leaves_does_not_delete_a_domain_that_another_set_joins() -> None:
    toy = up(named("rack"))
    toy.delete(root())
    toy.put(named("rack", "other"))
    for _ in range(20):
        plans = toy.plans()
        leaving, joining = (next(plan for plan in plans if plan.root == root(name)) for name in ("demo", "other"))
        if any(wait.id.kind == "ComputeDomain" and wait.why.endswith("for which it is written first") for wait in leaving.deferred):
            break
        toy.apply(leaving.operations)
        toy.live()
    (join,) = [one for one in joining.operations if one.id.kind == "ComputeDomain"]

    assert not [one for one in leaving.operations if one.id.kind == "ComputeDomain"]
    assert (join.verb, join.expect.revision != "") == (Verb.PATCH, True)
    assert all(join.key in one.after for one in joining.operations if one.id.kind == "Pod" and body_of(one)["spec"].get("resourceClaims"))


@pytest.mark.parametrize("how", ["deleted", "scaled to nothing"])
def test_N8_the_last_set_deletes_the_domain_and_before_that_it_is_labelled_with_a_remaining_set(how: str) -> None:
    toy = up(named("rack"), named("rack", "other"))
    for name, left in (("demo", ["other"]), ("other", [])):
        toy.delete(root(name)) if how == "deleted" else scale(toy, root(name), 0)
        settle(toy)
        assert [owners(toy, domain) for domain in toy.domains()] == ([left] if left else [])
        if left:
            assert toy.domains()["rack"]["metadata"]["labels"]["app.kubernetes.io/part-of"] == "other"


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "mine", "uid": "uid-1", "controller": True}]},
        {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "finalizers": ["example.com/mine"]},
    ],
)
def test_N9_a_domain_of_a_user_is_used_and_never_written(metadata: dict[str, Any]) -> None:
    toy = Rack()
    toy.put({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "mine", "namespace": "default"}})
    toy.put(computedomain("rack", **metadata))
    toy.live()
    before = toy.domains()
    toy.put(named("rack"))
    settle(toy)
    assert (toy.domains(), claimed(toy)["demo-0-worker"]) == (before, ["rack"])
    toy.delete(root())
    settle(toy)

    assert toy.domains() == before


def test_N9_a_domain_of_a_user_with_a_set_as_owner_is_not_deleted_by_the_engine() -> None:
    toy = Rack()
    made = toy.put(named("rack"))
    tie = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "demo", "uid": made["metadata"]["uid"]}
    toy.put(computedomain("rack", ownerReferences=[tie]))
    settle(toy)
    assert claimed(toy)["demo-0-worker"] == ["rack"]
    toy.delete(root())

    assert done_to_domains(toy) == []
    assert (root() in toy.objects, toy.domains()) == (False, {})  # The garbage collector has seen to it.


def test_N9_a_domain_that_its_user_deleted_is_created_by_the_engine() -> None:
    toy = Rack()
    toy.put(computedomain("rack"))
    toy.put(named("rack"))
    settle(toy)
    toy.delete(toy.domain("rack"))
    settle(toy)

    assert (owners(toy, "rack"), toy.domains()["rack"]["metadata"]["finalizers"][0]) == (["demo"], OURS)


def test_N10_a_terminating_domain_gets_no_pods_and_is_created_again_afterwards() -> None:
    toy = up(named("rack"))
    uid = uids(toy)["rack"]
    toy.delete(toy.domain("rack"))
    settle(toy)
    scale(toy, root(), 2)
    settle(toy)
    assert claimed(toy)["demo-0-worker"] == ["rack"] and "demo-1-worker" not in claimed(toy)
    assert any(why.startswith("ComputeDomain rack is being deleted; waits for ") for why in deferred(plan_of(toy)).values())
    assert [alarm.reason for alarm in plan_of(toy).alarms] == ["ComputeDomainTerminating"]
    for id in [id for id in toy.pods() if "worker" in id.name]:
        toy.delete(id)
    settle(toy)

    assert uids(toy)["rack"] != uid
    assert [clique for clique, claims in claimed(toy).items() if claims] == ["demo-0-worker", "demo-1-worker"]


@pytest.mark.parametrize("first", ["automatic", "named"])
def test_N11_an_automatic_and_a_named_domain_are_never_the_same(first: str) -> None:
    sets = [auto(1), named("demo-0", "other")]
    early, late = sets if first == "automatic" else reversed(sets)
    toy = up(early)
    before = toy.domains()
    toy.put(late)
    settle(toy)
    whose = {"automatic": ("other", "demo-0"), "named": ("demo", "for replica 0")}
    loser, prefix = whose[first][0], f"Failed to create ComputeDomain {whose[first][1]}: "
    (alarm,) = plan_of(toy, loser).alarms

    assert toy.domains() == before
    assert (alarm.reason, alarm.text.startswith(prefix)) == ("ComputeDomainFailed", True)
    assert f"{loser}-0-worker" not in claimed(toy)


def test_N11_a_set_that_names_an_automatic_domain_is_told_whose_it_is() -> None:
    toy = up(auto(1, name="other"))
    toy.put(named("other-0"))
    settle(toy)
    why = (
        "ComputeDomain default/other-0 is an automatic domain of PodCliqueSet other, "
        "which cannot be joined by name; create the set with another one"
    )
    plan = plan_of(toy)

    assert [alarm.text for alarm in plan.alarms] == [f"Failed to create ComputeDomain other-0: {why}"]
    assert {(wait.why, wait.blocked) for wait in plan.deferred if wait.id.name.startswith(("demo-0-worker", "other-0"))} == {(why, True)}


def test_N12_scaling_neither_creates_nor_deletes_a_named_domain() -> None:
    toy = up(named("rack", replicas=1), named("rack", "other"))
    before = uids(toy)
    for replicas in (3, 1, 0, 2):
        scale(toy, root(), replicas)
        settle(toy)
        assert uids(toy) == before


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ({}, {NAMED: "b"}, "Forbidden: annotation nvidia.com/computedomain cannot be added after PodCliqueSet creation"),
        ({NAMED: "a"}, {}, "Forbidden: annotation nvidia.com/computedomain cannot be removed after PodCliqueSet creation"),
        (
            {NAMED: "a"},
            {NAMED: "b"},
            'Invalid value: "b": annotation nvidia.com/computedomain is immutable and cannot be changed from "a" to "b"',
        ),
    ],
)
def test_N13_the_annotation_of_a_clique_is_immutable(old: dict[str, str], new: dict[str, str], why: str) -> None:
    before = sharing(gpu("worker", annotations=old), clique("frontend"))
    after = sharing(clique("frontend"), gpu("worker", annotations=new))

    assert complaints(after, old=before) == [f"{AT.replace('[0]', '[1]')}: {why}"]
    assert complaints(sharing(clique("frontend"), gpu("worker", annotations=old)), old=before) == []


@pytest.mark.parametrize("value", ["", "Rack", "rack_a", "-rack", "a" * 254, "rack ", "räck", "a..b"])
def test_N14_an_invalid_name_is_rejected(value: str) -> None:
    (message,) = complaints(sharing(gpu(annotations={NAMED: value})))

    assert message.startswith(f"{AT}: Invalid value: ")


def test_N14_a_name_with_the_index_is_one_domain_for_each_replica() -> None:
    toy = up(named("rack-$(GROVE_PCS_INDEX)", replicas=2))
    assert sorted(toy.domains()) == ["rack-0", "rack-1"]
    scale(toy, root(), 1)
    settle(toy)

    assert list(toy.domains()) == ["rack-0"]


def test_N14_a_plain_name_and_one_with_the_index_can_be_the_same_domain() -> None:
    toy = up(sharing(gpu("a", annotations={NAMED: "rack-0"}), gpu("b", annotations={NAMED: "rack-$(GROVE_PCS_INDEX)"}), replicas=2))

    assert claimed(toy) == {"demo-0-a": ["rack-0"], "demo-0-b": ["rack-0"], "demo-1-a": ["rack-0"], "demo-1-b": ["rack-1"]}


def test_N15_a_set_created_while_automatic_domains_were_off_does_not_change_when_they_are_on() -> None:
    old = podcliqueset("demo", gpu(annotations={NAMED: "rack"}))
    assert (ask(old, flag=False).allowed, ask(old, flag=True).allowed) == (True, False)
    toy = up(old, flag=False)
    before = uids(toy)
    toy.configuration = Rack.configuration
    scale(toy, root(), 2)
    settle(toy)

    assert ask({**old, "spec": {**old["spec"], "replicas": 2}}, old=old).allowed
    assert (uids(toy), len(toy.pods())) == (before, 2)


def test_N16_without_the_crd_only_pods_with_a_request_are_deferred() -> None:
    toy = Rack()
    toy.unserved = frozenset({COMPUTE_DOMAIN.name})
    toy.put(named("rack"))
    toy.put(podcliqueset("other", clique("worker")))
    settle(toy)
    (alarm,) = plan_of(toy).alarms

    assert alarm.reason == "ComputeDomainFailed" and "does not serve ComputeDomain" in alarm.text
    assert claimed(toy) == {"demo-0-frontend": [], "other-0-worker": []}
    toy.delete(root())
    settle(toy)
    assert root() not in toy.objects


def test_N17_the_events_of_a_named_domain_have_its_name_and_are_on_the_set_that_created_it() -> None:
    toy = Rack()
    toy.put(named("rack"))
    (plan,) = toy.plans()

    assert events(plan) == [(False, "ComputeDomainCreated", "ComputeDomain rack created")]
    failed = [event for event in events(plan, Forbidden("no such right")) if event[0]]
    assert failed == [(True, "ComputeDomainFailed", "Failed to create ComputeDomain rack: no such right")]


@pytest.mark.parametrize("automatic", [True, False])
def test_N18_a_claim_of_the_same_name_is_rejected(automatic: bool) -> None:
    mine = {**gpus(), "resourceClaims": [{"name": "mnnvl-claim", "resourceClaimTemplateName": "mine"}]}
    manifest = auto(1, gpu(pod_spec=mine)) if automatic else sharing(gpu(pod_spec=mine, annotations={NAMED: "rack"}))
    (message,) = complaints(manifest)

    assert message.startswith('spec.template.cliques[0].spec.podSpec.resourceClaims[0].name: Invalid value: "mnnvl-claim"')


def test_N19_joining_a_domain_does_not_change_the_template_hash() -> None:
    def hashes(manifest: Body) -> set[str]:
        toy = up(dict(manifest))
        return {toy.objects[id]["metadata"]["labels"]["grove.io/pod-template-hash"] for id in toy.pods()}

    assert hashes(auto(1)) == hashes(said(podcliqueset("demo", gpu()), OPTED_OUT))


def test_N20_cliques_have_the_annotation_with_their_domain() -> None:
    toy = up(named("rack"))
    annotations = {
        id.name: body["metadata"].get("annotations", {}).get(NAMED) for id, body in toy.objects.items() if id.kind == "PodClique"
    }

    assert annotations == {"demo-0-frontend": None, "demo-0-worker": "rack"}
    assert sorted(str(toy.objects[id]["metadata"].get("annotations", {}).get(NAMED)) for id in toy.pods()) == ["None", "rack"]


def test_N21_two_vendors_on_one_clique_are_two_claims() -> None:
    made = two_vendors(sharing(gpu(annotations={NAMED: "rack", "acme.example/mesh": "blue"})))
    (member,) = [body_of(one)["spec"]["podSpec"] for one in made if one.id.kind == "PodClique"]

    assert {one["name"]: one["resourceClaimTemplateName"] for one in member["resourceClaims"]} == {
        "mnnvl-claim": "rack",
        "mesh": "blue-mesh",
    }


def claiming(*templates: str, spec: Body | None = None, **more: Any) -> dict[str, Any]:
    """A clique, with GPUs unless another pod spec is given, whose pods claim through these templates by themselves."""
    claims = [{"name": f"extra-{number}", "resourceClaimTemplateName": name} for number, name in enumerate(templates)]
    return gpu(pod_spec={**(spec or gpus()), "resourceClaims": claims}, **more)


NO_GPUS = {"containers": [{"name": "main", "image": "example/tool:1"}]}
RACK = {NAMED: "rack"}
CLAIMS = "spec.template.cliques[{}].spec.podSpec.resourceClaims[{}].resourceClaimTemplateName"


@pytest.mark.parametrize(
    ("manifest", "rejected"),
    [
        (auto(2, claiming("demo-1")), [CLAIMS.format(0, 0)]),
        (auto(2, claiming("demo-2", "demo-01", "demo-", "demo-x", "other-0")), []),
        (auto(1, gpu(), claiming("demo-0", name="tool", spec=NO_GPUS)), []),
        (sharing(claiming("rack", annotations=RACK)), [CLAIMS.format(0, 0)]),
        (sharing(claiming("free", "rack", annotations=RACK)), [CLAIMS.format(0, 1)]),
        (sharing(claiming("other", annotations=RACK), gpu("b", annotations={NAMED: "other"})), [CLAIMS.format(0, 0)]),
        (sharing(claiming("rack", "other"), gpu("a", annotations=RACK), gpu("b", annotations={NAMED: "other"})), [CLAIMS.format(0, 1)]),
        (sharing(claiming("rack", "rack"), gpu("a", annotations=RACK)), [CLAIMS.format(0, 1)]),
        (sharing(claiming("rack"), gpu("a", annotations=RACK)), []),
        (sharing(claiming("r11", annotations={NAMED: "r1$(GROVE_PCS_INDEX)"}), replicas=2), [CLAIMS.format(0, 0)]),
    ],
)
def test_N23_a_second_channel_of_a_domain_of_the_set_is_rejected(manifest: Body, rejected: list[str]) -> None:
    messages = complaints(manifest)

    assert [message.partition(": ")[0] for message in messages] == rejected
    assert all("a node has one channel, so they could never be scheduled" in message for message in messages)


def test_N23_an_update_may_not_add_a_second_channel_and_a_stored_one_does_not_prevent_updates() -> None:
    (message,) = complaints(sharing(claiming("rack", annotations=RACK)), old=sharing(gpu(annotations=RACK)))
    stored = auto(1, claiming("demo-1"))

    assert message.startswith(f'{CLAIMS.format(0, 0)}: Invalid value: "rack"')
    assert complaints({**stored, "spec": {**stored["spec"], "replicas": 3}}, old=stored) == []


def test_N23_a_second_channel_by_a_user_s_template_is_a_note_in_the_plan() -> None:
    toy = Rack()
    devices = {"requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}]}
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "mine", "namespace": "default"}}
    toy.put({**template, "spec": {"spec": {"devices": devices}}})
    toy.put(auto(2, claiming("mine")))

    assert plan_of(toy).notes == (
        "pods of clique worker claim 2 slots for ComputeDomains (ComputeDomain demo-$(GROVE_PCS_INDEX), claim extra-0), "
        "and a node has one: they can never be scheduled",
    )
