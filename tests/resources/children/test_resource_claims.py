"""The resource claims of a set: which exist, which pods use them, and when they are deleted."""

from typing import Any

import pytest

from engine import world
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Unlisted, live
from engine.operation import body_of
from engine.plan import Plan
from engine.proposal import propose
from engine.tick import plan_all
from resources.base import kinds, labels
from resources.registry import BLUEPRINTS
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.laws.toy import CONFIGURATION, START, Toy
from tests.resources.blueprints.test_lifecycle import scale, up
from tests.resources.children.test_children import created, of_kind

LEADER = [share("own"), share("slot", "PerReplica")]
TEMPLATES = tuple(claim_template(name) for name in ("wide", "each", "pool", "part", "own", "slot"))


def d(**over: Any) -> dict[str, Any]:
    """A set with shares at every level and in both scopes."""
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
    """The plan for a set that does not exist yet."""
    (result,) = plan_all(BLUEPRINTS, propose(world.empty(), [manifest]), START, CONFIGURATION, Memo(), Limits()).plans
    return result


def claims(toy: Toy) -> list[str]:
    """The names of the live claims."""
    return sorted(id.name for id in toy.objects if id.kind == "ResourceClaim")


def pod_of(operations: dict[str, Any], clique: str) -> dict[str, Any]:
    """The first pod of a clique."""
    pods = (dict(body_of(operation)) for key, operation in operations.items() if key.startswith(f"Pod/{clique}-"))
    body: dict[str, Any] = min(pods, key=lambda body: body["spec"]["hostname"])
    return body


def test_every_level_has_one_claim_for_all_replicas_or_one_for_each() -> None:
    assert of_kind(created(d()), "ResourceClaim") == [
        "d-0-dec-0-ld-0-slot",
        "d-0-dec-0-ld-all-own",
        "d-0-dec-0-part",
        "d-0-dec-1-ld-0-slot",
        "d-0-dec-1-ld-all-own",
        "d-0-dec-1-part",
        "d-0-dec-all-pool",
        "d-0-each",
        "d-all-wide",
    ]


def test_the_labels_of_a_claim_name_its_owner_and_replica() -> None:
    made = created(d())
    common = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "d"}
    common["app.kubernetes.io/component"] = "resource-claim"
    claim = made["ResourceClaim/d-0-dec-1-part"]

    assert body_of(claim) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": "d-0-dec-1-part",
            "namespace": "ml",
            "labels": {**common, "grove.io/podcliquescalinggroup": "d-0-dec", "grove.io/podcliquescalinggroup-replica-index": "1"},
        },
        "spec": {"devices": {"requests": [{"name": "device", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    }
    claim_labels = {
        name: body_of(made[f"ResourceClaim/{name}"])["metadata"]["labels"] for name in ("d-all-wide", "d-0-each", "d-0-dec-0-ld-0-slot")
    }
    assert claim_labels == {
        "d-all-wide": common,
        "d-0-each": {**common, "grove.io/podcliqueset-replica-index": "0"},
        "d-0-dec-0-ld-0-slot": {**common, "grove.io/podclique": "d-0-dec-0-ld", "grove.io/podclique-pod-index": "0"},
    }
    owners = {key: [reference.owner.id.kind for reference in made[f"ResourceClaim/{key}"].owners] for key in claim_labels}
    assert owners == {"d-all-wide": ["PodCliqueSet"], "d-0-each": ["PodCliqueSet"], "d-0-dec-0-ld-0-slot": ["PodClique"]}
    assert [reference.owner.id.kind for reference in claim.owners] == ["PodCliqueScalingGroup"]


def test_a_pod_lists_its_claims_after_the_users_from_the_set_s_to_its_own() -> None:
    containers = [{"name": "main", "image": "example/worker:1", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "mine"}]}}]
    mine = {"name": "mine", "resourceClaimName": "by-hand"}
    spec = {"containers": containers, "initContainers": [{"name": "setup", "image": "example/worker:1"}], "resourceClaims": [mine]}
    made = created(d(leader={"pod_spec": spec}))
    pod = pod_of(made, "d-0-dec-1-ld")["spec"]

    names = ["d-all-wide", "d-0-each", "d-0-dec-all-pool", "d-0-dec-1-part", "d-0-dec-1-ld-all-own", "d-0-dec-1-ld-0-slot"]
    assert pod["resourceClaims"] == [mine, *({"name": name, "resourceClaimName": name} for name in names)]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "claims": [{"name": name} for name in ("mine", *names)]}
    assert pod["initContainers"][0]["resources"] == {"claims": [{"name": name} for name in names]}


