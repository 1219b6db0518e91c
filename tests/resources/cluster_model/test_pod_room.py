"""PodRoom: which pods of a forecast start, which wait, and what is told of both."""

from typing import Any

from engine.observed import Live, live
from resources.base import kinds, labels
from resources.cluster_model.pod_room import PodRoom
from resources.placement.usage_totals import UsageTotals, room_node

ROOT = kinds.PODCLIQUESET.id("ml", "demo")
GPU = "nvidia.com/gpu"


def pod(name: str, gpus: int = 4, node: str = "", **spec: Any) -> Live:
    spec = {"containers": [{"name": "main", "resources": {"requests": {GPU: str(gpus)}}}], **spec, **({"nodeName": node} if node else {})}
    metadata = {"name": name, "namespace": "ml", "uid": f"uid-{name}", "labels": {labels.PODCLIQUE: name.rpartition("-")[0]}}
    return live({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def room(*running: Live, nodes: int = 2) -> PodRoom:
    """Nodes with four GPUs each, on which pods of ours run."""
    bodies = [{"metadata": {"name": f"n{i}"}, "status": {"allocatable": {GPU: "4", "pods": "10"}}} for i in range(nodes)]
    made = PodRoom(UsageTotals().room(map(room_node, bodies)))
    made.begin(lambda _: None, ((each, {}) for each in running))
    return made


def ask(made: PodRoom, *pods: Live) -> list[str]:
    """The names of those that start."""
    for each in pods:
        assert made.ask(each, ROOT, {})
    return [id.name for id in made.admitted()]


def test_pods_start_as_long_as_nothing_shows_that_there_is_no_room() -> None:
    made = room(pod("a-0", node="n0"))

    assert ask(made, pod("a-1"), pod("a-2")) == ["a-1"]
    (wait,) = made.shortages()[ROOT]
    assert (wait.id, wait.blocked) == (kinds.PODCLIQUE.id("ml", "a"), True)
    assert wait.why.startswith("1 pod cannot be scheduled: 2 pods need 2 nodes, one for each: 1 of 2 is free (pods of namespace ml have")


def test_one_pod_without_room_needs_a_node() -> None:
    made = room(pod("a-0", node="n0"), pod("a-1", node="n1"))

    assert ask(made, pod("a-2")) == []
    (wait,) = made.shortages()[ROOT]
    assert wait.why.startswith("1 pod cannot be scheduled: 1 pod needs a node: 0 of 2 are free (pods of namespace ml have the rest)")


def test_a_pod_that_goes_leaves_its_room_to_those_that_wait() -> None:
    made = room(pod("a-0", node="n0"))
    ask(made, pod("a-1"), pod("a-2"))

    made.remove(["uid-a-0"])

    assert [id.name for id in made.admitted()] == ["a-2"]
    assert not made.shortages() and not made.doubts()


def test_pods_that_the_scheduler_has_refused_for_want_of_room_start_when_some_is_freed() -> None:
    made = room(pod("a-0", node="n0"), pod("a-1", node="n1"))
    made.note_refused([(pod("a-2"), ROOT, {}, None)])
    assert made.is_explained("uid-a-2") and not made.admitted()

    made.remove(["uid-a-1"])

    assert [id.name for id in made.admitted()] == ["a-2"]


def test_pods_that_the_scheduler_has_refused_for_another_reason_stay() -> None:
    made = room(pod("a-0", node="n0"))
    made.note_refused([(pod("a-2"), ROOT, {}, None)])
    assert not made.is_explained("uid-a-2"), "There is a node for it."

    made.remove(["uid-a-0"])

    assert not made.admitted()


def test_what_another_scheduler_decides_is_told_and_starts() -> None:
    made = room()

    assert ask(made, pod("a-0", gpus=8, schedulerName="kai-scheduler")) == ["a-0"]
    assert not made.shortages()
    (doubt,) = made.doubts()
    assert doubt.startswith("pods of PodClique a: 8 nvidia.com/gpu requested, the largest of 2 nodes that suit has 4")
    assert doubt.endswith("(scheduler kai-scheduler decides)")


def test_pods_that_could_preempt_others_are_told_and_start_as_long_as_all_of_these_would_be_enough() -> None:
    made = room(pod("low-0", node="n0", priority=-1), pod("low-1", node="n1", priority=-1))

    assert ask(made, pod("a-0"), pod("a-1"), pod("a-2")) == ["a-0", "a-1"]
    assert "pods of lower priority could be preempted for them" in made.doubts()[0]
    assert made.shortages()[ROOT]


def test_pods_that_fit_only_if_the_nodes_are_filled_in_another_order_are_told_and_start() -> None:
    bodies = [{"metadata": {"name": f"n{i}"}, "status": {"allocatable": {"cpu": "10", "pods": "10"}}} for i in range(2)]
    made = PodRoom(UsageTotals().room(map(room_node, bodies)))
    pods = [pod(f"{size}-{number}", gpus=0) for number, size in enumerate("ccbbbb")]
    cpu = {"b": "3", "c": "4"}
    sized = [live({**each.body, "spec": {"containers": [{"resources": {"requests": {"cpu": cpu[each.id.name[0]]}}}]}}) for each in pods]

    assert len(ask(made, *sized)) == 6, "4 + 3 + 3 on each of two nodes; largest first puts both large pods on one."
    assert any("another may have" in doubt for doubt in made.doubts())


def test_a_pod_with_malformed_quantities_starts_as_nothing_can_be_said_about_it() -> None:
    broken = live({**pod("a-0").body, "spec": {"containers": [{"resources": {"requests": {GPU: "many"}}}]}})

    assert not room().ask(broken, ROOT, {})
