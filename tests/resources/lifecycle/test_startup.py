"""Start order: which cliques start after which, and what pods need to wait for others."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.operation import Operation, body_of
from engine.plan import Plan, Wait
from engine.proposal import propose
from engine.tick import plan_all
from engine.verb import Verb
from engine.version import VERSION
from resources.base import kinds
from resources.ports.configuration import pinned
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import CONFIGURATION, START, Toy

IN_ORDER, EXPLICIT = "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"
SECRET = kinds.SECRET.id("default", "web-ic-sat")
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "seccompProfile": {"type": "RuntimeDefault"},
    "runAsNonRoot": True,
}
"""What the pod security standard `restricted` asks of a container, and a root file system that cannot be written."""


def planned(manifest: dict[str, Any]) -> Plan:
    """The plan for an empty cluster."""
    (plan,) = plan_all(BLUEPRINTS, propose(world.empty(), [manifest]), START, CONFIGURATION, Memo(), Limits()).plans
    return plan


def bodies(manifest: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """The bodies of one kind that are created in an empty cluster, by name; pods by their hostname."""
    plan = planned(manifest)
    assert plan.problems == ()
    created = [dict(body_of(operation)) for operation in plan.operations if operation.id.kind == kind]
    return {body["spec"]["hostname"] if kind == "Pod" else body["metadata"]["name"]: body for body in created}


def roles(startup: str, *, left: tuple[str, ...] = (), working: tuple[str, ...] = ()) -> dict[str, Any]:
    """A standalone router; leaders and workers in a scaling group of three replicas, two of which are in the base gang."""
    after = {"l": {"startsAfter": list(left)} if left else {}, "w": {"startsAfter": list(working)} if working else {}}
    cliques = (clique("r"), clique("l", 2, minAvailable=1, **after["l"]), clique("w", 2, **after["w"]))
    return podcliqueset("s", *cliques, groups=(group("g", "l", "w", replicas=3, min_available=2),), cliqueStartupType=startup)


def started_after(manifest: dict[str, Any]) -> dict[str, list[str] | None]:
    """PodClique name -> `startsAfter`; None if the field is missing."""
    return {name: body["spec"].get("startsAfter") for name, body in bodies(manifest, "PodClique").items()}


def test_in_order_each_clique_starts_after_the_one_before_it() -> None:
    assert started_after(roles(IN_ORDER)) == {
        "s-0-r": None,
        "s-0-g-0-l": ["s-0-r"],
        "s-0-g-1-l": ["s-0-r"],
        "s-0-g-0-w": ["s-0-g-0-l", "s-0-g-1-l"],
        "s-0-g-1-w": ["s-0-g-0-l", "s-0-g-1-l"],
        "s-0-g-2-l": None,
        "s-0-g-2-w": ["s-0-g-2-l"],
    }


def test_explicitly_each_clique_starts_after_those_that_it_names_in_its_own_order() -> None:
    assert started_after(roles(EXPLICIT, left=("r",), working=("l", "r"))) == {
        "s-0-r": None,
        "s-0-g-0-l": ["s-0-r"],
        "s-0-g-1-l": ["s-0-r"],
        "s-0-g-0-w": ["s-0-g-0-l", "s-0-g-1-l", "s-0-r"],
        "s-0-g-1-w": ["s-0-g-0-l", "s-0-g-1-l", "s-0-r"],
        "s-0-g-2-l": None,
        "s-0-g-2-w": ["s-0-g-2-l"],
    }


def test_in_order_a_clique_of_a_scaled_gang_starts_after_the_previous_clique_only() -> None:
    cliques = (clique("a"), clique("between"), clique("b"))
    manifest = podcliqueset("s", *cliques, groups=(group("g", "a", "b", replicas=2),), cliqueStartupType=IN_ORDER)

    after = started_after(manifest)
    assert (after["s-0-g-0-b"], after["s-0-g-1-b"]) == (["s-0-between"], None)


def test_in_any_order_no_pod_waits_whatever_the_cliques_name() -> None:
    manifest = roles("CliqueStartupTypeAnyOrder", working=("l",))

    assert set(started_after(manifest).values()) == {None}
    assert not any("initContainers" in pod["spec"] for pod in bodies(manifest, "Pod").values())


def test_the_order_applies_within_each_replica() -> None:
    manifest = podcliqueset("s", clique("l"), clique("w"), replicas=2, cliqueStartupType=IN_ORDER)

    assert started_after(manifest) == {"s-0-l": None, "s-0-w": ["s-0-l"], "s-1-l": None, "s-1-w": ["s-1-l"]}


def test_a_clique_is_not_confused_with_one_whose_name_ends_with_its_name() -> None:
    manifest = podcliqueset("s", clique("b", 3), clique("ab", 2), clique("w"), cliqueStartupType=IN_ORDER)

    assert bodies(manifest, "Pod")["s-0-w-0"]["spec"]["initContainers"][0]["args"] == ["--podcliques=s-0-ab:2"]


def test_the_init_container_that_waits_comes_after_the_users_own() -> None:
    pod_spec = {
        "initContainers": [{"name": "fetch", "image": "example/fetch:1"}],
        "containers": [{"name": "main", "image": "example/worker:1"}],
        "volumes": [{"name": "models", "emptyDir": {}}],
    }
    cliques = (clique("fe"), clique("ld"), clique("wk", 4, minAvailable=4, startsAfter=["ld"], pod_spec=pod_spec))
    manifest = podcliqueset("d", *cliques, groups=(group("dec", "ld", "wk", replicas=2),), cliqueStartupType=EXPLICIT, namespace="ml")
    spec = bodies(manifest, "Pod")["d-0-dec-1-wk-2"]["spec"]

    assert [container["name"] for container in spec["initContainers"]] == ["fetch", "grove-initc"]
    assert spec["initContainers"][-1] == {
        "name": "grove-initc",
        "image": CONFIGURATION.waiter_image,
        "args": ["--podcliques=d-0-dec-1-ld:1"],
        "volumeMounts": [
            {"name": "pod-info-vol", "mountPath": "/var/grove/pod-info", "readOnly": True},
            {"name": "sa-token-secret-vol", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
        ],
        "securityContext": RESTRICTED,
    }
    assert spec["volumes"] == [
        {"name": "models", "emptyDir": {}},
        {"name": "sa-token-secret-vol", "secret": {"secretName": "d-ic-sat", "defaultMode": 420}},
        {
            "name": "pod-info-vol",
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                    {"path": "podgangname", "fieldRef": {"fieldPath": "metadata.labels['grove.io/podgang']"}},
                ],
                "defaultMode": 420,
            },
        },
    ]


def test_a_pod_waits_for_the_minimum_of_its_parents_only() -> None:
    args = bodies(roles(IN_ORDER), "Pod")["s-0-g-0-w-0"]["spec"]["initContainers"][0]["args"]

    assert args == ["--podcliques=s-0-g-0-l:1", "--podcliques=s-0-g-1-l:1"]


def test_the_start_order_does_not_change_the_template_hash() -> None:
    def hashes(startup: str) -> dict[str, str]:
        cliques = bodies(roles(startup), "PodClique")
        return {name: body["metadata"]["labels"]["grove.io/pod-template-hash"] for name, body in cliques.items()}

    assert hashes(IN_ORDER) == hashes("CliqueStartupTypeAnyOrder")


def test_a_pod_that_waits_is_created_after_its_identity() -> None:
    plan = planned(podcliqueset("web", clique("l"), clique("w"), cliqueStartupType=IN_ORDER))
    by_host = {body_of(operation)["spec"]["hostname"]: operation for operation in plan.operations if operation.id.kind == "Pod"}
    identity = {operation.key for operation in plan.operations if operation.id.kind in ("Secret", "RoleBinding")}

    assert len(identity) == 2
    assert identity <= by_host["web-0-w-0"].after
    assert not identity & by_host["web-0-l-0"].after


# The token: only pods that need it are deferred.


def admitted(manifest: dict[str, Any]) -> Toy:
    """A cluster after the first pass for the set."""
    toy = Toy()
    toy.put(manifest)
    for plan in toy.plans():
        toy.apply(plan.operations)
    return toy


WEB = podcliqueset("web", clique("l"), clique("w", 2), cliqueStartupType=IN_ORDER)


def hosts(toy: Toy) -> list[str]:
    return sorted(toy.objects[pod]["spec"]["hostname"] for pod in toy.pods())


def pods_of(plan: Plan) -> tuple[list[Operation], list[Wait]]:
    """The pods to create, and those that are deferred."""
    created = [operation for operation in plan.operations if operation.id.kind == "Pod" and operation.verb is Verb.CREATE]
    return created, [wait for wait in plan.deferred if wait.id.kind == "Pod"]


def test_without_a_token_only_pods_that_wait_are_deferred() -> None:
    toy = admitted(WEB)
    (plan,) = toy.plans()
    created, deferred = pods_of(plan)

    assert (hosts(toy), created) == (["web-0-l-0"], [])
    assert {wait.why for wait in deferred} == {
        "web-0-w starts after web-0-l; Secret web-ic-sat does not contain the token to watch them yet"
    }
    assert [wait.blocked for wait in deferred] == [False, False]
    assert "observedGeneration" not in toy.objects[kinds.PODCLIQUESET.id("default", "web")].get("status", {})


@pytest.mark.parametrize("data", [{}, {"ca.crt": "eA=="}, {"token": ""}, {"token": None}])
def test_a_secret_without_a_token_is_not_filled(data: dict[str, Any]) -> None:
    toy = admitted(WEB)
    toy.write(SECRET, {"data": data})
    (plan,) = toy.plans()

    assert len(pods_of(plan)[1]) == 2


def test_with_the_token_they_are_created() -> None:
    toy = admitted(WEB)
    memo = Memo()
    toy.plans(memo)
    toy.write(SECRET, {"data": {"token": "eA=="}})
    (plan,) = toy.plans(memo)
    created, deferred = pods_of(plan)

    assert (len(created), deferred) == (2, [])
    assert {operation.cause.value for operation in created} == {"intent"}


def test_a_terminating_secret_does_not_count() -> None:
    toy = admitted(WEB)
    toy.write(SECRET, {"data": {"token": "eA=="}, "metadata": {"finalizers": ["example.com/keep"]}})
    toy.delete(SECRET)
    (plan,) = toy.plans()

    assert len(pods_of(plan)[1]) == 2


def test_a_foreign_secret_does_not_count() -> None:
    toy = Toy()
    theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET.name, "namespace": "default"}, "data": {"token": "eA=="}}
    theirs["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "web"}  # type: ignore[index]
    toy.put(theirs)
    toy.put(WEB)
    for plan in toy.plans():
        toy.apply(plan.operations)
    (plan,) = toy.plans()

    assert hosts(toy) == ["web-0-l-0"]
    assert len(pods_of(plan)[1]) == 2


def test_existing_pods_stay_when_the_secret_is_deleted() -> None:
    toy = admitted(WEB)
    toy.write(SECRET, {"data": {"token": "eA=="}})
    toy.settle()
    before = {pod: toy.objects[pod]["metadata"]["uid"] for pod in toy.pods()}
    del toy.objects[SECRET]
    (plan,) = toy.plans()

    assert {operation.id for operation in plan.operations} == {SECRET}
    assert pods_of(plan) == ([], [])
    assert {pod: toy.objects[pod]["metadata"]["uid"] for pod in toy.pods()} == before


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"securityContext": {"runAsUser": 1000, "runAsNonRoot": True}}, RESTRICTED),
        ({"securityContext": {"runAsUser": 0}}, {key: value for key, value in RESTRICTED.items() if key != "runAsNonRoot"}),
        ({"os": {"name": "windows"}}, {"runAsNonRoot": True}),
    ],
)
def test_the_init_container_starts_wherever_the_pod_itself_does(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    pod_spec = {"containers": [{"name": "main", "image": "example/worker:1"}], **fields}
    manifest = podcliqueset("web", clique("l"), clique("w", pod_spec=pod_spec), cliqueStartupType=IN_ORDER)
    spec = bodies(manifest, "Pod")["web-0-w-0"]["spec"]

    assert spec["initContainers"][-1]["securityContext"] == expected
    assert spec.get("securityContext") == fields.get("securityContext")


def test_pods_of_an_engine_that_gave_the_init_container_no_security_context_stay_as_they_are() -> None:
    toy = admitted(WEB)
    toy.write(SECRET, {"data": {"token": "eA=="}})
    toy.settle()
    for id in toy.pods():
        for container in toy.objects[id]["spec"].get("initContainers", ()):
            container.pop("securityContext", None)  # New pods of a clique share it.
    (plan,) = toy.plans()

    assert (plan.operations, plan.deferred) == ((), ())


def test_another_image_applies_to_new_pods_only() -> None:
    toy = admitted(WEB)
    toy.write(SECRET, {"data": {"token": "eA=="}})
    toy.settle()
    (plan,) = plan_all(BLUEPRINTS, toy.world(), toy.now, replace(CONFIGURATION, waiter_image="another:1"), Memo(), Limits()).plans

    assert plan.operations == ()


def test_the_image_of_the_init_container_is_configured() -> None:
    configuration = replace(CONFIGURATION, waiter_image="example.test/waiter:9")
    (plan,) = plan_all(BLUEPRINTS, propose(world.empty(), [WEB]), START, configuration, Memo(), Limits()).plans
    containers = [
        container
        for operation in plan.operations
        if operation.id.kind == "Pod"
        for container in body_of(operation)["spec"].get("initContainers", ())
    ]

    assert {container["image"] for container in containers} == {"example.test/waiter:9"}


@pytest.mark.parametrize(
    ("image", "meant"),
    [
        ("waiter", f"waiter:{VERSION}"),
        ("mirror.example:5000/ai/waiter", f"mirror.example:5000/ai/waiter:{VERSION}"),
        ("mirror.example:5000/ai/waiter:2", "mirror.example:5000/ai/waiter:2"),
        ("waiter@sha256:0123", "waiter@sha256:0123"),
    ],
)
def test_an_image_without_a_tag_gets_that_of_this_release(image: str, meant: str) -> None:
    assert pinned(image) == meant


# Orders that cannot be followed are problems.


def problems(*after: list[str]) -> tuple[str, ...]:
    """The problems of cliques a, b, c, …, each of which starts after those cliques."""
    cliques = [clique(name, startsAfter=list(names)) for name, names in zip("abcd", after, strict=False)]
    return planned(podcliqueset("web", *cliques, cliqueStartupType=EXPLICIT)).problems


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (
            [[], ["x", "y", "a"]],
            [
                '[1].spec.startsAfter: Invalid value: "x,y": unknown clique names found, '
                "all clique dependencies must be defined as cliques; there is a"
            ],
        ),
        ([[], ["b"]], ['[1].spec.startsAfter[0]: Invalid value: "b": clique dependency cannot refer to itself']),
        ([[], ["a", "a"]], ['[1].spec.startsAfter[1]: Duplicate value: "a"']),
        ([[], [""]], ["[1].spec.startsAfter[0]: Required value: clique dependency must not be empty"]),
        ([["c"], ["a"], ["b"], ["c"]], [': Invalid value: "a, b, c": clique must not have circular dependencies']),
        (
            [["b"], ["a"], ["d"], ["c"]],
            [
                ': Invalid value: "a, b": clique must not have circular dependencies',
                ': Invalid value: "c, d": clique must not have circular dependencies',
            ],
        ),
    ],
)
def test_an_order_that_cannot_be_followed_is_a_problem(after: list[list[str]], expected: list[str]) -> None:
    assert list(problems(*after)) == [f"spec.template.cliques{text}" for text in expected]


def test_starts_after_is_ignored_with_another_startup_type() -> None:
    cliques = [clique("a", startsAfter=["nobody", "a"]), clique("b")]

    assert planned(podcliqueset("web", *cliques, cliqueStartupType=IN_ORDER)).problems == ()
