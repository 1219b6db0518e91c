"""The memory budget: what the engine has no memory for waits, the newest first, and what exists is managed as ever."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

import pytest
from msgspec.structs import replace

from engine.blueprint import Asked
from engine.health import TYPES
from engine.ids import Kind
from engine.memo import Memo
from engine.memory_budget import BYTES_PER_LIGHT, BYTES_PER_OTHER, PROGRAM_BYTES, REASON, TO_DO, bytes_for_objects, with_allowances
from engine.observed import Observed, live
from engine.plan import Plan
from engine.resource import Body
from engine.verb import Verb
from providers.fabrics.nvidia.names import AUTO, COMPUTE_DOMAIN
from resources.base import kinds
from resources.ports.configuration import SET_LIMITS, SizeLimits, WorkloadLimits
from tests.builders import clique, group, podcliqueset
from tests.kstatus import kstatus
from tests.laws.rack import Rack
from tests.laws.toy import Toy
from tests.mnnvl.sets import gpu, said

SET_OF_TEN = 10 * BYTES_PER_LIGHT + 4 * BYTES_PER_OTHER
"""What a set of ten pods takes: it has a clique, a gang, a Service, and a little more."""


class Limited(Toy):
    """A cluster of an engine that has so many bytes for objects, with one memory from pass to pass."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.memo = most, Memo()

    def by_set(self) -> Mapping[str, Plan]:
        """Set -> its plan."""
        world = with_allowances(self.world(), self.blueprints, self.configuration, self.most, self.memo)
        return {plan.root.name: plan for plan in self.plans_of(world, self.memo)}

    def add(self, name: str, pods: int = 10) -> None:
        """Create a set, a minute after the last one."""
        self.now += timedelta(minutes=1)
        self.put(podcliqueset(name, clique("worker", pods)))

    def settled(self) -> Mapping[str, Plan]:
        """Make passes until nothing is created any more, and return the last plans."""
        for _ in range(10):
            plans = self.by_set()
            for plan in plans.values():
                self.apply(plan.operations)
            self.live()
        return plans

    def taken(self) -> int:
        """The bytes that what belongs to sets takes."""
        pods = sum(id.kind == kinds.POD.name for id in self.objects)
        others = sum(id.kind not in (kinds.POD.name, kinds.PODCLIQUESET.name) for id in self.objects)
        return pods * BYTES_PER_LIGHT + others * BYTES_PER_OTHER

    def pods_of_sets(self) -> Counter[str]:
        """Set -> how many pods it has."""
        return Counter(id.name.split("-")[0] for id in self.objects if id.kind == kinds.POD.name)


class LimitedRack(Limited, Rack):
    """The same with a driver of domains."""


def waits(plan: Plan) -> bool:
    return any(alarm.reason == REASON for alarm in plan.alarms)


def test_the_newest_set_waits_entirely_and_is_told_what_to_do() -> None:
    cluster = Limited(2 * SET_OF_TEN)
    for name in ("first", "second", "third"):
        cluster.add(name)

    plans = cluster.settled()

    assert cluster.pods_of_sets() == {"first": 10, "second": 10}
    assert [name for name, plan in plans.items() if waits(plan)] == ["third"]
    (wait,) = [wait for wait in plans["third"].blocked if wait.id == plans["third"].root]
    assert f"the engine has {cluster.most >> 20} MiB of memory for objects, and together they need more" in wait.why
    assert wait.remedy == TO_DO


def test_a_set_of_which_nothing_exists_and_nothing_fits_is_not_even_computed() -> None:
    cluster = Limited(SET_OF_TEN - 1)
    cluster.add("first")
    cluster.settled()
    cluster.most = cluster.taken() - 1

    cluster.add("second")
    plan = cluster.by_set()["second"]

    assert ([operation.verb for operation in plan.operations], waits(plan)) == ([Verb.STATUS], True)
    assert cluster.memo.scope(plan.root).last("parts") is None


def stated(cluster: Limited, name: str) -> Mapping[str, str]:
    """Type of condition -> reason, of those that say how healthy a set is, and `kstatus` -> what kstatus concludes."""
    body = cluster.objects[kinds.PODCLIQUESET.id("default", name)]
    found = {each["type"]: each["reason"] for each in body["status"]["conditions"] if each["type"] in TYPES}
    return {**found, "kstatus": kstatus(body)}


