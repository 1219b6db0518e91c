"""R40–R59 and N1–N22: domains that are asked for by name, and shared (docs/behaviour)."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from engine.errors import Forbidden
from engine.ids import Kind
from engine.operation import Plan, Verb
from engine.resource import Body
from providers.fabrics.nvidia import Nvidia
from providers.fabrics.nvidia_words import AUTO, COMPUTE_DOMAIN, NAMED
from resources import kinds
from resources.ports import Wish
from tests.builders import clique, group, podcliqueset
from tests.laws.fabric_worlds import rest, scale
from tests.laws.rack import Rack
from tests.laws.toy import SETUP
from tests.mnnvl.asking import OFF, ask, claimed, complaints, events
from tests.mnnvl.sets import OURS, auto, computedomain, gpu, gpus, named, said
from tests.mnnvl.test_automatic import uids, up

OPTED_OUT = {AUTO: "disabled"}
BOTH_FACTS = (
    "automatic MNNVL injection is enabled for this PodCliqueSet replica; "
    "explicit ComputeDomain annotations require opting out of automatic injection"
)
AT = "spec.template.cliques[0].annotations[nvidia.com/computedomain]"


def root(name: str = "demo") -> Any:
    """The set of that name."""
    return kinds.PODCLIQUESET.id("default", name)


def sharing(*cliques: Body, name: str = "demo", replicas: int = 1, **more: Any) -> dict[str, Any]:
    """A set with these cliques that has opted out."""
    return said(podcliqueset(name, *(dict(one) for one in cliques), replicas=replicas, **more), OPTED_OUT)


def plan_of(toy: Rack, name: str = "demo") -> Plan:
    """What is to be done about one set."""
    return next(plan for plan in toy.plans() if plan.root == root(name))


def owners(toy: Rack, domain: str) -> list[str]:
    """The sets that have a part in it."""
    return [owner["name"] for owner in toy.domains()[domain]["metadata"].get("ownerReferences", ())]


def held(plan: Plan) -> dict[str, str]:
    """What is held, and why."""
    return {one.id.name: one.why for one in plan.held}


def test_R40_every_pod_of_the_clique_claims_the_domain_of_that_name() -> None:
    toy = up(sharing(gpu(replicas=3, annotations={NAMED: "rack-a"})))

    assert claimed(toy) == {"demo-0-worker": ["rack-a"] * 3}


def test_R41_all_who_say_the_same_name_are_in_one_domain() -> None:
    toy = up(sharing(gpu("a", annotations={NAMED: "rack"}), gpu("b", annotations={NAMED: "rack"}), replicas=2))

    assert list(toy.domains()) == ["rack"]
    assert set(sum(claimed(toy).values(), [])) == {"rack"}
    assert [id.name for id in toy.objects if id.kind == "ResourceClaimTemplate"] == ["rack"]


def test_R42_a_domain_that_is_not_there_is_made() -> None:
    toy = up(named("rack-a"))

    assert toy.domains()["rack-a"]["spec"] == {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "rack-a"}}}


def test_R43_one_that_is_there_is_used() -> None:
    toy = Rack()
    toy.put(computedomain("rack-a"))
    toy.live()
    before = uids(toy)
    toy.put(named("rack-a"))
    rest(toy)

    assert (uids(toy), claimed(toy)["demo-0-worker"]) == (before, ["rack-a"])


def test_R44_who_does_not_say_it_gets_no_claim() -> None:
    toy = up(sharing(gpu("in", annotations={NAMED: "rack"}), gpu("out"), clique("cpu")))

    assert claimed(toy) == {"demo-0-cpu": [], "demo-0-in": ["rack"], "demo-0-out": []}


def test_R45_cliques_and_replicas_say_whose_pods_are_in_it_and_nothing_else_does() -> None:
    toy = up(sharing(clique("cpu", 2, annotations={NAMED: "rack"}), gpu("out"), replicas=2))

    assert claimed(toy) == {"demo-0-cpu": ["rack"] * 2, "demo-0-out": [], "demo-1-cpu": ["rack"] * 2, "demo-1-out": []}


def test_R46_R47_it_needs_no_switch() -> None:
    manifest = podcliqueset("demo", gpu(annotations={NAMED: "rack"}))
    toy = up(manifest, flag=False)

    assert ask(manifest, flag=False).allowed
    assert (list(toy.domains()), claimed(toy)) == (["rack"], {"demo-0-worker": ["rack"]})


def test_R48_who_has_opted_out_may_ask_by_name() -> None:
    assert ask(named("rack")).allowed
    assert claimed(up(named("rack")))["demo-0-worker"] == ["rack"]


@pytest.mark.parametrize("said_so", [{}, {AUTO: "enabled"}])
def test_R49_who_has_not_is_rejected_and_nothing_is_made(said_so: dict[str, str]) -> None:
    manifest = said(podcliqueset("demo", gpu(annotations={NAMED: "rack"})), said_so)
    toy = up(manifest)

    assert not ask(manifest).allowed
    assert {id.kind for id in toy.objects} == {"PodCliqueSet"}
    assert any(BOTH_FACTS in problem for problem in plan_of(toy).problems)


@pytest.mark.parametrize("spec", [gpus(), None])
def test_R50_the_error_tells_both_facts_and_where(spec: dict[str, Any] | None) -> None:
    (told,) = complaints(podcliqueset("demo", clique("worker", pod_spec=spec, annotations={NAMED: "rack"})))

    assert told.startswith(f"{AT}: ") and BOTH_FACTS in told


def test_R51_then_there_are_domains_by_name_only() -> None:
    assert list(up(named("rack", replicas=2)).domains()) == ["rack"]


def test_R52_where_nobody_asks_a_missing_crd_is_nobody_s_business() -> None:
    toy = Rack()
    toy.settings = OFF
    toy.unserved = frozenset({COMPUTE_DOMAIN.name})
    toy.put(podcliqueset("demo", gpu()))
    rest(toy)

    assert claimed(toy) == {"demo-0-worker": []}
    assert [plan.alarms for plan in toy.plans()] == [()]


def test_R53_cliques_of_other_vendors_are_untouched() -> None:
    amd = gpus(resource="amd.com/gpu")
    toy = up(sharing(gpu("nvidia", annotations={NAMED: "rack"}), clique("amd", pod_spec=amd)))
    (pod,) = [toy.objects[id] for id in toy.pods() if "amd" in id.name]

    assert claimed(toy) == {"demo-0-amd": [], "demo-0-nvidia": ["rack"]}
    assert pod["spec"]["containers"][0]["resources"] == amd["containers"][0]["resources"]


@pytest.mark.parametrize("key", ["grove.io/computedomain", "nvidia.com/ComputeDomain", "computedomain"])
def test_R54_there_is_one_key_and_no_alias(key: str) -> None:
    toy = up(sharing(gpu(annotations={key: "rack"})))

    assert (toy.domains(), claimed(toy)) == ({}, {"demo-0-worker": []})


class Acme(Nvidia):
    """Another vendor's fabric: other kinds, another key, another claim."""

    name = "acme"
    kind = Kind("fabric.acme.example", "v1", "Mesh", "meshes")
    finalizer = "acme.example/mesh"

    def wishes(self, root: str, annotations: Any, cliques: Any) -> tuple[Wish, ...]:
        """Asked for by a key of its own."""
        asked = {name: (one.get("annotations") or {}).get("acme.example/mesh") for name, one in cliques.items()}
        return tuple(Wish(mesh, frozenset({name}), shared=True) for name, mesh in asked.items() if mesh)

    def component(self, wish: Wish) -> str:
        """Its own."""
        return "pcs-mesh"

    def spec(self, name: str) -> Body:
        """What it says."""
        return {"template": name}

    def template(self, domain: Any, name: str) -> str:
        """Where it leads."""
        return f"{name}-mesh"

    def dressed(self, spec: Body, template: str) -> dict[str, Any]:
        """A claim under its own name."""
        return {**spec, "resourceClaims": [*(spec.get("resourceClaims") or ()), {"name": "mesh", "resourceClaimTemplateName": template}]}


