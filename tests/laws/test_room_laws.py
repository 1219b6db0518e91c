"""The laws of room: what is called impossible has no placement, and what is placed is never called impossible."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from grove_sandbox.actors.pool import Pool, Shortage
from resources.base.added_to_pods import REQUIRED
from resources.placement.cluster_room import ClusterRoom
from resources.placement.node_fit import mismatch, requirements_of, short_of
from resources.placement.packing import left_over
from resources.placement.pod_affinity import affinity_of
from resources.placement.pod_demand import DemandBook, PodDemand
from resources.placement.room import Room
from resources.placement.usage_totals import UsageTotals, room_node

Body = dict[str, Any]
GPU, ZONE, HOSTNAME = "nvidia.com/gpu", "zone", "kubernetes.io/hostname"


@some.composite
def nodes(draw: Any) -> list[Body]:
    """Up to three nodes in two zones; some are tainted, cordoned, or in no zone."""
    made = []
    for number in range(draw(some.integers(1, 3))):
        labels = {HOSTNAME: f"n{number}"} | draw(some.sampled_from(({ZONE: "a"}, {ZONE: "b"}, {})))
        room = {"cpu": str(draw(some.integers(2, 6))), GPU: str(draw(some.integers(1, 6))), "pods": "10"}
        spec = draw(some.sampled_from(({}, {}, {}, {"unschedulable": True}, {"taints": [{"key": "gpu", "effect": "NoSchedule"}]})))
        made.append({"metadata": {"name": f"n{number}", "labels": labels}, "spec": spec, "status": {"allocatable": room}})
    return made


@some.composite
def kinds(draw: Any, with_affinity: bool = True) -> list[tuple[Body, int]]:
    """Up to three kinds of pods, and how many there are of each: four in all at most."""
    made: list[tuple[Body, int]] = []
    for name in ("x", "y", "z")[: draw(some.integers(1, 3))]:
        requests = {"cpu": draw(some.sampled_from(("500m", "1", "2"))), GPU: str(draw(some.integers(0, 2)))}
        ports = [{"containerPort": 80, "hostPort": 80}] if draw(some.integers(0, 5)) == 0 else []
        spec: Body = {"containers": [{"name": "main", "resources": {"requests": requests}, "ports": ports}]}
        spec |= draw(some.sampled_from(({}, {}, {"nodeSelector": {ZONE: "a"}}, {"tolerations": [{"operator": "Exists"}]})))
        if with_affinity:
            term = {
                "topologyKey": draw(some.sampled_from((ZONE, HOSTNAME))),
                "labelSelector": {"matchLabels": {"app": draw(some.sampled_from((name, "x")))}},
            }
            how = draw(some.sampled_from((None, None, "podAffinity", "podAntiAffinity")))
            spec |= {"affinity": {how: {REQUIRED: [term]}}} if how else {}
            if draw(some.integers(0, 5)) == 0:
                constraint = {
                    "topologyKey": ZONE,
                    "maxSkew": 1,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": term["labelSelector"],
                }
                spec["topologySpreadConstraints"] = [constraint]
        metadata = {"namespace": "ml", "labels": {"app": name}}
        made.append(({"metadata": metadata, "spec": spec}, draw(some.integers(1, 4 - min(2, len(made))))))
    return made


@some.composite
def running(draw: Any) -> list[Body]:
    """Up to two pods of others that run already."""
    made = []
    for number in range(draw(some.integers(0, 2))):
        spec = {
            "nodeName": f"n{draw(some.integers(0, 2))}",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", GPU: str(draw(some.integers(0, 2)))}}}],
        }
        labels = {"app": draw(some.sampled_from(("x", "other")))}
        made.append({"metadata": {"name": f"r{number}", "uid": f"r{number}", "namespace": "ml", "labels": labels}, "spec": spec})
    return made


class World:
    """Nodes, and the pods on them: a scheduler's view."""

    def __init__(self, nodes: Sequence[Body], pods: Iterable[Body]) -> None:
        self.nodes = {node["metadata"]["name"]: node for node in nodes}
        self.room = {name: room_node(node).allocatable for name, node in self.nodes.items()}
        self.pods: dict[str, Body] = {}
        self.where: dict[str, str] = {}
        self.used: dict[str, Counter[str]] = {name: Counter() for name in self.nodes}
        for pod in pods:
            if pod["spec"]["nodeName"] in self.nodes:
                self.put(pod, pod["spec"]["nodeName"])

    def node_of(self, uid: str) -> str:
        return self.where.get(uid, "")

    def labels_of(self, node: str) -> Mapping[str, str]:
        return self.nodes[node]["metadata"]["labels"] if node else {}

    def names(self) -> Iterable[str]:
        return self.nodes

    def put(self, pod: Body, node: str) -> None:
        uid = pod["metadata"]["uid"]
        self.pods[uid], self.where[uid] = pod, node
        self.used[node].update(requirements_of(pod).requests)

    def take(self, pod: Body) -> None:
        uid = pod["metadata"]["uid"]
        self.used[self.where.pop(uid)].subtract(requirements_of(self.pods.pop(uid)).requests)

    def choices(self, pod: Body) -> list[str]:
        """The nodes that a scheduler may give to the pod now."""
        requirements, affinity = requirements_of(pod), affinity_of(pod, self.pods.values())
        near = affinity.among(self, requirements) if affinity is not None else None
        return [
            name
            for name, node in self.nodes.items()
            if mismatch(requirements, node) is None
            and not short_of(requirements.requests, self.room[name], self.used[name])
            and (near is None or not near.refusal(self.labels_of(name)))
        ]


