"""The resource claims of a set: who has which, who uses them in which order, and when they go."""

from typing import Any

import pytest

from engine import world
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import live
from engine.plan import Plan
from engine.tick import plan_all
from resources.base import kinds, labels
from resources.registry import BLUEPRINTS
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.laws.toy import SETUP, START, Toy
from tests.resources.blueprints.test_lifecycle import scale, up
from tests.resources.children.test_children import created, of_kind

LEADER = [share("own"), share("seat", "PerReplica")]
TEMPLATES = tuple(claim_template(name) for name in ("wide", "each", "pool", "part", "own", "seat"))


def d(**over: Any) -> dict[str, Any]:
    """A set that shares at every level and in both scopes."""
    return podcliqueset(
        "d",
        clique("fe"),
        clique("ld", resourceSharing=LEADER, **over.pop("leader", {})),
        clique("wk", 2),
        groups=(group("dec", "ld", "wk", replicas=2, resourceSharing=[share("part", "PerReplica"), share("pool")]),),
        namespace="ml",
        resourceClaimTemplates=TEMPLATES,
        resourceSharing=[share("each", "PerReplica", **over.pop("each", {})), share("wide", **over.pop("wide", {}))],
        **over,
    )


def plan(manifest: dict[str, Any]) -> Plan:
    """The plan for a set that is nowhere yet."""
    (made,) = plan_all(BLUEPRINTS, world.propose(world.empty(), [manifest]), START, SETUP, Memo(), Limits()).plans
    return made


def claims(toy: Toy) -> list[str]:
    """The names of the claims that are there."""
    return sorted(id.name for id in toy.objects if id.kind == "ResourceClaim")


def pod_of(made: dict[str, Any], clique: str) -> dict[str, Any]:
    """The first pod of a clique."""
    pods = (one.body for key, one in made.items() if key.startswith(f"Pod/{clique}-"))
    body: dict[str, Any] = min(pods, key=lambda body: body["spec"]["hostname"])
    return body


def test_every_level_has_its_claims_one_for_all_replicas_or_one_for_each() -> None:
    assert of_kind(created(d()), "ResourceClaim") == [
        "d-0-dec-0-ld-0-seat",
        "d-0-dec-0-ld-all-own",
        "d-0-dec-0-part",
        "d-0-dec-1-ld-0-seat",
        "d-0-dec-1-ld-all-own",
        "d-0-dec-1-part",
        "d-0-dec-all-pool",
        "d-0-each",
        "d-all-wide",
    ]


def test_a_claim_says_whose_it_is_and_for_which_replica() -> None:
    made = created(d())
    told = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "d"}
    told["app.kubernetes.io/component"] = "resource-claim"
    claim = made["ResourceClaim/d-0-dec-1-part"]

    assert claim.body == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": "d-0-dec-1-part",
            "namespace": "ml",
            "labels": {**told, "grove.io/podcliquescalinggroup": "d-0-dec", "grove.io/podcliquescalinggroup-replica-index": "1"},
        },
        "spec": {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    }
    marks = {name: made[f"ResourceClaim/{name}"].body["metadata"]["labels"] for name in ("d-all-wide", "d-0-each", "d-0-dec-0-ld-0-seat")}
    assert marks == {
        "d-all-wide": told,
        "d-0-each": {**told, "grove.io/podcliqueset-replica-index": "0"},
        "d-0-dec-0-ld-0-seat": {**told, "grove.io/podclique": "d-0-dec-0-ld", "grove.io/podclique-pod-index": "0"},
    }
    owners = {key: [one.owner.id.kind for one in made[f"ResourceClaim/{key}"].owners] for key in marks}
    assert owners == {"d-all-wide": ["PodCliqueSet"], "d-0-each": ["PodCliqueSet"], "d-0-dec-0-ld-0-seat": ["PodClique"]}
    assert [one.owner.id.kind for one in claim.owners] == ["PodCliqueScalingGroup"]


def test_a_pod_names_its_claims_from_the_widest_to_its_own_after_the_users() -> None:
    containers = [{"name": "main", "image": "example/worker:1", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "mine"}]}}]
    mine = {"name": "mine", "resourceClaimName": "by-hand"}
    spec = {"containers": containers, "initContainers": [{"name": "setup", "image": "example/worker:1"}], "resourceClaims": [mine]}
    made = created(d(leader={"pod_spec": spec}))
    pod = pod_of(made, "d-0-dec-1-ld")["spec"]

    names = ["d-all-wide", "d-0-each", "d-0-dec-all-pool", "d-0-dec-1-part", "d-0-dec-1-ld-all-own", "d-0-dec-1-ld-0-seat"]
    assert pod["resourceClaims"] == [mine, *({"name": name, "resourceClaimName": name} for name in names)]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "claims": [{"name": name} for name in ("mine", *names)]}
    assert pod["initContainers"][0]["resources"] == {"claims": [{"name": name} for name in names]}


