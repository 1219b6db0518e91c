"""Pool: which pod fits which node, and the reasons when none does."""

import pytest
from msgspec.structs import replace

from grove_sandbox.actors.pool import DEVICES, Pool, Shortage
from resources.placement.node_fit import PodRequirements, requests_of, requirements_of, thousandths
from sandbox.tests.actors.manifests import node, pod


def pool(*nodes: dict[str, object]) -> Pool:
    made = Pool()
    for number, body in enumerate(nodes):
        made.set_node(f"n{number}", body)
    return made


def pods(count: int, **fields: object) -> list[tuple[str, PodRequirements]]:
    return [(f"uid-{number}", requirements_of(pod(f"p{number}", **fields))) for number in range(count)]  # type: ignore[arg-type]


def test_nodes_fill_up_one_after_the_other() -> None:
    placed = pool(node("n0"), node("n1")).place(pods(3, gpus=4))

    assert placed == {"uid-0": "n0", "uid-1": "n0", "uid-2": "n1"}


def test_when_one_of_several_does_not_fit_nothing_is_reserved() -> None:
    room = pool(node("n0"), node("n1"))

    refused = room.place(pods(5, gpus=4))

    assert str(refused) == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    assert isinstance(refused, Shortage) and refused.placed == 4
    assert room.place(pods(4, gpus=4)) == {"uid-0": "n0", "uid-1": "n0", "uid-2": "n1", "uid-3": "n1"}


def test_released_resources_can_be_reserved_again() -> None:
    room = pool(node("n0"))
    room.place(pods(2, gpus=4))
    assert isinstance(room.place([("late", pods(1, gpus=4)[0][1])]), Shortage)

    room.release("uid-0")

    assert room.place([("late", pods(1, gpus=4)[0][1])]) == {"late": "n0"}


def test_pods_of_another_shape_find_room_that_was_too_small_for_the_first() -> None:
    room = pool(node("n0"), node("n1"))
    room.place(pods(1, gpus=6))

    assert room.place([("big", pods(1, gpus=4)[0][1])]) == {"big": "n1"}
    assert room.place([("small", pods(1, gpus=2)[0][1])]) == {"small": "n0"}


def test_a_pod_is_placed_by_its_selector_its_affinity_and_its_tolerations() -> None:
    room = pool(
        node("n0", taints=[{"key": "gpu", "value": "h100", "effect": "NoSchedule"}]),
        node("n1", labels={"zone": "a"}),
        node("n2", labels={"zone": "b", "rack": "7"}),
    )
    terms = [{"matchExpressions": [{"key": "rack", "operator": "Gt", "values": ["6"]}, {"key": "zone", "operator": "In", "values": ["b"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    tolerations = [{"key": "gpu", "operator": "Exists"}]

    assert room.place([("selects", requirements_of(pod("p", nodeSelector={"zone": "a"})))]) == {"selects": "n1"}
    assert room.place([("prefers", requirements_of(pod("p", affinity=affinity)))]) == {"prefers": "n2"}
    assert room.place([("tolerates", requirements_of(pod("p", tolerations=tolerations)))]) == {"tolerates": "n0"}
    assert str(room.place([("nowhere", requirements_of(pod("p", nodeSelector={"zone": "c"})))])) == (
        "0/3 nodes are available: 1 node(s) had untolerated taints, 2 node(s) didn't match Pod's node affinity/selector."
    )


def test_a_shortage_of_devices_is_reported_only_if_nothing_else_is_short() -> None:
    room = pool(node("n0"), node("n1"))
    (_, fits), (_, greedy) = pods(1, gpus=1)[0], pods(1, gpus=64)[0]

    def with_device(pod: PodRequirements) -> PodRequirements:
        return replace(pod, requests={**pod.requests, DEVICES + "channel": 1000})

    assert str(room.place([("a", with_device(fits))])) == "0/2 nodes are available: 2 cannot allocate all claims."
    assert str(room.place([("b", with_device(greedy))])) == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


def test_nothing_is_placed_on_cordoned_and_unready_nodes() -> None:
    cordoned = {**node("n0"), "spec": {"unschedulable": True}}
    sick = {**node("n1"), "status": {**node("n1")["status"], "conditions": [{"type": "Ready", "status": "False"}]}}

    assert isinstance(pool(cordoned, sick).place(pods(1)), Shortage)


def test_a_node_has_each_host_port_once() -> None:
    ports = [{"containerPort": 8080, "hostPort": 80}]
    containers = [{"name": "main", "image": "x", "ports": ports}]
    room = pool(node("n0"), node("n1"))

    refused = room.place(pods(3, containers=containers))

    assert str(refused) == "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    on_host = [{**containers[0], "ports": [{"containerPort": 80}]}]
    assert room.place(pods(2, containers=on_host, hostNetwork=True)) == {"uid-0": "n0", "uid-1": "n1"}


def test_requests_of_the_pod_as_a_whole_count_in_place_of_those_of_its_containers() -> None:
    spec = {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1"}}}], "resources": {"requests": {"cpu": "3"}}}

    assert requests_of(spec) == {"cpu": 3000, "memory": 1000, "pods": 1000}


def test_effective_requests_are_the_maximum_of_init_containers_and_containers() -> None:
    spec = {
        "initContainers": [
            {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            {"name": "load", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}},
        ],
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}, {"name": "b", "resources": {"limits": {"cpu": "1500m"}}}],
    }

    assert requests_of(spec) == {"cpu": 3100, "memory": 1024**3 * 1000, "pods": 1000}


@pytest.mark.parametrize(("text", "expected"), [("100m", 100), ("2", 2000), ("1Ki", 1_024_000), ("1e3", 1_000_000), ("1n", 1)])
def test_quantities_are_counted_in_thousandths(text: str, expected: int) -> None:
    assert thousandths(text) == expected


def test_no_quantity_is_too_long_to_count_with() -> None:
    assert thousandths("1e999999") == 2**63 * 1000
