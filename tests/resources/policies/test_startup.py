"""Start order: who starts after whom, and what the pods that wait are given for it."""

from dataclasses import replace
from typing import Any

import pytest

from engine import world
from engine.guard import Limits
from engine.memo import Memo
from engine.operation import Operation
from engine.plan import Plan, Wait
from engine.tick import plan_all
from engine.verb import Verb
from engine.version import VERSION
from resources.base import kinds
from resources.ports.configuration import pinned
from resources.registry import BLUEPRINTS
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import SETUP, START, Toy

IN_ORDER, EXPLICIT = "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"
SECRET = kinds.SECRET.id("default", "web-ic-sat")


def planned(manifest: dict[str, Any]) -> Plan:
    """What is planned where there is nothing."""
    (plan,) = plan_all(BLUEPRINTS, world.propose(world.empty(), [manifest]), START, SETUP, Memo(), Limits()).plans
    return plan


def bodies(manifest: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """The bodies of one kind that are made from nothing, by name; pods by their hostname."""
    plan = planned(manifest)
    assert plan.problems == ()
    made = [dict(one.body) for one in plan.operations if one.id.kind == kind]
    return {body["spec"]["hostname"] if kind == "Pod" else body["metadata"]["name"]: body for body in made}


def roles(startup: str, *, left: tuple[str, ...] = (), working: tuple[str, ...] = ()) -> dict[str, Any]:
    """A router alone; leaders and workers in a group of three replicas, two of which are in the base gang."""
    after = {"l": {"startsAfter": list(left)} if left else {}, "w": {"startsAfter": list(working)} if working else {}}
    cliques = (clique("r"), clique("l", 2, minAvailable=1, **after["l"]), clique("w", 2, **after["w"]))
    return podcliqueset("s", *cliques, groups=(group("g", "l", "w", replicas=3, min_available=2),), cliqueStartupType=startup)


def started_after(manifest: dict[str, Any]) -> dict[str, list[str] | None]:
    """For each clique by its full name those that it starts after; None: it says nothing."""
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


def test_explicitly_each_clique_starts_after_those_it_names_in_its_own_order() -> None:
    assert started_after(roles(EXPLICIT, left=("r",), working=("l", "r"))) == {
        "s-0-r": None,
        "s-0-g-0-l": ["s-0-r"],
        "s-0-g-1-l": ["s-0-r"],
        "s-0-g-0-w": ["s-0-g-0-l", "s-0-g-1-l", "s-0-r"],
        "s-0-g-1-w": ["s-0-g-0-l", "s-0-g-1-l", "s-0-r"],
        "s-0-g-2-l": None,
        "s-0-g-2-w": ["s-0-g-2-l"],
    }


def test_in_order_a_scaled_gang_looks_no_further_back_than_one_clique() -> None:
    cliques = (clique("a"), clique("between"), clique("b"))
    manifest = podcliqueset("s", *cliques, groups=(group("g", "a", "b", replicas=2),), cliqueStartupType=IN_ORDER)

    after = started_after(manifest)
    assert (after["s-0-g-0-b"], after["s-0-g-1-b"]) == (["s-0-between"], None)


def test_in_any_order_nobody_waits_whatever_the_cliques_name() -> None:
    manifest = roles("CliqueStartupTypeAnyOrder", working=("l",))

    assert set(started_after(manifest).values()) == {None}
    assert not any("initContainers" in pod["spec"] for pod in bodies(manifest, "Pod").values())


def test_the_order_of_every_replica_is_its_own() -> None:
    manifest = podcliqueset("s", clique("l"), clique("w"), replicas=2, cliqueStartupType=IN_ORDER)

    assert started_after(manifest) == {"s-0-l": None, "s-0-w": ["s-0-l"], "s-1-l": None, "s-1-w": ["s-1-l"]}


def test_a_clique_whose_name_ends_like_another_s_is_not_taken_for_it() -> None:
    manifest = podcliqueset("s", clique("b", 3), clique("ab", 2), clique("w"), cliqueStartupType=IN_ORDER)

    assert bodies(manifest, "Pod")["s-0-w-0"]["spec"]["initContainers"][0]["args"] == ["--podcliques=s-0-ab:2"]


def test_a_pod_that_waits_has_a_container_for_it_after_all_the_users_own() -> None:
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
        "image": SETUP.waiter,
        "args": ["--podcliques=d-0-dec-1-ld:1"],
        "volumeMounts": [
            {"name": "pod-info-vol", "mountPath": "/var/grove/pod-info", "readOnly": True},
            {"name": "sa-token-secret-vol", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
        ],
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
                ]
            },
        },
    ]


def test_only_the_minimum_of_those_before_is_waited_for() -> None:
    args = bodies(roles(IN_ORDER), "Pod")["s-0-g-0-w-0"]["spec"]["initContainers"][0]["args"]

    assert args == ["--podcliques=s-0-g-0-l:1", "--podcliques=s-0-g-1-l:1"]


def test_the_order_is_no_part_of_a_pod_s_template() -> None:
    def hashes(startup: str) -> dict[str, str]:
        cliques = bodies(roles(startup), "PodClique")
        return {name: body["metadata"]["labels"]["grove.io/pod-template-hash"] for name, body in cliques.items()}

    assert hashes(IN_ORDER) == hashes("CliqueStartupTypeAnyOrder")


def test_what_a_waiting_pod_needs_is_made_before_it() -> None:
    plan = planned(podcliqueset("web", clique("l"), clique("w"), cliqueStartupType=IN_ORDER))
    by_host = {one.body["spec"]["hostname"]: one for one in plan.operations if one.id.kind == "Pod"}
    identity = {one.key for one in plan.operations if one.id.kind in ("Secret", "RoleBinding")}

    assert len(identity) == 2
    assert identity <= by_host["web-0-w-0"].after
    assert not identity & by_host["web-0-l-0"].after