def test_the_container_that_waits_for_others_uses_no_claims() -> None:
    made = created(d(cliqueStartupType="CliqueStartupTypeInOrder"))
    waiter = pod_of(made, "d-0-dec-0-wk")["spec"]["initContainers"][-1]

    assert waiter["name"] == "grove-initc"
    assert "resources" not in waiter


def test_a_pod_comes_after_its_claims() -> None:
    made = created(d())
    pod = next(one for key, one in made.items() if key.startswith("Pod/d-0-fe-"))

    assert {made[f"ResourceClaim/{name}"].key for name in ("d-all-wide", "d-0-each")} <= pod.after


@pytest.mark.parametrize(
    ("only", "users"),
    [
        ({"childCliqueNames": ["fe"]}, ["d-0-fe"]),
        ({"childScalingGroupNames": ["dec"]}, ["d-0-dec-0-ld", "d-0-dec-0-wk"]),
        ({"childCliqueNames": ["fe"], "childScalingGroupNames": ["dec"]}, ["d-0-dec-0-ld", "d-0-dec-0-wk", "d-0-fe"]),
        ({"childCliqueNames": ["wk"]}, ["d-0-dec-0-wk"]),
    ],
)
def test_a_filter_says_whose_pods_use_a_claim_which_is_made_all_the_same(only: dict[str, Any], users: list[str]) -> None:
    made = created(d(wide={"filter": only}))
    using = [
        clique
        for clique in ("d-0-dec-0-ld", "d-0-dec-0-wk", "d-0-fe")
        if any(one["name"] == "d-all-wide" for one in pod_of(made, clique)["spec"]["resourceClaims"])
    ]

    assert using == users
    assert "ResourceClaim/d-all-wide" in made


def test_a_set_without_shares_has_no_claims_and_its_pods_name_none() -> None:
    made = created(podcliqueset("d", resourceClaimTemplates=TEMPLATES))

    assert of_kind(made, "ResourceClaim") == []
    assert "resourceClaims" not in pod_of(made, "d-0-worker")["spec"]


def external(name: str = "by-others", namespace: str = "ml") -> dict[str, Any]:
    """A ResourceClaimTemplate of the cluster."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [{"name": "theirs", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
    }


def outside(**reference: Any) -> dict[str, Any]:
    """A set whose one clique of two pods uses a claim made from somebody else's template; a second clique does not."""
    return podcliqueset(
        "demo", clique("a", 2, resourceSharing=[share("by-others", "PerReplica", **reference)]), clique("b"), namespace="ml"
    )


@pytest.mark.parametrize("namespace", ["", "elsewhere"])
def test_a_claim_is_made_from_the_template_of_the_cluster_that_its_entry_means(namespace: str) -> None:
    toy = Toy()
    toy.put(external(namespace=namespace or "ml"))
    toy.put(outside(**({"namespace": namespace} if namespace else {})))
    toy.settle()

    assert claims(toy) == ["demo-0-a-0-by-others", "demo-0-a-1-by-others"]
    spec = toy.objects[kinds.RESOURCE_CLAIM.id("ml", "demo-0-a-0-by-others")]["spec"]
    assert spec["devices"]["requests"][0]["name"] == "theirs"


def test_without_its_template_a_claim_is_held_and_so_are_the_pods_that_need_it_and_no_others() -> None:
    toy = Toy()
    toy.put(outside())
    for _ in range(3):
        (made,) = toy.plans()
        toy.apply(made.operations)
        toy.live()

    assert [pod.name.startswith("demo-0-b-") for pod in toy.pods()] == [True]
    why = "failed to get external ResourceClaimTemplate ml/by-others: not found in the namespaces that are looked at"
    held = {held.id: held.why for held in toy.plans()[0].deferred}
    assert held[kinds.RESOURCE_CLAIM.id("ml", "demo-0-a-0-by-others")] == why
    assert sum(told.endswith(why) for id, told in held.items() if id.kind == "Pod") == 2

    toy.put(external())
    toy.settle()
    assert len(toy.pods()) == 3