def two_vendors(manifest: Body) -> list[Any]:
    """What a new set comes to where two vendors are known: objects to be made."""
    toy = Rack()
    toy.settings = replace(SETUP, fabrics=(*SETUP.fabrics, Acme()))
    toy.put(manifest)
    (plan,) = toy.plans()
    return [operation for operation in plan.operations if operation.verb is Verb.CREATE]


def test_R55_another_vendor_is_registered_without_a_change_elsewhere() -> None:
    made = two_vendors(sharing(gpu(annotations={"acme.example/mesh": "blue"})))
    (mesh,) = [one for one in made if one.id.kind == "Mesh"]

    assert (mesh.id.group, mesh.id.name, mesh.body["spec"]) == ("fabric.acme.example", "blue", {"template": "blue"})
    assert mesh.body["metadata"]["finalizers"] == ["acme.example/mesh"]


def test_R56_a_user_s_own_domain_and_claims_keep_working() -> None:
    mine = {**gpus(), "resourceClaims": [{"name": "channel", "resourceClaimTemplateName": "my-channel"}]}
    toy = Rack()
    toy.put(computedomain("mine", "my-channel"))
    toy.live()
    toy.put(sharing(gpu(pod_spec=mine)))
    toy.put(auto(1, name="other"))
    rest(toy)

    assert claimed(toy) == {"demo-0-worker": ["my-channel"], "other-0-worker": ["other-0"]}
    assert "labels" not in toy.domains()["mine"]["metadata"]