def test_the_init_container_that_waits_uses_no_claims() -> None:
    made = created(d(cliqueStartupType="CliqueStartupTypeInOrder"))
    waiter = pod_of(made, "d-0-dec-0-wk")["spec"]["initContainers"][-1]

    assert waiter["name"] == "grove-initc"
    assert "resources" not in waiter


def test_a_pod_is_created_after_its_claims() -> None:
    made = created(d())
    pod = next(operation for key, operation in made.items() if key.startswith("Pod/d-0-fe-"))

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
def test_a_filter_selects_the_pods_that_use_a_claim(only: dict[str, Any], users: list[str]) -> None:
    made = created(d(wide={"filter": only}))
    using = [
        clique
        for clique in ("d-0-dec-0-ld", "d-0-dec-0-wk", "d-0-fe")
        if any(claim["name"] == "d-all-wide" for claim in pod_of(made, clique)["spec"]["resourceClaims"])
    ]

    assert using == users
    assert "ResourceClaim/d-all-wide" in made


def test_a_set_without_shares_has_no_claims() -> None:
    made = created(podcliqueset("d", resourceClaimTemplates=TEMPLATES))

    assert of_kind(made, "ResourceClaim") == []
    assert "resourceClaims" not in pod_of(made, "d-0-worker")["spec"]


