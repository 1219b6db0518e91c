"""Gang room: how much of a waiting gang has room, at one value of a node label if it must be."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from engine.resource import Body
from resources.base import labels
from resources.base.labels import GROUP_NAME
from resources.placement.cluster_room import FabricSlots
from resources.placement.gang_room import GangHolders, GangRoom, gang_room
from resources.placement.usage_totals import UsageTotals, room_node
from tests.resources.placement.test_room import node, pod

RACK = "example.com/rack"
OWN = ("ml", "own")
CPU = {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}


def of_gang(name: str, on: str) -> Body:
    body = pod(node=on)
    return {**body, "metadata": {**body["metadata"], "labels": {labels.PODGANG: name}}}


def with_spec(body: Body, **spec: Any) -> Body:
    return {**body, "spec": {**body["spec"], **spec}}


def rack(name: str) -> Mapping[str, str]:
    return {RACK: name}


def judged(
    nodes: Iterable[Body],
    running: Iterable[Body],
    lacking: int,
    level: str = "",
    placed: Iterable[str] = (),
    slots: Mapping[str, FabricSlots] | None = None,
) -> GangRoom:
    totals, holders = UsageTotals(), GangHolders()
    for body in running:
        totals.add(body)
        holders.add(body)
    cluster = replace(totals.room(map(room_node, nodes)), slots=slots or {})
    return gang_room([(pod(), dict.fromkeys(cluster.slots, 1))] * lacking, level, placed, OWN, cluster, holders)


def test_what_fits_is_counted_and_the_gangs_on_full_nodes_are_named() -> None:
    single = pod(node="n5")
    single["metadata"]["annotations"] = {GROUP_NAME: "podgroup-4c1f0d9a"}
    running = [of_gang("a", "n1"), of_gang("b", "n2"), of_gang("b", "n3"), of_gang("own", "n4"), single]

    room = judged(map(node, range(6)), running, 2)

    assert (room.lacking, room.fit) == (2, 1)
    assert (
        room.why
        == "2 pods need 2 nodes, one for each: 1 of 6 is free (pods of namespace ml have the rest); free or add nodes, or ask for less"
    )
    assert room.holders == "on the full nodes are gangs ml/b (2 pods), ml/a (1 pod)"


def test_gangs_that_do_not_use_what_is_missing_are_not_named() -> None:
    small, leaving = with_spec(of_gang("router", "n1"), **CPU), of_gang("leaving", "n1")
    ended = {**of_gang("ended", "n1"), "status": {"phase": "Succeeded"}}
    leaving = {**leaving, "metadata": {**leaving["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}

    room = judged(map(node, range(2)), [of_gang("a", "n0"), of_gang("b", "n1"), small, ended, leaving], 1)

    assert room.why.startswith("1 pod needs a node: 0 of 2 are free")
    assert room.holders == "on the full nodes are gangs ml/a (1 pod), ml/b (1 pod)"


def test_only_pods_with_claims_hold_the_place_of_a_node_in_a_domain() -> None:
    slots = {"ComputeDomain": FabricSlots(frozenset({"n0"}), {"n0": "another-domain"})}
    claims = [{"name": "domain", "resourceClaimTemplateName": "domain"}]
    claimant, router = with_spec(of_gang("claimant", "n0"), resourceClaims=claims, **CPU), with_spec(of_gang("router", "n0"), **CPU)

    assert judged([node(0)], [claimant, router], 1, slots=slots).holders == "on the full node is gang ml/claimant (1 pod)"


def test_no_gang_has_the_room_of_pods_that_are_larger_than_every_node() -> None:
    room = judged((node(number, gpus=4) for number in range(2)), [of_gang("a", "n1")], 1)

    assert "the largest of 2 nodes that suit has 4" in room.why
    assert room.holders == ""


def test_where_all_fit_nothing_is_missing() -> None:
    assert judged(map(node, range(3)), [], 3) == GangRoom(3, 3, "", "")


def test_a_gang_that_must_be_in_one_rack_needs_room_in_one() -> None:
    nodes = [node(number, labels=rack("ab"[number % 2])) for number in range(4)]

    assert judged(nodes, [], 2, RACK).fit == 2
    room = judged(nodes, [], 3, RACK)
    assert room.fit == 2
    assert room.why.startswith(
        f"no value of node label {RACK} has room for all of them: 3 pods need 3 nodes, one for each: 2 of 2 are free"
    )


def test_pods_of_a_gang_that_has_begun_in_a_rack_must_be_in_that_one() -> None:
    nodes = [node(number, labels=rack("ab"[number % 2])) for number in range(4)]
    running = [of_gang("other", "n0"), of_gang("own", "n2")]

    room = judged(nodes, running, 1, RACK, ["n2"])

    assert (room.fit, room.holders) == (0, "on the full nodes is gang ml/other (1 pod)")
    assert room.why.startswith(f"others of them are at {RACK}=a: 1 pod needs a node: 0 of 2 are free")


@pytest.mark.parametrize("labelled", [range(2), range(1, 2)], ids=["gone", "without the label"])
def test_a_node_that_is_in_no_rack_says_nothing_about_where_its_gang_must_be(labelled: range) -> None:
    nodes = [node(number, labels=rack("a") if number in labelled else {}) for number in range(2)]
    placed = "n0" if len(labelled) == 1 else "lost"

    room = judged(nodes, [of_gang("other", f"n{number}") for number in range(2)], 1, RACK, [placed])

    assert room.fit == 0 and room.why.startswith("1 pod needs a node")


def test_no_node_has_the_label_of_the_level() -> None:
    room = judged(map(node, range(3)), [], 2, RACK)

    assert room.fit == 0 and room.why.startswith(f"no node has the label {RACK}")


def test_a_node_without_a_place_in_a_domain_has_no_room_in_any_rack() -> None:
    nodes = [node(number, labels=rack("ab"[number % 2])) for number in range(6)]
    slots = {"ComputeDomain": FabricSlots(frozenset(f"n{number}" for number in range(5)), {"n0": "another-domain"})}

    room = judged(nodes, [], 3, RACK, slots=slots)

    assert (room.lacking, room.fit) == (3, 2)
    assert room.why.endswith(
        "has room for all of them: 3 pods need 3 nodes, one for each: 2 of 3 are free, and a node takes one pod in a ComputeDomain; "
        "free or add nodes, or ask for less"
    )
    assert judged(nodes, [], 2, RACK, slots=slots).fit == 2