WAITS = {"Ready": REASON, "Stalled": REASON, "kstatus": "Failed"}
SERVES = {"Ready": "AllReplicasAvailable", "kstatus": "Current"}


def test_a_set_that_waits_for_memory_says_so_in_its_status_once_and_as_long_as_it_waits() -> None:
    cluster = Limited(SET_OF_TEN + 5 * BYTES_PER_OTHER)
    cluster.add("first")
    cluster.add("second")
    cluster.add("third")
    cluster.settled()
    assert (stated(cluster, "first"), stated(cluster, "second"), stated(cluster, "third")) == (SERVES, WAITS, WAITS)
    cluster.now += timedelta(hours=1)
    assert [plan.operations for plan in cluster.by_set().values()] == [(), (), ()]

    cluster.most = 10 * SET_OF_TEN
    cluster.settled()

    assert (stated(cluster, "second"), stated(cluster, "third")) == (SERVES, SERVES)


def test_a_set_that_grows_beyond_the_memory_is_stalled_in_its_new_generation() -> None:
    cluster = Limited(2 * SET_OF_TEN)
    cluster.add("web")
    cluster.settled()
    id = kinds.PODCLIQUESET.id("default", "web")
    cluster.write(id, {"spec": {"replicas": 5}, "metadata": {"generation": 3}})

    cluster.settled()

    applied = next(each for each in cluster.objects[id]["status"]["conditions"] if each["type"] == "Applied")
    assert (stated(cluster, "web"), applied["observedGeneration"]) == (WAITS, 2)


def test_a_pod_of_the_newest_set_is_replaced_although_an_older_set_waits_for_growth() -> None:
    cluster = Limited(3 * SET_OF_TEN)
    cluster.add("old")
    cluster.add("new")
    cluster.settled()
    cluster.most = cluster.taken() - 1
    stored = cluster.objects[kinds.PODCLIQUESET.id("default", "old")]
    metadata = {**stored["metadata"], "generation": stored["metadata"]["generation"] + 1, "resourceVersion": "scaled"}
    cluster.objects[kinds.PODCLIQUESET.id("default", "old")] = {**stored, "metadata": metadata, "spec": {**stored["spec"], "replicas": 5}}
    lost = next(id for id in cluster.objects if id.kind == "Pod" and id.name.startswith("new-"))
    del cluster.objects[lost]

    plans = cluster.by_set()
    created = {name: [each.id for each in plan.operations if each.verb is Verb.CREATE] for name, plan in plans.items()}

    assert (created["old"], len(created["new"])) == ([], 1)
    assert waits(plans["old"]) and not waits(plans["new"])


def test_when_there_is_room_again_the_rest_is_created_and_nothing_is_ever_deleted() -> None:
    cluster = Limited(SET_OF_TEN + 5 * BYTES_PER_OTHER)
    cluster.add("first")
    cluster.add("second")
    cluster.settled()
    before = set(cluster.objects)
    cluster.most = 10 * SET_OF_TEN

    plans = cluster.settled()

    assert cluster.pods_of_sets() == {"first": 10, "second": 10} and before <= set(cluster.objects)
    assert not any(map(waits, plans.values()))


def test_a_budget_that_is_enough_changes_nothing() -> None:
    cluster = Limited(10 * SET_OF_TEN)
    cluster.add("first")
    world = cluster.world()

    assert with_allowances(world, cluster.blueprints, cluster.configuration, cluster.most, cluster.memo) is world


def test_a_set_that_no_gang_has_room_for_takes_no_room_from_others() -> None:
    cluster = Limited(5 * SET_OF_TEN)
    cluster.add("huge", 90_000)
    cluster.add("small")

    cluster.settled()

    assert cluster.pods_of_sets() == {"small": 10}


def seen(body: Body) -> Observed:
    """A set as it is stored, without any object."""
    return Observed(live(body), {})