def external(name: str = "by-others", namespace: str = "ml", shared_with: str | None = None) -> dict[str, Any]:
    """A ResourceClaimTemplate that exists in the cluster; `shared_with`: the value of its annotation."""
    annotations = {} if shared_with is None else {"annotations": {labels.SHARED_WITH: shared_with}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace, **annotations},
        "spec": {"spec": {"devices": {"requests": [{"name": "theirs", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
    }


def with_external_template(**reference: Any) -> dict[str, Any]:
    """A set with a clique of two pods that use claims from an external template, and a second clique that uses none."""
    return podcliqueset(
        "demo", clique("a", 2, resourceSharing=[share("by-others", "PerReplica", **reference)]), clique("b"), namespace="ml"
    )


@pytest.mark.parametrize("namespace", ["", "elsewhere"])
def test_a_claim_is_created_from_the_external_template_that_its_entry_names(namespace: str) -> None:
    toy = Toy()
    toy.put(external(namespace=namespace or "ml", shared_with="ml" if namespace else None))
    toy.put(with_external_template(**({"namespace": namespace} if namespace else {})))
    toy.settle()

    assert claims(toy) == ["demo-0-a-0-by-others", "demo-0-a-1-by-others"]
    spec = toy.objects[kinds.RESOURCE_CLAIM.id("ml", "demo-0-a-0-by-others")]["spec"]
    assert spec["devices"]["requests"][0]["name"] == "theirs"


def test_without_its_template_a_claim_is_blocked_and_so_are_the_pods_that_use_it() -> None:
    toy = Toy()
    toy.put(with_external_template())
    for _ in range(3):
        (made,) = toy.plans()
        toy.apply(made.operations)
        toy.live()

    assert [pod.name.startswith("demo-0-b-") for pod in toy.pods()] == [True]
    why = "failed to get external ResourceClaimTemplate ml/by-others: not found in the namespaces that are observed"
    blocked = {wait.id: wait.why for wait in toy.plans()[0].blocked}
    assert blocked[kinds.RESOURCE_CLAIM.id("ml", "demo-0-a-0-by-others")] == why
    assert sum(text.endswith(why) for id, text in blocked.items() if id.kind == "Pod") == 2
    assert [(alarm.reason, alarm.text, alarm.blocking) for alarm in toy.plans()[0].alarms] == [("DependencyMissing", why, True)]

    toy.put(external())
    toy.settle()
    assert (len(toy.pods()), toy.plans()[0].alarms) == (3, ())


def test_an_existing_claim_does_not_need_its_template() -> None:
    toy = Toy()
    template = external()
    toy.put(template)
    toy.put(with_external_template())
    toy.settle()
    del toy.objects[kinds.RESOURCE_CLAIM_TEMPLATE.id("ml", "by-others")]
    toy.delete(toy.pods()[0])
    toy.settle()

    assert len(toy.pods()) == 3
    assert not any(made.deferred for made in toy.plans())


def test_an_existing_claim_of_the_whole_set_does_not_need_its_template() -> None:
    toy = Toy()
    toy.put(external(namespace="default"))
    toy.put(podcliqueset("demo", resourceSharing=[share("by-others")]))
    toy.settle()
    del toy.objects[kinds.RESOURCE_CLAIM_TEMPLATE.id("default", "by-others")]
    scale(toy, kinds.PODCLIQUE.id("default", "demo-0-worker"), 3)

    assert len(toy.pods()) == 3
    assert not any(made.deferred for made in toy.plans())


def test_an_existing_claim_does_not_follow_its_template() -> None:
    toy = Toy()
    toy.put(external())
    toy.put(with_external_template())
    toy.settle()
    changed = {"spec": {"spec": {"devices": {"requests": [{"name": "other"}]}}}}
    toy.write(kinds.RESOURCE_CLAIM_TEMPLATE.id("ml", "by-others"), changed)

    assert [made.operations for made in toy.plans()] == [()]


def test_claims_that_another_object_of_the_set_controls_are_desired_once() -> None:
    toy = Toy()
    toy.put(d())
    toy.settle()
    (root,) = (toy.objects[id] for id in toy.objects if id.kind == "PodCliqueSet")
    owner = {"apiVersion": root["apiVersion"], "kind": root["kind"], "name": "d", "uid": root["metadata"]["uid"], "controller": True}
    for id in [id for id in toy.objects if id.kind == "ResourceClaim"]:
        toy.write(id, {"metadata": {"ownerReferences": [owner]}})

    (made,) = toy.plans()
    assert (made.error, made.problems) == (None, ())


def test_where_claims_are_not_served_only_sets_without_shares_get_their_pods() -> None:
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
    assert {wait.why for wait in demo.blocked if wait.id.kind == "ResourceClaim"} == {
        "the cluster does not serve ResourceClaim of resource.k8s.io/v1"
    }


def test_a_clique_that_is_scaled_in_keeps_the_claims_of_the_pods_that_stay() -> None:
    toy = up(podcliqueset("demo", clique("a", 3, resourceSharing=[share("slot", "PerReplica")]), resourceClaimTemplates=TEMPLATES))
    lowest = min(toy.pods(), key=lambda pod: str(toy.objects[pod]["spec"]["hostname"]))
    toy.write(lowest, {"status": {"phase": "Pending", "conditions": []}, "spec": {"nodeName": None}})
    generation = {"metadata": {"generation": 2}}
    toy.write(kinds.PODCLIQUE.id("default", "demo-0-a"), {"spec": {"replicas": 2}, **generation})
    (made,) = toy.plans()
    toy.apply(made.operations)
    (made,) = toy.plans()

    assert claims(toy) == ["demo-0-a-0-slot", "demo-0-a-1-slot", "demo-0-a-2-slot"]
    assert [wait.why for wait in made.later if wait.id.name == "demo-0-a-0-slot"] == [f"waits for {lowest.name} to be gone"]

    toy.settle()
    assert claims(toy) == ["demo-0-a-1-slot", "demo-0-a-2-slot"]


def test_claims_of_a_group_that_is_scaled_in_are_deleted_after_the_cliques_that_use_them() -> None:
    toy = up(d())
    id = kinds.SCALING_GROUP.id("ml", "d-0-dec")
    toy.write(id, {"spec": {"replicas": 1}, "metadata": {"generation": 2}})
    deleted: list[ResourceId] = []
    for _ in range(4):
        for made in toy.plans():
            deleted.extend(operation.id for operation in made.operations if operation.verb == "delete")
            toy.apply(made.operations)
        toy.live()

    assert not any("dec-1" in name for name in claims(toy))
    order = [id.name for id in deleted if id.kind != "Pod"]
    assert order.index("d-0-dec-1-part") > max(order.index("d-0-dec-1-ld"), order.index("d-0-dec-1-wk"))


def test_a_terminating_claim_is_deferred_until_its_devices_are_released() -> None:
    toy = up(d())
    for claim in claims(toy):
        toy.write(kinds.RESOURCE_CLAIM.id("ml", claim), {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}})
    toy.write(kinds.SCALING_GROUP.id("ml", "d-0-dec"), {"spec": {"replicas": 1}, "metadata": {"generation": 2}})
    for _ in range(4):
        for made in toy.plans():
            toy.apply(made.operations)
        toy.live()

    assert any("its devices are being released" in wait.why for wait in toy.plans()[0].later)


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
            '.resourceSharing[0].filter.childCliqueNames[1]: Not found: "no": no clique here has this name; there are fe, a',
        ),
        (
            {"groups": (group("g", "a", resourceSharing=[share("wide", filter={"childCliqueNames": ["fe"]})]),)},
            '.podCliqueScalingGroups[0].resourceSharing[0].filter.childCliqueNames[0]: Not found: "fe": '
            "no clique here has this name; there is a",
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
def test_a_problem_of_sharing_names_its_field(over: dict[str, Any], problem: str) -> None:
    manifest = podcliqueset("demo", clique("fe"), clique("a"), **{"resourceClaimTemplates": TEMPLATES, **over})

    assert f"spec.template{problem}" in plan(manifest).problems


def test_a_pod_does_not_use_a_foreign_claim_with_the_name_of_its_own() -> None:
    manifest = podcliqueset("demo", clique("a", resourceSharing=[share("own")]), clique("b"), resourceClaimTemplates=TEMPLATES)
    metadata = {"name": "demo-0-a-all-own", "namespace": "default", "labels": labels.child("demo", "resource-claim")}
    toy = Toy()
    toy.put(manifest)
    toy.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": {}})
    for _ in range(2):
        (made,) = toy.plans()
        toy.apply(made.operations)
        toy.live()

    assert [pod.name.startswith("demo-0-b-") for pod in toy.pods()] == [True]
    why = {wait.id.kind: wait.why for wait in toy.plans()[0].deferred}
    assert "already exists but is not controlled by" in why["ResourceClaim"]
    assert why["Pod"] == "needs demo-0-a-all-own: a foreign ResourceClaim has that name"


def test_where_claims_could_not_be_listed_pods_that_use_them_are_blocked() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", resourceSharing=[share("own")]), clique("b"), resourceClaimTemplates=TEMPLATES))
    observed = world.assemble(BLUEPRINTS, [live(body) for body in toy.objects.values()], [], {"ResourceClaim": Unlisted("403")})
    (made,) = plan_all(BLUEPRINTS, observed, START, CONFIGURATION, Memo(), Limits()).plans

    assert [operation.id.name.startswith("demo-0-b-") for operation in made.operations if operation.id.kind == "Pod"] == [True]
    assert "needs demo-0-a-all-own: ResourceClaim objects could not be listed completely" in {wait.why for wait in made.blocked}