def test_R57_the_annotation_adds_no_placement() -> None:
    def placement(annotations: dict[str, str]) -> list[Any]:
        toy = up(sharing(gpu(annotations=annotations)))
        (pod,) = [toy.objects[id]["spec"] for id in toy.pods()]
        gangs = [body["spec"].get("topologyConstraint") for id, body in toy.objects.items() if id.kind == "PodGang"]
        return [*(pod.get(field) for field in ("affinity", "nodeSelector", "tolerations", "topologySpreadConstraints")), gangs]

    assert placement({NAMED: "rack"}) == placement({})


def test_R58_without_any_vendor_everything_else_is_the_same() -> None:
    toy = Rack()
    toy.settings = replace(SETUP, fabrics=())
    toy.put(podcliqueset("demo", gpu(annotations={NAMED: "rack"})))
    rest(toy)

    assert (toy.domains(), claimed(toy)) == ({}, {"demo-0-worker": []})


def test_R59_opting_out_is_for_all_replicas_of_a_set() -> None:
    toy = up(sharing(gpu("in", annotations={NAMED: "rack"}), gpu("out"), replicas=3))

    assert list(toy.domains()) == ["rack"]
    assert {clique: claims for clique, claims in claimed(toy).items() if "out" in clique} == {f"demo-{index}-out": [] for index in range(3)}


def test_N1_elsewhere_it_has_no_effect_and_is_warned_of() -> None:
    manifest = said(podcliqueset("demo", gpu()), {AUTO: "disabled", NAMED: "rack"})

    assert any(NAMED in warning and "no effect" in warning for warning in ask(manifest).warnings)
    assert up(manifest).domains() == {}


def test_N2_the_domain_has_the_very_name_in_the_namespace_of_the_set() -> None:
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
def test_N4_gpu_containers_use_the_claim_and_where_there_are_none_all_do(spec: dict[str, Any], using: set[str]) -> None:
    toy = up(sharing(clique("worker", pod_spec=spec, annotations={NAMED: "rack"})))
    (pod,) = [toy.objects[id]["spec"] for id in toy.pods()]
    containers = [*pod["containers"], *pod.get("initContainers", ())]

    assert {one["name"] for one in containers if (one.get("resources") or {}).get("claims") == [{"name": "mnnvl-claim"}]} == using