def test_it_is_counted_what_the_specification_asks_for_whatever_its_shape() -> None:
    (blueprint,) = [each for each in Toy.blueprints if each.kind == kinds.PODCLIQUESET]
    members = podcliqueset("web", clique("a", 2), clique("b", 3), groups=(group("g", "b", replicas=4),), replicas=2)
    malformed = {**members, "spec": {"replicas": True, "template": {"cliques": [None, {"spec": []}], "podCliqueScalingGroups": {"a": 1}}}}

    assert blueprint.asked(seen(members), Toy.configuration) == Asked(2 * (1 + 1 + (1 + 2) + 1 + 4 * (1 + (1 + 3))), light=2 * (2 + 4 * 3))
    assert blueprint.asked(seen(malformed), Toy.configuration) == Asked()


def test_pods_with_large_specifications_count_with_what_exceeds_the_window_of_the_compression() -> None:
    large = {"containers": [{"name": "main", "image": "app:1", "env": [{"name": "TEXT", "value": "x" * 100_000}]}]}
    cluster = Limited(2 * SET_OF_TEN + 10 * 100_000)
    for name in ("first", "second"):
        cluster.now += timedelta(minutes=1)
        cluster.put(podcliqueset(name, clique("worker", 10, pod_spec=large)))
    cluster.add("small")

    plans = cluster.settled()

    assert cluster.pods_of_sets() == {"first": 10, "small": 10}
    assert [name for name, plan in plans.items() if waits(plan)] == ["second"]


def test_a_set_of_large_pods_that_grows_gets_as_many_as_there_is_room_for() -> None:
    large = {"containers": [{"name": "main", "image": "app:1", "env": [{"name": "TEXT", "value": "x" * 100_000}]}]}
    cluster = Limited(4 * SET_OF_TEN + 15 * 100_000)
    cluster.put(podcliqueset("web", clique("worker", 10, pod_spec=large)))
    cluster.settled()
    cluster.write(kinds.PODCLIQUESET.id("default", "web"), {"spec": {"replicas": 3}, "metadata": {"generation": 3}})

    cluster.settled()

    assert 10 < cluster.pods_of_sets()["web"] < 25


def test_a_gibibyte_is_enough_for_ninety_five_thousand_pods_in_gangs_of_a_hundred() -> None:
    gang = 100 * BYTES_PER_LIGHT + 3 * BYTES_PER_OTHER

    assert 95_000 < bytes_for_objects(1 << 30) // gang * 100 < 97_000
    assert bytes_for_objects(PROGRAM_BYTES - 1) == 0


def test_small_gangs_take_more_memory_for_each_pod_than_large_ones() -> None:
    cluster = Limited(10 * BYTES_PER_LIGHT + 3 * 9 * BYTES_PER_OTHER)
    cluster.put(podcliqueset("web", clique("worker", 1), replicas=10))
    cluster.settled()
    cluster.put(podcliqueset("web", clique("worker", 1), replicas=20))

    assert cluster.settled()["web"].blocked and cluster.pods_of_sets()["web"] < 20


def scale(cluster: Limited, kind: Kind, name: str, replicas: int) -> None:
    """Change the own number of a clique or a scaling group, as `kubectl scale` does."""
    id = kind.id("default", name)
    cluster.write(id, {"spec": {"replicas": replicas}, "metadata": {"generation": 2}})


def grown(cluster: Limited, room: int, *, domains: bool = False) -> Mapping[str, Plan]:
    """The plans after a set of ten pods was scaled to ten replicas, with so many bytes left."""
    worker = gpu("worker", 10) if domains else clique("worker", 10)
    cluster.put(said(podcliqueset("web", worker), {AUTO: "enabled"} if domains else {}))
    cluster.settled()
    cluster.most = cluster.taken() + room
    cluster.write(kinds.PODCLIQUESET.id("default", "web"), {"spec": {"replicas": 10}, "metadata": {"generation": 3}})
    return cluster.settled()


