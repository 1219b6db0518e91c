"""Pool: who fits where, and what is said when nobody fits."""

from dataclasses import replace

import pytest

from providers.sandbox.actors.amounts import requested, thousandths
from providers.sandbox.actors.ask import Ask, ask_of
from providers.sandbox.actors.pool import DEVICES, Pool, Shortage
from tests.providers.sandbox.actors.manifests import node, pod


def pool(*nodes: dict[str, object]) -> Pool:
    made = Pool()
    for number, body in enumerate(nodes):
        made.set_node(f"n{number}", body)
    return made


def asks(count: int, **needs: object) -> list[tuple[str, Ask]]:
    return [(f"uid-{number}", ask_of(pod(f"p{number}", **needs))) for number in range(count)]  # type: ignore[arg-type]


def test_nodes_fill_up_one_after_the_other() -> None:
    placed = pool(node("n0"), node("n1")).place(asks(3, gpus=4))

    assert placed == {"uid-0": "n0", "uid-1": "n0", "uid-2": "n1"}


def test_when_one_of_several_does_not_fit_none_takes_anything() -> None:
    room = pool(node("n0"), node("n1"))

    refused = room.place(asks(5, gpus=4))

    assert str(refused) == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    assert isinstance(refused, Shortage) and refused.placed == 4
    assert room.place(asks(4, gpus=4)) == {"uid-0": "n0", "uid-1": "n0", "uid-2": "n1", "uid-3": "n1"}


def test_what_is_given_back_can_be_given_out_again() -> None:
    room = pool(node("n0"))
    room.place(asks(2, gpus=4))
    assert isinstance(room.place([("late", asks(1, gpus=4)[0][1])]), Shortage)

    room.remove("uid-0")

    assert room.place([("late", asks(1, gpus=4)[0][1])]) == {"late": "n0"}


def test_pods_of_another_shape_find_room_that_was_too_small_for_the_first() -> None:
    room = pool(node("n0"), node("n1"))
    room.place(asks(1, gpus=6))

    assert room.place([("big", asks(1, gpus=4)[0][1])]) == {"big": "n1"}
    assert room.place([("small", asks(1, gpus=2)[0][1])]) == {"small": "n0"}


def test_a_pod_goes_only_where_its_selector_its_affinity_and_the_taints_let_it() -> None:
    room = pool(
        node("n0", taints=[{"key": "gpu", "value": "h100", "effect": "NoSchedule"}]),
        node("n1", labels={"zone": "a"}),
        node("n2", labels={"zone": "b", "rack": "7"}),
    )
    terms = [{"matchExpressions": [{"key": "rack", "operator": "Gt", "values": ["6"]}, {"key": "zone", "operator": "In", "values": ["b"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    tolerations = [{"key": "gpu", "operator": "Exists"}]

    assert room.place([("selects", ask_of(pod("p", nodeSelector={"zone": "a"})))]) == {"selects": "n1"}
    assert room.place([("prefers", ask_of(pod("p", affinity=affinity)))]) == {"prefers": "n2"}
    assert room.place([("tolerates", ask_of(pod("p", tolerations=tolerations)))]) == {"tolerates": "n0"}
    assert str(room.place([("nowhere", ask_of(pod("p", nodeSelector={"zone": "c"})))])) == (
        "0/3 nodes are available: 1 node(s) had untolerated taints, 2 node(s) didn't match Pod's node affinity/selector."
    )


def test_devices_are_said_to_be_short_only_where_nothing_else_is() -> None:
    room = pool(node("n0"), node("n1"))
    (_, fits), (_, greedy) = asks(1, gpus=1)[0], asks(1, gpus=64)[0]

    def wanting(ask: Ask) -> Ask:
        return replace(ask, requests={**ask.requests, DEVICES + "channel": 1000})

    assert str(room.place([("a", wanting(fits))])) == "0/2 nodes are available: 2 cannot allocate all claims."
    assert str(room.place([("b", wanting(greedy))])) == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


def test_a_cordoned_node_and_one_that_is_not_ready_take_nobody() -> None:
    cordoned = {**node("n0"), "spec": {"unschedulable": True}}
    sick = {**node("n1"), "status": {**node("n1")["status"], "conditions": [{"type": "Ready", "status": "False"}]}}

    assert isinstance(pool(cordoned, sick).place(asks(1)), Shortage)


def test_a_pod_needs_the_most_of_what_its_init_containers_and_its_containers_need() -> None:
    spec = {
        "initContainers": [
            {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            {"name": "load", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}},
        ],
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}, {"name": "b", "resources": {"limits": {"cpu": "1500m"}}}],
    }

    assert requested(spec) == {"cpu": 3100, "memory": 1024**3 * 1000, "pods": 1000}


@pytest.mark.parametrize(("text", "expected"), [("100m", 100), ("2", 2000), ("1Ki", 1_024_000), ("1e3", 1_000_000), ("1n", 1)])
def test_quantities_are_counted_in_thousandths(text: str, expected: int) -> None:
    assert thousandths(text) == expected


def test_no_quantity_is_too_long_to_count_with() -> None:
    assert thousandths("1e999999") == 2**63 * 1000