def test_N5_the_template_is_the_one_that_a_user_s_domain_says() -> None:
    toy = Rack()
    toy.put(computedomain("rack", "my-channel"))
    toy.put(named("rack"))
    rest(toy)

    assert claimed(toy)["demo-0-worker"] == ["my-channel"]


def test_N6_what_is_made_for_a_name_is_told_apart_from_what_replicas_have() -> None:
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


def test_N7_each_set_is_an_owner_and_nobody_controls_it() -> None:
    toy = up(named("rack"), named("rack", "other"))
    references = toy.domains()["rack"]["metadata"]["ownerReferences"]

    assert [one["name"] for one in references] == ["demo", "other"]
    assert not any(one.get("controller") or one.get("blockOwnerDeletion") for one in references)


def test_N7_who_leaves_as_the_last_does_not_take_it_from_who_joins_at_that_moment() -> None:
    toy = up(named("rack"))
    toy.delete(root())
    toy.put(named("rack", "other"))
    for _ in range(20):
        plans = toy.plans()
        if any((one.verb, one.id.kind) == (Verb.DELETE, "ComputeDomain") for plan in plans for one in plan.operations):
            break
        toy.apply(one for plan in plans if plan.root == root() for one in plan.operations)
        toy.live()
    leaving, joining = (next(plan for plan in plans if plan.root == root(name)) for name in ("demo", "other"))
    (delete,) = [one for one in leaving.operations if (one.verb, one.id.kind) == (Verb.DELETE, "ComputeDomain")]
    (join,) = [one for one in joining.operations if one.id.kind == "ComputeDomain"]

    assert delete.expect.revision == join.expect.revision != ""
    assert all(join.key in one.after for one in joining.operations if one.id.kind == "Pod" and one.body["spec"].get("resourceClaims"))


@pytest.mark.parametrize("how", ["deleted", "scaled to nothing"])
def test_N8_the_last_one_takes_it_away_and_who_stays_is_named(how: str) -> None:
    toy = up(named("rack"), named("rack", "other"))
    for name, left in (("demo", ["other"]), ("other", [])):
        toy.delete(root(name)) if how == "deleted" else scale(toy, root(name), 0)
        rest(toy)
        assert [owners(toy, domain) for domain in toy.domains()] == ([left] if left else [])
        if left:
            assert toy.domains()["rack"]["metadata"]["labels"]["app.kubernetes.io/part-of"] == "other"


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "mine", "uid": "u", "controller": True}]},
        {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "finalizers": ["example.com/mine"]},
    ],
)
def test_N9_a_user_s_domain_is_used_and_never_written_to(metadata: dict[str, Any]) -> None:
    toy = Rack()
    toy.put(computedomain("rack", **metadata))
    toy.live()
    before = toy.domains()
    toy.put(named("rack"))
    rest(toy)
    assert (toy.domains(), claimed(toy)["demo-0-worker"]) == (before, ["rack"])
    toy.delete(root())
    rest(toy)

    assert toy.domains() == before


def test_N9_one_that_a_user_has_tied_to_a_set_is_not_deleted_by_us_either() -> None:
    toy = Rack()
    made = toy.put(named("rack"))
    tie = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "demo", "uid": made["metadata"]["uid"]}
    toy.put(computedomain("rack", ownerReferences=[tie]))
    toy.live()
    before = toy.domains()
    rest(toy)
    toy.delete(root())
    rest(toy)

    assert (toy.domains(), toy.pods(), root() in toy.objects) == (before, [], False)


