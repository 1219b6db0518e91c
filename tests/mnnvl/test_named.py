"""R40–R59: domains that are requested by name (docs/behaviour)."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.operation import body_of
from providers.fabrics.nvidia.names import AUTO, COMPUTE_DOMAIN, NAMED
from tests.builders import clique, podcliqueset
from tests.laws.fabric_worlds import settle
from tests.laws.rack import Rack
from tests.laws.toy import CONFIGURATION
from tests.mnnvl.asking import OFF, ask, claimed, complaints, plan_of, sharing, uids, up
from tests.mnnvl.sets import auto, computedomain, gpu, gpus, named, said
from tests.mnnvl.vendors import two_vendors

BOTH_FACTS = (
    "automatic MNNVL injection is enabled for this PodCliqueSet replica; "
    "explicit ComputeDomain annotations require opting out of automatic injection"
)
AT = "spec.template.cliques[0].annotations[nvidia.com/computedomain]"


def test_R40_every_pod_of_the_clique_claims_the_domain_of_that_name() -> None:
    toy = up(sharing(gpu(replicas=3, annotations={NAMED: "rack-a"})))

    assert claimed(toy) == {"demo-0-worker": ["rack-a"] * 3}


def test_R41_all_cliques_with_the_same_name_share_one_domain() -> None:
    toy = up(sharing(gpu("a", annotations={NAMED: "rack"}), gpu("b", annotations={NAMED: "rack"}), replicas=2))

    assert list(toy.domains()) == ["rack"]
    assert set(sum(claimed(toy).values(), [])) == {"rack"}
    assert [id.name for id in toy.objects if id.kind == "ResourceClaimTemplate"] == ["rack"]


def test_R42_a_domain_that_does_not_exist_is_created() -> None:
    toy = up(named("rack-a"))

    assert toy.domains()["rack-a"]["spec"] == {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "rack-a"}}}


def test_R43_an_existing_domain_is_used() -> None:
    toy = Rack()
    toy.put(computedomain("rack-a"))
    toy.live()
    before = uids(toy)
    toy.put(named("rack-a"))
    settle(toy)

    assert (uids(toy), claimed(toy)["demo-0-worker"]) == (before, ["rack-a"])


def test_R44_cliques_without_the_annotation_get_no_claim() -> None:
    toy = up(sharing(gpu("in", annotations={NAMED: "rack"}), gpu("out"), clique("cpu")))

    assert claimed(toy) == {"demo-0-cpu": [], "demo-0-in": ["rack"], "demo-0-out": []}


def test_R45_the_annotations_of_cliques_alone_decide_which_pods_join() -> None:
    toy = up(sharing(clique("cpu", 2, annotations={NAMED: "rack"}), gpu("out"), replicas=2))

    assert claimed(toy) == {"demo-0-cpu": ["rack"] * 2, "demo-0-out": [], "demo-1-cpu": ["rack"] * 2, "demo-1-out": []}


def test_R46_R47_named_domains_need_no_configuration() -> None:
    manifest = podcliqueset("demo", gpu(annotations={NAMED: "rack"}))
    toy = up(manifest, flag=False)

    assert ask(manifest, flag=False).allowed
    assert (list(toy.domains()), claimed(toy)) == (["rack"], {"demo-0-worker": ["rack"]})


def test_R48_a_set_that_opted_out_may_request_domains_by_name() -> None:
    assert ask(named("rack")).allowed
    assert claimed(up(named("rack")))["demo-0-worker"] == ["rack"]


@pytest.mark.parametrize("said_so", [{}, {AUTO: "enabled"}])
def test_R49_a_set_that_did_not_opt_out_is_rejected_and_nothing_is_created(said_so: dict[str, str]) -> None:
    manifest = said(podcliqueset("demo", gpu(annotations={NAMED: "rack"})), said_so)
    toy = up(manifest)

    assert not ask(manifest).allowed
    assert {id.kind for id in toy.objects} == {"PodCliqueSet"}
    assert any(BOTH_FACTS in problem for problem in plan_of(toy).problems)


@pytest.mark.parametrize("spec", [gpus(), None])
def test_R50_the_error_names_both_facts_and_the_field(spec: dict[str, Any] | None) -> None:
    (message,) = complaints(podcliqueset("demo", clique("worker", pod_spec=spec, annotations={NAMED: "rack"})))

    assert message.startswith(f"{AT}: ") and BOTH_FACTS in message


def test_R51_a_set_that_opted_out_has_named_domains_only() -> None:
    assert list(up(named("rack", replicas=2)).domains()) == ["rack"]


def test_R52_without_a_request_a_missing_crd_has_no_effect() -> None:
    toy = Rack()
    toy.configuration = OFF
    toy.unserved = frozenset({COMPUTE_DOMAIN.name})
    toy.put(podcliqueset("demo", gpu()))
    settle(toy)

    assert claimed(toy) == {"demo-0-worker": []}
    assert [plan.alarms for plan in toy.plans()] == [()]


def test_R53_cliques_of_other_vendors_are_untouched() -> None:
    amd = gpus(resource="amd.com/gpu")
    toy = up(sharing(gpu("nvidia", annotations={NAMED: "rack"}), clique("amd", pod_spec=amd)))
    (pod,) = [toy.objects[id] for id in toy.pods() if "amd" in id.name]

    assert claimed(toy) == {"demo-0-amd": [], "demo-0-nvidia": ["rack"]}
    assert pod["spec"]["containers"][0]["resources"] == amd["containers"][0]["resources"]


@pytest.mark.parametrize("key", ["grove.io/computedomain", "nvidia.com/ComputeDomain", "computedomain"])
def test_R54_the_annotation_has_one_key_and_no_alias(key: str) -> None:
    toy = up(sharing(gpu(annotations={key: "rack"})))

    assert (toy.domains(), claimed(toy)) == ({}, {"demo-0-worker": []})


def test_R55_another_vendor_is_registered_without_a_change_elsewhere() -> None:
    made = two_vendors(sharing(gpu(annotations={"acme.example/mesh": "blue"})))
    (mesh,) = [one for one in made if one.id.kind == "Mesh"]

    assert (mesh.id.group, mesh.id.name, body_of(mesh)["spec"]) == ("fabric.acme.example", "blue", {"template": "blue"})
    assert body_of(mesh)["metadata"]["finalizers"] == ["acme.example/mesh"]


def test_R56_domains_and_claims_of_users_keep_working() -> None:
    mine = {**gpus(), "resourceClaims": [{"name": "channel", "resourceClaimTemplateName": "my-channel"}]}
    toy = Rack()
    toy.put(computedomain("mine", "my-channel"))
    toy.live()
    toy.put(sharing(gpu(pod_spec=mine)))
    toy.put(auto(1, name="other"))
    settle(toy)

    assert claimed(toy) == {"demo-0-worker": ["my-channel"], "other-0-worker": ["other-0"]}
    assert "labels" not in toy.domains()["mine"]["metadata"]


def test_R57_the_annotation_adds_no_scheduling_constraints() -> None:
    def placement(annotations: dict[str, str]) -> list[Any]:
        toy = up(sharing(gpu(annotations=annotations)))
        (pod,) = [toy.objects[id]["spec"] for id in toy.pods()]
        gangs = [body["spec"].get("topologyConstraint") for id, body in toy.objects.items() if id.kind == "PodGang"]
        return [*(pod.get(field) for field in ("affinity", "nodeSelector", "tolerations", "topologySpreadConstraints")), gangs]

    assert placement({NAMED: "rack"}) == placement({})


def test_R58_without_any_fabric_everything_else_is_the_same() -> None:
    toy = Rack()
    toy.configuration = replace(CONFIGURATION, fabrics=())
    toy.put(podcliqueset("demo", gpu(annotations={NAMED: "rack"})))
    settle(toy)

    assert (toy.domains(), claimed(toy)) == ({}, {"demo-0-worker": []})


def test_R59_opting_out_applies_to_all_replicas_of_a_set() -> None:
    toy = up(sharing(gpu("in", annotations={NAMED: "rack"}), gpu("out"), replicas=3))

    assert list(toy.domains()) == ["rack"]
    assert {clique: claims for clique, claims in claimed(toy).items() if "out" in clique} == {f"demo-{index}-out": [] for index in range(3)}