def test_a_claim_that_is_there_does_without_its_template() -> None:
    toy = Toy()
    template = external()
    toy.put(template)
    toy.put(outside())
    toy.settle()
    del toy.objects[kinds.RESOURCE_CLAIM_TEMPLATE.id("ml", "by-others")]
    toy.delete(toy.pods()[0])
    toy.settle()

    assert len(toy.pods()) == 3
    assert not any(made.deferred for made in toy.plans())


def test_a_claim_for_the_whole_set_that_is_there_does_without_its_template() -> None:
    toy = Toy()
    toy.put(external(namespace="default"))
    toy.put(podcliqueset("demo", resourceSharing=[share("by-others")]))
    toy.settle()
    del toy.objects[kinds.RESOURCE_CLAIM_TEMPLATE.id("default", "by-others")]
    scale(toy, kinds.PODCLIQUE.id("default", "demo-0-worker"), 3)

    assert len(toy.pods()) == 3
    assert not any(made.deferred for made in toy.plans())


def test_what_a_claim_asks_for_is_said_once() -> None:
    toy = Toy()
    toy.put(external())
    toy.put(outside())
    toy.settle()
    changed = {"spec": {"spec": {"devices": {"requests": [{"name": "other"}]}}}}
    toy.write(kinds.RESOURCE_CLAIM_TEMPLATE.id("ml", "by-others"), changed)

    assert [made.operations for made in toy.plans()] == [()]


def test_a_cluster_without_claims_is_none_the_worse_where_none_is_wanted_and_holds_what_needs_them() -> None:
    toy = Toy()
    toy.unserved = frozenset({"ResourceClaim", "ResourceClaimTemplate"})
    toy.put(podcliqueset("plain"))
    toy.put(podcliqueset("demo", clique("a", resourceSharing=LEADER), resourceClaimTemplates=TEMPLATES))
    for _ in range(3):
        for made in toy.plans():
            toy.apply(made.operations)
        toy.live()

    assert {pod.name.partition("-")[0] for pod in toy.pods()} == {"plain"}
    demo, plain = toy.plans()
    assert plain.deferred == ()
    assert {held.why for held in demo.deferred if held.id.kind == "ResourceClaim"} == {
        "the cluster does not serve ResourceClaim of resource.k8s.io/v1"
    }


def test_a_clique_that_shrinks_keeps_the_claims_of_the_seats_that_are_taken() -> None:
    toy = up(podcliqueset("demo", clique("a", 3, resourceSharing=[share("seat", "PerReplica")]), resourceClaimTemplates=TEMPLATES))
    lowest = min(toy.pods(), key=lambda pod: str(toy.objects[pod]["spec"]["hostname"]))
    toy.write(lowest, {"status": {"phase": "Pending", "conditions": []}, "spec": {"nodeName": None}})
    generation = {"metadata": {"generation": 2}}
    toy.write(kinds.PODCLIQUE.id("default", "demo-0-a"), {"spec": {"replicas": 2}, **generation})
    (made,) = toy.plans()
    toy.apply(made.operations)
    (made,) = toy.plans()

    assert claims(toy) == ["demo-0-a-0-seat", "demo-0-a-1-seat", "demo-0-a-2-seat"]
    assert [held.why for held in made.deferred if held.id.name == "demo-0-a-0-seat"] == [f"waits for {lowest.name} to be gone"]

    toy.settle()
    assert claims(toy) == ["demo-0-a-1-seat", "demo-0-a-2-seat"]


def test_a_group_that_is_scaled_in_leaves_no_claim_behind_and_none_goes_before_the_cliques_that_use_it() -> None:
    toy = up(d())
    id = kinds.SCALING_GROUP.id("ml", "d-0-dec")
    toy.write(id, {"spec": {"replicas": 1}, "metadata": {"generation": 2}})
    gone: list[ResourceId] = []
    for _ in range(4):
        for made in toy.plans():
            gone.extend(operation.id for operation in made.operations if operation.verb == "delete")
            toy.apply(made.operations)
        toy.live()

    assert not any("dec-1" in name for name in claims(toy))
    order = [id.name for id in gone if id.kind != "Pod"]
    assert order.index("d-0-dec-1-part") > max(order.index("d-0-dec-1-ld"), order.index("d-0-dec-1-wk"))