# The token: held back is what needs it, and nothing else.


def admitted(manifest: dict[str, Any]) -> Toy:
    """A cluster that knows the set, with everything made that can be."""
    toy = Toy()
    toy.put(manifest)
    for plan in toy.plans():
        toy.apply(plan.operations)
    return toy


WEB = podcliqueset("web", clique("l"), clique("w", 2), cliqueStartupType=IN_ORDER)


def hosts(toy: Toy) -> list[str]:
    return sorted(toy.objects[pod]["spec"]["hostname"] for pod in toy.pods())


def pods_of(plan: Plan) -> tuple[list[Operation], list[Wait]]:
    """What is to be made and what is held of pods."""
    made = [one for one in plan.operations if one.id.kind == "Pod" and one.verb is Verb.CREATE]
    return made, [one for one in plan.deferred if one.id.kind == "Pod"]


def test_without_a_token_pods_that_wait_are_held_and_nothing_else() -> None:
    toy = admitted(WEB)
    (plan,) = toy.plans()
    made, held = pods_of(plan)

    assert (hosts(toy), made) == (["web-0-l-0"], [])
    assert {one.why for one in held} == {"web-0-w starts after web-0-l, which it cannot see until Secret web-ic-sat holds its token"}
    assert len(held) == 2
    assert "observedGeneration" not in toy.objects[kinds.PODCLIQUESET.id("default", "web")].get("status", {})


@pytest.mark.parametrize("data", [{}, {"ca.crt": "eA=="}, {"token": ""}, {"token": None}])
def test_a_secret_without_a_token_is_not_filled(data: dict[str, Any]) -> None:
    toy = admitted(WEB)
    toy.write(SECRET, {"data": data})
    (plan,) = toy.plans()

    assert len(pods_of(plan)[1]) == 2


def test_with_the_token_they_are_made_as_asked_for() -> None:
    toy = admitted(WEB)
    memo = Memo()
    toy.plans(memo)
    toy.write(SECRET, {"data": {"token": "eA=="}})
    (plan,) = toy.plans(memo)
    made, held = pods_of(plan)

    assert (len(made), held) == (2, [])
    assert {one.cause.value for one in made} == {"intent"}


def test_a_token_that_is_on_its_way_out_is_none() -> None:
    toy = admitted(WEB)
    toy.write(SECRET, {"data": {"token": "eA=="}, "metadata": {"finalizers": ["example.com/keep"]}})
    toy.delete(SECRET)
    (plan,) = toy.plans()

    assert len(pods_of(plan)[1]) == 2


def test_a_secret_of_a_stranger_is_not_our_token() -> None:
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


def test_pods_that_are_there_stay_as_they_are_when_the_token_goes() -> None:
    toy = admitted(WEB)
    toy.write(SECRET, {"data": {"token": "eA=="}})
    toy.settle()
    before = {pod: toy.objects[pod]["metadata"]["uid"] for pod in toy.pods()}
    del toy.objects[SECRET]
    (plan,) = toy.plans()

    assert {operation.id for operation in plan.operations} == {SECRET}
    assert pods_of(plan) == ([], [])
    assert {pod: toy.objects[pod]["metadata"]["uid"] for pod in toy.pods()} == before


def test_another_image_is_for_pods_to_come() -> None:
    toy = admitted(WEB)
    toy.write(SECRET, {"data": {"token": "eA=="}})
    toy.settle()
    (plan,) = plan_all(BLUEPRINTS, toy.world(), toy.now, replace(SETUP, waiter="another:1"), Memo(), Limits()).plans

    assert plan.operations == ()


def test_the_settings_say_which_image_waits() -> None:
    setup = replace(SETUP, waiter="example.test/waiter:9")
    (plan,) = plan_all(BLUEPRINTS, world.propose(world.empty(), [WEB]), START, setup, Memo(), Limits()).plans
    waiters = [container for one in plan.operations if one.id.kind == "Pod" for container in one.body["spec"].get("initContainers", ())]

    assert {container["image"] for container in waiters} == {"example.test/waiter:9"}


@pytest.mark.parametrize(
    ("image", "meant"),
    [
        ("waiter", f"waiter:{VERSION}"),
        ("mirror.example:5000/ai/waiter", f"mirror.example:5000/ai/waiter:{VERSION}"),
        ("mirror.example:5000/ai/waiter:2", "mirror.example:5000/ai/waiter:2"),
        ("waiter@sha256:0123", "waiter@sha256:0123"),
    ],
)
def test_an_image_without_a_tag_means_the_one_of_this_release(image: str, meant: str) -> None:
    assert pinned(image) == meant


# What cannot be followed is told, and nothing is made of it.


def faults(*after: list[str]) -> tuple[str, ...]:
    """What is wrong with cliques a, b, c, …, each starting after those."""
    cliques = [clique(name, startsAfter=list(names)) for name, names in zip("abcd", after, strict=False)]
    return planned(podcliqueset("web", *cliques, cliqueStartupType=EXPLICIT)).problems


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (
            [[], ["x", "y", "a"]],
            ['[1].spec.startsAfter: Invalid value: "x,y": unknown clique names found, all clique dependencies must be defined as cliques'],
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
def test_an_order_that_cannot_be_followed_says_why(after: list[list[str]], told: list[str]) -> None:
    assert list(faults(*after)) == [f"spec.template.cliques{text}" for text in told]


def test_what_is_named_is_nobody_s_business_where_it_does_not_count() -> None:
    cliques = [clique("a", startsAfter=["nobody", "a"]), clique("b")]

    assert planned(podcliqueset("web", *cliques, cliqueStartupType=IN_ORDER)).problems == ()