def test_N9_when_a_user_takes_his_away_one_of_ours_follows() -> None:
    toy = Rack()
    toy.put(computedomain("rack"))
    toy.put(named("rack"))
    rest(toy)
    toy.delete(toy.domain("rack"))
    rest(toy)

    assert (owners(toy, "rack"), toy.domains()["rack"]["metadata"]["finalizers"][0]) == (["demo"], OURS)


def test_N10_a_domain_on_its_way_out_takes_nobody_in_and_is_made_again_when_it_is_gone() -> None:
    toy = up(named("rack"))
    uid = uids(toy)["rack"]
    toy.delete(toy.domain("rack"))
    rest(toy)
    scale(toy, root(), 2)
    rest(toy)
    assert claimed(toy)["demo-0-worker"] == ["rack"] and "demo-1-worker" not in claimed(toy)
    assert any(why == "ComputeDomain rack is being deleted" for why in held(plan_of(toy)).values())
    assert [alarm.reason for alarm in plan_of(toy).alarms] == ["ComputeDomainTerminating"]
    for id in [id for id in toy.pods() if "worker" in id.name]:
        toy.delete(id)
    rest(toy)

    assert uids(toy)["rack"] != uid
    assert [clique for clique, claims in claimed(toy).items() if claims] == ["demo-0-worker", "demo-1-worker"]


@pytest.mark.parametrize("first", ["automatic", "named"])
def test_N11_an_automatic_domain_and_one_by_name_never_become_one(first: str) -> None:
    sets = [auto(1), named("demo-0", "other")]
    early, late = sets if first == "automatic" else reversed(sets)
    toy = up(early)
    before = toy.domains()
    toy.put(late)
    rest(toy)
    whose = {"automatic": ("other", "demo-0"), "named": ("demo", "for replica 0")}
    loser, told = whose[first][0], f"Failed to create ComputeDomain {whose[first][1]}: "
    (alarm,) = plan_of(toy, loser).alarms

    assert toy.domains() == before
    assert (alarm.reason, alarm.text.startswith(told)) == ("ComputeDomainFailed", True)
    assert f"{loser}-0-worker" not in claimed(toy)


def test_N12_scaling_neither_makes_nor_deletes_it() -> None:
    toy = up(named("rack", replicas=1), named("rack", "other"))
    before = uids(toy)
    for replicas in (3, 1, 0, 2):
        scale(toy, root(), replicas)
        rest(toy)
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
def test_N13_on_a_clique_it_stays_as_it_is_wherever_the_clique_stands(old: dict[str, str], new: dict[str, str], why: str) -> None:
    before = sharing(gpu("worker", annotations=old), clique("frontend"))
    after = sharing(clique("frontend"), gpu("worker", annotations=new))

    assert complaints(after, old=before) == [f"{AT.replace('[0]', '[1]')}: {why}"]
    assert complaints(sharing(clique("frontend"), gpu("worker", annotations=old)), old=before) == []


@pytest.mark.parametrize("value", ["", "Rack", "rack_a", "-rack", "a" * 254, "rack ", "räck", "a..b"])
def test_N14_what_no_domain_can_be_called_is_rejected(value: str) -> None:
    (told,) = complaints(sharing(gpu(annotations={NAMED: value})))

    assert told.startswith(f"{AT}: Invalid value: ")


def test_N14_with_the_index_in_its_name_there_is_one_for_each_replica() -> None:
    toy = up(named("rack-$(GROVE_PCS_INDEX)", replicas=2))
    assert sorted(toy.domains()) == ["rack-0", "rack-1"]
    scale(toy, root(), 1)
    rest(toy)

    assert list(toy.domains()) == ["rack-0"]


def test_N14_a_plain_name_and_one_with_an_index_may_come_to_the_same() -> None:
    toy = up(sharing(gpu("a", annotations={NAMED: "rack-0"}), gpu("b", annotations={NAMED: "rack-$(GROVE_PCS_INDEX)"}), replicas=2))

    assert claimed(toy) == {"demo-0-a": ["rack-0"], "demo-0-b": ["rack-0"], "demo-1-a": ["rack-0"], "demo-1-b": ["rack-1"]}


