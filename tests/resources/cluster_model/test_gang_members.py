"""Gang members: in a forecast, so many pods of a PodGroup get nodes together or none does, at one value of a node label if it says so."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live
from engine.resource import Body
from resources.base import kinds, labels
from resources.cluster_model.gang_members import GangMinimum, gang_member
from resources.cluster_model.pod_room import PodRoom
from resources.placement.usage_totals import UsageTotals, room_node
from tests.resources.cluster_model.test_pod_room import GPU, ROOT, pod

RACK = "rack"


def group(name: str, minimum: int, key: str = "", parent: str = "") -> tuple[ResourceId, Body]:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    spec |= {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
    spec |= {"parentCompositePodGroupName": parent} if parent else {}
    return kinds.POD_GROUP.id("ml", name), {"spec": spec}


def member(name: str, gang: str, node: str = "", gpus: int = 4) -> Live:
    made = pod(name, gpus, node, schedulingGroup={"podGroupName": gang})
    own = {**made.labels, labels.PODGANG: gang.partition(".")[0], labels.POD_INDEX: name.rpartition("-")[2]}
    return replace(made, labels=own, source={**made.body, "metadata": {**made.body["metadata"], "labels": own}})


def room(objects: Mapping[ResourceId, Body], *running: Live, nodes: int = 4, racks: str = "aabb") -> PodRoom:
    status = {"allocatable": {GPU: "4", "pods": "10"}}
    bodies = [{"metadata": {"name": f"n{i}", "labels": {RACK: racks[i]}}, "status": status} for i in range(nodes)]
    made = PodRoom(UsageTotals().room(map(room_node, bodies)))
    made.begin(objects.get, ((each, {}) for each in running))
    return made


def ask(made: PodRoom, *pods: Live) -> list[str]:
    """The names of those that start."""
    for each in pods:
        assert made.ask(each, ROOT, {})
    return [id.name for id in made.admitted()]


def test_of_two_gangs_of_three_on_four_nodes_one_starts_whole_and_the_other_not_at_all() -> None:
    objects = dict([group("red", 3), group("blue", 3)])
    pods = [member(f"{name}-{number}", name) for number in range(3) for name in ("red", "blue")]

    made = room(objects)

    assert ask(made, *pods) == ["red-0", "red-1", "red-2"]
    assert {wait.why.partition(":")[0] for wait in made.shortages()[ROOT]} == {"3 pods cannot be scheduled"}
    made.remove([f"uid-red-{number}" for number in range(3)])
    assert [id.name for id in made.admitted()] == ["blue-0", "blue-1", "blue-2"]


def test_a_pod_whose_gang_lacks_others_says_so_and_not_that_there_is_no_room() -> None:
    made = room(dict([group("red", 3)]), member("red-0", "red", "n0"))

    assert ask(made, member("red-1", "red")) == []
    assert [wait.why for wait in made.shortages()[ROOT]] == ["1 pod cannot be scheduled: its gang has 2 of its minimum of 3 pods"]


def test_a_pod_with_room_says_that_others_of_its_gang_have_none() -> None:
    made = room(dict([group("red", 2)]))

    assert ask(made, member("red-0", "red"), member("big-0", "red", gpus=8)) == []
    small, big = made.shortages()[ROOT]
    assert big.why.startswith("1 pod cannot be scheduled: 8 nvidia.com/gpu requested, the largest of 4 nodes that suit has 4")
    assert small.why == big.why.replace("scheduled: ", "scheduled: others of its gang cannot: ")


def test_a_pod_of_a_gang_that_has_the_others_on_nodes_starts_alone() -> None:
    objects = dict([group("red", 3)])
    made = room(objects, member("red-0", "red", "n0"), member("red-1", "red", "n1"))

    assert ask(made, member("red-2", "red")) == ["red-2"]


def test_pods_above_the_minimum_start_as_far_as_there_is_room() -> None:
    objects = dict([group("red", 2)])

    assert len(ask(room(objects), *(member(f"red-{number}", "red") for number in range(6)))) == 4


def test_a_gang_that_must_be_in_one_rack_does_not_start_where_no_rack_has_room() -> None:
    for count, started in ((2, 2), (3, 0)):
        objects = dict([group("red", count, key=RACK)])
        made = room(objects)

        assert len(ask(made, *(member(f"red-{number}", "red") for number in range(count)))) == started
    (wait,) = made.shortages()[ROOT]
    assert wait.why.startswith("3 pods cannot be scheduled: all 3 pods must be at one value of node label rack, and none has room for more")


def test_a_pod_joins_the_rack_of_its_gang() -> None:
    objects = dict([group("red", 2, key=RACK)])
    made = room(objects, member("red-0", "red", "n0"), pod("other-0", node="n1"))

    assert ask(made, member("red-1", "red")) == []


def beyond(name: str, gang: str, *keys: str) -> Live:
    """A pod beyond the minimum of a gang, near whose pods it must be by these node labels."""
    near = [{"labelSelector": {"matchLabels": {labels.PODGANG: gang}}, "topologyKey": key} for key in keys]
    made = pod(name, affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}} if near else {})
    own = {**made.labels, labels.PODGANG: gang}
    return replace(made, labels=own, source={**made.body, "metadata": {**made.body["metadata"], "labels": own}})


@pytest.mark.parametrize(("keys", "started"), [((RACK,), 0), ((), 1), (("zone",), 0)])
def test_a_pod_beyond_the_minimum_starts_in_the_rack_of_its_gang_if_its_affinity_says_so(keys: tuple[str, ...], started: int) -> None:
    objects = dict([group("red", 2, key=RACK)])
    made = room(objects)

    assert ask(made, member("red-0", "red"), member("red-1", "red")) == ["red-0", "red-1"]
    assert len(ask(made, beyond("red-2", "red", *keys))) == started


@pytest.mark.parametrize(("key", "started"), [(RACK, 0), ("", 1)])
def test_in_a_hierarchy_a_pod_beyond_the_minimum_starts_in_the_rack_of_the_groups_around_its_clique(key: str, started: int) -> None:
    top = (kinds.COMPOSITE_POD_GROUP.id("ml", "red"), {"spec": {"schedulingConstraints": {"topology": [{"key": RACK}]}}})
    gang = (kinds.PODGANG.id("ml", "red"), {"spec": {"podgroups": [{"name": "a", "minReplicas": 1}, {"name": "b", "minReplicas": 1}]}})
    made = room(dict([group("a.clique", 1, parent="red"), group("b.clique", 1, parent="red"), top, gang]))
    members = [member("a-0", "a.clique"), member("b-0", "b.clique")]

    assert ask(made, *(labelled(each, **{labels.PODGANG: "red"}) for each in members)) == ["a-0", "b-0"]
    assert len(ask(made, labelled(beyond("b-1", "red", *filter(None, [key])), **{labels.PODCLIQUE: "b"}))) == started


def labelled(pod: Live, **own: str) -> Live:
    """The pod with these labels."""
    every = {**pod.labels, **own}
    return replace(pod, labels=every, source={**pod.body, "metadata": {**pod.body["metadata"], "labels": every}})


def test_in_a_hierarchy_the_minimum_is_that_of_all_cliques_and_a_level_above_holds_for_all() -> None:
    top = (kinds.COMPOSITE_POD_GROUP.id("ml", "red"), {"spec": {"schedulingConstraints": {"topology": [{"key": RACK}]}}})
    gang = (kinds.PODGANG.id("ml", "red"), {"spec": {"podgroups": [{"name": "a", "minReplicas": 1}, {"name": "b", "minReplicas": 2}]}})
    objects = dict([group("red.a", 1, parent="red"), group("red.b", 2, parent="red"), top, gang])
    pods = [member("a-0", "red.a"), member("b-0", "red.b"), member("b-1", "red.b")]

    assert gang_member(pods[0], objects.get).membership == GangMinimum(top[0], 3)
    assert ask(room(objects), *pods) == []
    assert len(ask(room(objects, racks="aaab"), *pods)) == 3


def test_a_pod_whose_group_does_not_exist_is_placed_by_itself() -> None:
    assert gang_member(member("red-0", "red"), lambda _: None).membership is None