@pytest.mark.parametrize("domains", [False, True])
def test_a_set_grows_by_whole_replicas_also_where_pods_are_created_after_their_domain(*, domains: bool) -> None:
    cluster = LimitedRack(10 * SET_OF_TEN)

    plans = grown(cluster, 5 * SET_OF_TEN // 2, domains=domains)

    found = Counter(id.kind for id in cluster.objects)
    replicas = found[kinds.PODCLIQUE.name]
    assert 2 <= replicas < 10 and waits(plans["web"])
    assert (found["Pod"], found[kinds.PODGANG.name], found["Service"]) == (10 * replicas, replicas, replicas)
    assert found[COMPUTE_DOMAIN.name] == domains * replicas
    assert stated(cluster, "web") == WAITS


def test_what_a_replica_has_lost_is_made_again_although_there_is_no_room_for_what_it_grows_by() -> None:
    cluster = Limited(5 * SET_OF_TEN)
    cluster.put(podcliqueset("web", clique("worker", 20), groups=(group("g", "worker", replicas=1),)))
    cluster.settled()
    cluster.most = cluster.taken() + BYTES_PER_OTHER
    scale(cluster, kinds.SCALING_GROUP, "web-0-g", 10)
    cluster.settled()
    for id in [id for id in cluster.objects if id.kind == "Service" or id.name.startswith("web-0-g-0-worker-")][:3]:
        del cluster.objects[id]

    plans = cluster.settled()

    assert (cluster.pods_of_sets(), waits(plans["web"])) == ({"web": 20}, True)
    assert kinds.SERVICE.id("default", "web-0") in cluster.objects


def lose_a_pod(cluster: Limited, of: str) -> None:
    """Delete a pod of this set, clique or group as others do."""
    del cluster.objects[next(id for id in cluster.objects if id.kind == "Pod" and id.name.startswith(f"{of}-"))]


def with_two_sets_that_grow(room: int) -> Limited:
    """A cluster in which the sets `old` and `new` have ten pods each and were scaled to ten replicas, with so many bytes left."""
    cluster = Limited(5 * SET_OF_TEN)
    cluster.add("old")
    cluster.add("new")
    cluster.settled()
    cluster.most = cluster.taken() + room
    for name in ("old", "new"):
        cluster.write(kinds.PODCLIQUESET.id("default", name), {"spec": {"replicas": 10}, "metadata": {"generation": 3}})
    return cluster


def test_a_lost_pod_of_a_new_set_that_grows_comes_before_what_an_older_one_grows_by() -> None:
    room = 10 * BYTES_PER_LIGHT + 3 * BYTES_PER_OTHER - BYTES_PER_LIGHT
    cluster = with_two_sets_that_grow(room)
    lose_a_pod(cluster, "new")

    plans = cluster.settled()

    assert (cluster.pods_of_sets(), waits(plans["new"])) == ({"old": 10, "new": 10}, True)


def test_a_lost_pod_comes_before_what_another_clique_of_its_set_was_scaled_to() -> None:
    cluster = Limited(5 * SET_OF_TEN)
    cluster.put(podcliqueset("web", clique("a", 2), clique("b", 2)))
    cluster.settled()
    cluster.most = cluster.taken()
    scale(cluster, kinds.PODCLIQUE, "web-0-a", 10)
    cluster.settled()
    lose_a_pod(cluster, "web-0-b")

    cluster.settled()

    assert Counter(id.name[:7] for id in cluster.objects if id.kind == "Pod") == {"web-0-a": 2, "web-0-b": 2}


def test_what_an_older_set_cannot_grow_by_is_there_for_newer_ones_that_grow_or_have_lost_pods() -> None:
    cluster = Limited(5 * SET_OF_TEN)
    cluster.add("old")
    cluster.add("new")
    cluster.settled()
    for name in ("old", "new"):
        cluster.write(kinds.PODCLIQUESET.id("default", name), {"spec": {"replicas": 10}, "metadata": {"generation": 3}})
    cluster.settled()
    for id in [id for id in cluster.objects if id.kind == "Pod" and id.name.startswith("new-")][:6]:
        del cluster.objects[id]

    plans = cluster.settled()

    assert waits(plans["old"]) and waits(plans["new"])
    assert cluster.most - SET_OF_TEN < cluster.taken() <= cluster.most


def test_a_clique_that_is_scaled_beyond_the_memory_gets_what_there_is_room_for_and_lost_pods_are_replaced() -> None:
    cluster = Limited(3 * SET_OF_TEN)
    cluster.add("web")
    cluster.add("other")
    cluster.settled()
    scale(cluster, kinds.PODCLIQUE, "web-0-worker", 1000)

    plans = cluster.settled()

    assert 15 < cluster.pods_of_sets()["web"] < 25
    assert (cluster.taken() <= cluster.most, waits(plans["web"]), waits(plans["other"])) == (True, True, False)
    lost = [next(id for id in cluster.objects if id.kind == "Pod" and id.name.startswith(name)) for name in ("web", "other")]
    before = cluster.pods_of_sets()
    for id in lost:
        del cluster.objects[id]
    cluster.settled()
    assert before["web"] <= cluster.pods_of_sets()["web"] < 25 and cluster.pods_of_sets()["other"] == 10

    scale(cluster, kinds.PODCLIQUE, "web-0-worker", before["web"])
    assert not waits(cluster.settled()["web"])


def test_a_group_that_is_scaled_counts_with_its_pods_before_they_exist() -> None:
    cluster = Limited(4 * SET_OF_TEN)
    cluster.put(podcliqueset("web", clique("worker", 4), groups=(group("g", "worker", replicas=1),)))
    cluster.settled()
    scale(cluster, kinds.SCALING_GROUP, "web-0-g", 1000)

    plans = cluster.settled()

    assert cluster.taken() <= cluster.most and cluster.pods_of_sets()["web"] >= 4
    assert waits(plans["web"])


@pytest.mark.parametrize(("replicas", "limits"), [(90_000, SET_LIMITS), (2**31 - 1, replace(SET_LIMITS, pods=30))])
def test_what_is_scaled_beyond_its_limits_or_any_gang_takes_no_room_from_others(replicas: int, limits: SizeLimits) -> None:
    cluster = Limited(8 * SET_OF_TEN)
    cluster.configuration = replace(cluster.configuration, limits=WorkloadLimits(limits))
    cluster.add("web")
    cluster.settled()
    scale(cluster, kinds.PODCLIQUE, "web-0-worker", replicas)
    cluster.settled()
    cluster.add("new")

    plans = cluster.settled()

    assert (cluster.pods_of_sets()["new"], waits(plans["web"]), waits(plans["new"])) == (10, False, False)
    assert cluster.pods_of_sets()["web"] == min(limits.pods, 10 + (replicas > 90_000) * 20)


def scaled_out(most: int, workers: int, routers: int) -> Limited:
    """A cluster with the set `web`, of a group with `workers` that is scaled to 3, and a clique that is scaled to `routers`."""
    cluster = Limited(most)
    cluster.put(podcliqueset("web", clique("worker", workers), clique("router", 1), groups=(group("g", "worker", replicas=1),)))
    cluster.settled()
    scale(cluster, kinds.SCALING_GROUP, "web-0-g", 3)
    scale(cluster, kinds.PODCLIQUE, "web-0-router", routers)
    return cluster


def test_a_set_that_is_scaled_within_the_memory_is_not_limited() -> None:
    cluster = scaled_out(6 * SET_OF_TEN, 4, 5)

    plans = cluster.settled()

    assert (cluster.pods_of_sets()["web"], waits(plans["web"])) == (17, False)


def test_what_a_scaled_out_clique_or_group_has_lost_is_replaced_although_there_is_no_memory_for_growth() -> None:
    cluster = scaled_out(8 * SET_OF_TEN, 2, 4)
    cluster.settled()
    assert cluster.pods_of_sets() == {"web": 10}
    cluster.add("new", 1000)
    cluster.most = cluster.taken()
    lost = [id for id in cluster.objects if id.name.startswith("web-0-g-2-worker") or id.name.startswith("web-0-router-")]
    pods = [id for id in lost if id.kind == "Pod"]
    assert len(pods) == 6

    for id in pods:
        del cluster.objects[id]
    plans = cluster.settled()
    assert (cluster.pods_of_sets(), waits(plans["web"]), waits(plans["new"])) == ({"web": 10}, False, True)

    for id in [id for id in cluster.objects if id.name.startswith("web-0-g-2-worker")]:
        del cluster.objects[id]
    plans = cluster.settled()
    assert (cluster.pods_of_sets(), waits(plans["web"]), waits(plans["new"])) == ({"web": 10}, False, True)