def test_N15_who_came_while_it_was_off_stays_as_it_is_when_it_is_on() -> None:
    old = podcliqueset("demo", gpu(annotations={NAMED: "rack"}))
    assert (ask(old, flag=False).allowed, ask(old, flag=True).allowed) == (True, False)
    toy = up(old, flag=False)
    before = uids(toy)
    toy.settings = Rack.settings
    scale(toy, root(), 2)
    rest(toy)

    assert ask({**old, "spec": {**old["spec"], "replicas": 2}}, old=old).allowed
    assert (uids(toy), len(toy.pods())) == (before, 2)


def test_N16_without_the_crd_only_who_asks_is_held_and_nothing_hangs() -> None:
    toy = Rack()
    toy.unserved = frozenset({COMPUTE_DOMAIN.name})
    toy.put(named("rack"))
    toy.put(podcliqueset("other", clique("worker")))
    rest(toy)
    (alarm,) = plan_of(toy).alarms

    assert alarm.reason == "ComputeDomainFailed" and "does not serve ComputeDomain" in alarm.text
    assert claimed(toy) == {"demo-0-frontend": [], "other-0-worker": []}
    toy.delete(root())
    rest(toy)
    assert root() not in toy.objects


def test_N17_it_is_told_by_its_bare_name_on_the_set_that_made_it() -> None:
    toy = Rack()
    toy.put(named("rack"))
    (plan,) = toy.plans()

    assert events(plan) == [(False, "ComputeDomainCreated", "ComputeDomain rack created")]
    failed = [event for event in events(plan, Forbidden("no such right")) if event[0]]
    assert failed == [(True, "ComputeDomainFailed", "Failed to create ComputeDomain rack: no such right")]


@pytest.mark.parametrize("automatic", [True, False])
def test_N18_a_claim_of_that_name_stands_in_the_way(automatic: bool) -> None:
    mine = {**gpus(), "resourceClaims": [{"name": "mnnvl-claim", "resourceClaimTemplateName": "mine"}]}
    manifest = auto(1, gpu(pod_spec=mine)) if automatic else sharing(gpu(pod_spec=mine, annotations={NAMED: "rack"}))
    (told,) = complaints(manifest)

    assert told.startswith('spec.template.cliques[0].spec.podSpec.resourceClaims[0].name: Invalid value: "mnnvl-claim"')


def test_N19_being_in_a_domain_is_no_new_version() -> None:
    def hashes(manifest: Body) -> set[str]:
        toy = up(dict(manifest))
        return {toy.objects[id]["metadata"]["labels"]["grove.io/pod-template-hash"] for id in toy.pods()}

    assert hashes(auto(1)) == hashes(said(podcliqueset("demo", gpu()), OPTED_OUT))


def test_N20_pods_say_which_domain_they_were_made_for() -> None:
    toy = up(named("rack"))
    told = {id.name: body["metadata"].get("annotations", {}).get(NAMED) for id, body in toy.objects.items() if id.kind == "PodClique"}

    assert told == {"demo-0-frontend": None, "demo-0-worker": "rack"}
    assert sorted(str(toy.objects[id]["metadata"].get("annotations", {}).get(NAMED)) for id in toy.pods()) == ["None", "rack"]


def test_N21_two_vendors_on_one_clique_are_two_claims() -> None:
    made = two_vendors(sharing(gpu(annotations={NAMED: "rack", "acme.example/mesh": "blue"})))
    (member,) = [one.body["spec"]["podSpec"] for one in made if one.id.kind == "PodClique"]

    assert {one["name"]: one["resourceClaimTemplateName"] for one in member["resourceClaims"]} == {
        "mnnvl-claim": "rack",
        "mesh": "blue-mesh",
    }