def can_be_placed(world: World, waiting: Counter[int], made: Sequence[tuple[Body, int]]) -> bool:
    """Whether some order of the pods and some choice of nodes places all of them."""
    if not waiting.total():
        return True
    for number in [number for number, count in waiting.items() if count]:
        pod = named(made[number][0], f"{number}-{waiting[number]}")
        for node in world.choices(pod):
            world.put(pod, node)
            is_found = can_be_placed(world, waiting - Counter([number]), made)
            world.take(pod)
            if is_found:
                return True
    return False


def named(pod: Body, name: str) -> Body:
    return {**pod, "metadata": {**pod["metadata"], "name": name, "uid": name}}


def room_for(nodes: Sequence[Body], pods: Iterable[Body], made: Sequence[tuple[Body, int]]) -> tuple[Room, dict[PodDemand, int]]:
    totals = UsageTotals({"app"})
    for pod in pods:
        totals.add(pod)
    cluster: ClusterRoom = totals.room(map(room_node, nodes))
    book, demands = DemandBook(cluster.priorities), Counter[PodDemand]()
    for pod, count in made:
        demand = book.demand_of(pod, {})
        assert demand is not None
        demands[demand] += count
    return Room(cluster), dict(demands)


def is_placeable(nodes: Sequence[Body], pods: Iterable[Body], made: Sequence[tuple[Body, int]]) -> bool:
    return can_be_placed(World(nodes, pods), Counter({number: count for number, (_, count) in enumerate(made)}), made)


@given(nodes(), running(), kinds())
@settings(max_examples=300, deadline=None)
def test_pods_that_are_refused_have_no_placement(nodes: list[Body], pods: list[Body], made: list[tuple[Body, int]]) -> None:
    room, demands = room_for(nodes, pods, made)

    if room.refusal(demands) is not None:
        assert not is_placeable(nodes, pods, made)


@given(nodes(), running(), kinds(with_affinity=False))
@settings(max_examples=150, deadline=None)
def test_pods_of_one_kind_are_refused_if_and_only_if_they_have_no_placement(
    nodes: list[Body], pods: list[Body], made: list[tuple[Body, int]]
) -> None:
    room, demands = room_for(nodes, pods, made[:1])

    assert (room.refusal(demands) is not None) is not is_placeable(nodes, pods, made[:1])


@given(nodes(), running(), kinds(with_affinity=False))
@settings(max_examples=150, deadline=None)
def test_what_packing_places_has_a_placement(nodes: list[Body], pods: list[Body], made: list[tuple[Body, int]]) -> None:
    room, demands = room_for(nodes, pods, made)

    if not left_over(room, demands):
        assert is_placeable(nodes, pods, made)
        assert room.refusal(demands) is None


@given(nodes(), running(), kinds())
@settings(max_examples=150, deadline=None)
def test_what_the_scheduler_of_the_sandbox_places_is_not_refused(nodes: list[Body], pods: list[Body], made: list[tuple[Body, int]]) -> None:
    pool, everything = Pool(), [named(pod, f"{number}-{index}") for number, (pod, count) in enumerate(made) for index in range(count)]
    for node in nodes:
        pool.set_node(node["metadata"]["name"], node)
    for pod in pods:
        pool.reserve(pod["metadata"]["uid"], pod["spec"]["nodeName"], requirements_of(pod).requests)
    affinities = {pod["metadata"]["uid"]: affinity for pod in everything if (affinity := affinity_of(pod, [*pods, *everything]))}
    placed = pool.place([(pod["metadata"]["uid"], requirements_of(pod)) for pod in everything], affinities)

    room, demands = room_for(nodes, pods, made)
    if not isinstance(placed, Shortage):
        assert room.refusal(demands) is None