def test_a_claim_that_is_being_released_is_waited_for() -> None:
    toy = up(d())
    for claim in claims(toy):
        toy.write(kinds.RESOURCE_CLAIM.id("ml", claim), {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}})
    toy.write(kinds.SCALING_GROUP.id("ml", "d-0-dec"), {"spec": {"replicas": 1}, "metadata": {"generation": 2}})
    for _ in range(4):
        for made in toy.plans():
            toy.apply(made.operations)
        toy.live()

    assert any("its devices are being released" in held.why for held in toy.plans()[0].deferred)


@pytest.mark.parametrize(
    ("over", "problem"),
    [
        ({"resourceSharing": [share("")]}, ".resourceSharing[0].name: Required value: reference name is required"),
        ({"resourceSharing": [share("wide"), share("wide")]}, '.resourceSharing[1].name: Duplicate value: "wide"'),
        (
            {"resourceSharing": [share("wide", namespace="ml")]},
            '.resourceSharing[0].namespace: Invalid value: "ml": '
            "namespace must be empty when name matches an internal resourceClaimTemplate",
        ),
        (
            {"resourceSharing": [share("wide", "Some")]},
            '.resourceSharing[0].scope: Unsupported value: "Some": supported values: "AllReplicas", "PerReplica"',
        ),
        (
            {"resourceSharing": [share("wide", filter={})]},
            ".resourceSharing[0].filter: Required value: filter must specify at least one childCliqueNames or childScalingGroupNames entry",
        ),
        (
            {"resourceSharing": [share("wide", filter={"childCliqueNames": ["fe", "no"]})]},
            '.resourceSharing[0].filter.childCliqueNames[1]: Not found: "no"',
        ),
        (
            {"groups": (group("g", "a", resourceSharing=[share("wide", filter={"childCliqueNames": ["fe"]})]),)},
            '.podCliqueScalingGroups[0].resourceSharing[0].filter.childCliqueNames[0]: Not found: "fe"',
        ),
        (
            {"groups": (group("g", "a", resourceSharing=[share("wide", filter={})]),)},
            ".podCliqueScalingGroups[0].resourceSharing[0].filter: Required value: filter must specify at least one childCliqueNames entry",
        ),
        (
            {"resourceClaimTemplates": [*TEMPLATES, claim_template("wide")]},
            f'.resourceClaimTemplates[{len(TEMPLATES)}].name: Duplicate value: "wide"',
        ),
        (
            {"resourceClaimTemplates": [{"name": "", "templateSpec": {"spec": {}}}]},
            ".resourceClaimTemplates[0].name: Required value: template name is required",
        ),
        (
            {"resourceClaimTemplates": [{"name": "x", "templateSpec": {"spec": {}}}]},
            ".resourceClaimTemplates[0].templateSpec.spec.devices.requests: Required value: at least one device request is required",
        ),
    ],
)
def test_what_is_wrong_with_sharing_is_said_with_its_path(over: dict[str, Any], problem: str) -> None:
    manifest = podcliqueset("demo", clique("fe"), clique("a"), **{"resourceClaimTemplates": TEMPLATES, **over})

    assert f"spec.template{problem}" in plan(manifest).problems


def test_a_pod_is_not_given_the_claim_of_a_stranger_that_has_its_name() -> None:
    manifest = podcliqueset("demo", clique("a", resourceSharing=[share("own")]), clique("b"), resourceClaimTemplates=TEMPLATES)
    stranger = {"name": "demo-0-a-all-own", "namespace": "default", "labels": labels.child("demo", "resource-claim")}
    toy = Toy()
    toy.put(manifest)
    toy.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": stranger, "spec": {}})
    for _ in range(2):
        (made,) = toy.plans()
        toy.apply(made.operations)
        toy.live()

    assert [pod.name.startswith("demo-0-b-") for pod in toy.pods()] == [True]
    told = {held.id.kind: held.why for held in toy.plans()[0].deferred}
    assert "already exists but is not controlled by" in told["ResourceClaim"]
    assert told["Pod"] == "needs demo-0-a-all-own: a claim of that name belongs to somebody else"


def test_where_claims_were_not_seen_pods_that_would_use_them_are_held() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", resourceSharing=[share("own")]), clique("b"), resourceClaimTemplates=TEMPLATES))
    seen = world.assemble(BLUEPRINTS, [live(body) for body in toy.objects.values()], [], {"ResourceClaim": "403"})
    (made,) = plan_all(BLUEPRINTS, seen, START, SETUP, Memo(), Limits()).plans

    assert [one.id.name.startswith("demo-0-b-") for one in made.operations if one.id.kind == "Pod"] == [True]
    assert "needs demo-0-a-all-own: ResourceClaim objects were not seen completely" in {held.why for held in made.deferred}
