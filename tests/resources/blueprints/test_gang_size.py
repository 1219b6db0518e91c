"""PodGangs that no API server stores: nothing of them is created, the reason is told, and what runs is left as it is."""

from msgspec.structs import replace

from engine.plan import Plan
from engine.verb import Verb
from resources.base import kinds
from resources.children import pod
from resources.ports.configuration import SET_LIMITS, WorkloadLimits
from tests.builders import clique, group, podcliqueset
from tests.counting import counted
from tests.laws.toy import CONFIGURATION, Toy

TOO_MANY = 40_000
"""Pods whose names take more than 1.5 MiB."""
UNLIMITED = replace(CONFIGURATION, limits=WorkloadLimits(replace(SET_LIMITS, bytes=2**40)))
"""Admission lets such sets pass, as it has let pass those that are older than its limits."""


def plan_of(cluster: Toy) -> Plan:
    (plan,) = cluster.plans()
    return plan


def made(plan: Plan, kind: str) -> int:
    return sum(operation.verb is Verb.CREATE and operation.id.kind == kind for operation in plan.operations)


def test_a_gang_that_is_too_large_is_not_created_nor_are_its_pods_and_the_reason_names_the_limit() -> None:
    cluster = Toy()
    cluster.configuration = UNLIMITED
    cluster.put(podcliqueset("web", clique("worker", TOO_MANY)))

    with counted({"pods made": pod._new_pod}) as calls:
        plan = plan_of(cluster)

    assert (made(plan, "PodGang"), made(plan, "Pod")) == (0, 0)
    assert sum(wait.id.kind == "Pod" for wait in plan.blocked) == TOO_MANY
    (gang,) = [wait for wait in plan.blocked if wait.id.kind == "PodGang"]
    assert calls["pods made"] == 0
    assert f"its {TOO_MANY} pods take" in gang.why and "an API server stores at most 1.5 MiB of one object" in gang.why
    (alarm,) = plan.alarms
    assert (alarm.reason, alarm.blocking) == ("PodGangTooLarge", True) and gang.why in alarm.text


def test_as_many_pods_in_gangs_of_their_own_are_created() -> None:
    cluster = Toy()
    cluster.put(podcliqueset("web", clique("worker", 20_000), groups=(group("pool", "worker", replicas=2, min_available=1),)))

    plan = plan_of(cluster)

    assert (made(plan, "PodGang"), made(plan, "Pod"), plan.alarms) == (2, TOO_MANY, ())


def test_growth_beyond_what_a_gang_can_list_waits_and_what_runs_is_left_as_it_is() -> None:
    cluster = Toy()
    cluster.put(podcliqueset("web", clique("worker", 2)))
    for _ in range(5):
        cluster.apply(plan_of(cluster).operations)
        cluster.live()
    before = {id for id in cluster.objects if id.kind == "Pod"}
    (id,) = [id for id in cluster.objects if id.kind == "PodClique"]
    stored = cluster.objects[id]
    metadata = {**stored["metadata"], "resourceVersion": "scaled"}
    cluster.objects[id] = {**stored, "metadata": metadata, "spec": {**stored["spec"], "replicas": TOO_MANY}}

    plan = plan_of(cluster)

    assert len(before) == 2 and made(plan, "Pod") == 0
    assert not [operation for operation in plan.operations if operation.verb in (Verb.DELETE, Verb.REPLACE)]
    assert kinds.PODGANG.id("default", "web-0") in {wait.id for wait in plan.blocked}
