"""The laws of updates and recyclings while a domain is being deleted: whenever that happens, everything settles, and no other pod moves."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine.ids import ResourceId
from providers.fabrics.nvidia.names import CLAIM, COMPUTE_DOMAIN, NAMED
from resources.base import kinds, labels
from tests.builders import group
from tests.laws.cases import cases
from tests.laws.fabric_worlds import pass_, scale, settle
from tests.laws.rack import Rack
from tests.mnnvl.sets import auto, gpu, gpus, named

ROOT = kinds.PODCLIQUESET.id("default", "demo")
DELAY = 10
"""The terminationDelay of the sets, in seconds."""
MOMENTS = some.integers(0, 24)
"""After how many steps of the cluster the domain is deleted."""


def image(version: int) -> dict[str, Any]:
    """A pod spec with GPUs, of that version."""
    spec = gpus()
    return {"containers": [{**spec["containers"][0], "image": f"example/model:{version}"}]}


def demo(version: int = 1, replicas: int = 1) -> dict[str, Any]:
    """Two pods of a standalone clique, and a scaling group of three, of which one is needed."""
    cliques = [gpu("a", replicas=2, minAvailable=1, pod_spec=image(version)), *(gpu(name, pod_spec=image(version)) for name in ("b", "c"))]
    return auto(replicas, *cliques, groups=(group("g", "b", "c", replicas=3),), terminationDelay=f"{DELAY}s")


def up(manifest: dict[str, Any]) -> Rack:
    """A cluster in which the set is running."""
    toy = Rack()
    toy.put(manifest)
    settle(toy)
    return toy


def edit(toy: Rack, manifest: dict[str, Any]) -> None:
    """A user applies another version of the set."""
    generation = toy.objects[ROOT]["metadata"]["generation"] + 1
    toy.write(ROOT, {"spec": {"template": manifest["spec"]["template"]}, "metadata": {"generation": generation}})


def step(toy: Rack, times: int) -> None:
    """Passes, each followed by a step of the cluster."""
    for _ in range(times):
        pass_(toy)
        toy.live()
        toy.now += timedelta(seconds=1)


def crash(toy: Rack, *pods: ResourceId) -> None:
    """The containers of these pods fail again and again."""
    statuses = [{"name": "main", "ready": False, "started": False, "lastState": {"terminated": {"exitCode": 1}}}]
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": toy.stamp()},
        {"type": "Ready", "status": "False", "lastTransitionTime": toy.stamp()},
    ]
    for pod in pods:
        toy.write(pod, {"status": {"phase": "Running", "conditions": conditions, "containerStatuses": statuses}})


def of_clique(toy: Rack, name: str) -> list[ResourceId]:
    """The pods of a PodClique."""
    return [id for id in toy.pods() if toy.objects[id]["metadata"]["labels"][labels.PODCLIQUE] == name]


def cut_off(toy: Rack) -> list[str]:
    """The pods whose claim refers to a domain that does not exist, or that is being deleted."""
    live = {body["metadata"]["uid"] for body in toy.domains().values() if "deletionTimestamp" not in body["metadata"]}
    return [id.name for id in toy.pods() if toy.given(id.name) not in live]


def images(toy: Rack) -> set[str]:
    """The images of all pods."""
    return {toy.objects[pod]["spec"]["containers"][0]["image"] for pod in toy.pods()}


def left(toy: Rack) -> list[Any]:
    """What the plan of the set still waits for, except for a deleted domain that waits for running pods."""
    waits = (wait for plan in toy.plans() for wait in (*plan.deferred, *plan.pending))
    return [wait for wait in waits if wait.id.kind != COMPUTE_DOMAIN.name]


def uids(toy: Rack) -> dict[ResourceId, str]:
    """The pods that exist, with their uids."""
    return {id: toy.objects[id]["metadata"]["uid"] for id in toy.pods()}


@given(MOMENTS, some.integers(0, 1))
@cases(14)
def test_an_update_ends_whenever_a_domain_is_deleted_in_it(moment: int, index: int) -> None:
    toy = up(demo(1, replicas=2))
    edit(toy, demo(2, replicas=2))
    step(toy, moment)
    toy.delete(toy.domain(f"demo-{index}"))
    settle(toy)

    assert left(toy) == []
    # A replica that was updated before its domain was deleted keeps its pods: its owners decide (N10).
    assert images(toy) == {"example/model:2"}
    assert all(name.startswith(f"demo-{index}-") for name in cut_off(toy))


@given(MOMENTS)
@cases(10)
def test_a_recycled_replica_of_a_group_comes_back_whenever_the_domain_is_deleted(moment: int) -> None:
    toy = up(demo())
    crash(toy, *of_clique(toy, "demo-0-g-1-b"))
    step(toy, moment)
    toy.delete(toy.domain("demo-0"))
    settle(toy)
    step(toy, 2 * DELAY)
    settle(toy)

    assert left(toy) == []
    assert len(toy.pods()) == 8


@given(MOMENTS)
@cases(10)
def test_a_recycled_replica_of_the_set_comes_back_whenever_the_domain_is_deleted(moment: int) -> None:
    toy = up(demo())
    crash(toy, *of_clique(toy, "demo-0-a"))
    step(toy, moment)
    toy.delete(toy.domain("demo-0"))
    settle(toy)
    step(toy, 2 * DELAY)
    settle(toy)

    assert left(toy) == []
    assert len(toy.pods()) == 8


@pytest.mark.parametrize("event", ["a pod is deleted", "a clique is scaled", "a group is scaled"])
def test_a_pod_that_is_missing_or_added_moves_no_other_pod(event: str) -> None:
    toy = up(demo())
    toy.delete(toy.domain("demo-0"))
    step(toy, 2)
    before = uids(toy)
    if event == "a pod is deleted":
        toy.delete(gone := of_clique(toy, "demo-0-a")[0])
        before.pop(gone)
    elif event == "a clique is scaled":
        scale(toy, kinds.PODCLIQUE.id("default", "demo-0-a"), 3)
    else:
        scale(toy, kinds.SCALING_GROUP.id("default", "demo-0-g"), 4)
    step(toy, 2 * DELAY)

    assert before == uids(toy)
    assert left(toy) != []


def test_an_update_of_sets_that_share_a_domain_waits_for_the_other_set_and_names_its_users() -> None:
    toy = Rack()
    for name in ("demo", "other"):
        toy.put(named("rack-a", name=name))
    settle(toy)
    toy.delete(toy.domain("rack-a"))
    version = named("rack-a")
    version["spec"]["template"]["cliques"][0] = gpu(annotations={NAMED: "rack-a"}, pod_spec=image(2))
    edit(toy, version)
    step(toy, 5)

    before = uids(toy)
    (mine,), (others,) = (of_clique(toy, f"{name}-0-worker") for name in ("demo", "other"))
    (why,) = [wait.why for wait in left(toy) if "outdated" in wait.why]
    claim = f"1 claim ({others.name}-{CLAIM})"
    assert why == (
        "1 of 1 pods are outdated: ComputeDomain rack-a is being deleted and is still used by "
        f"{claim}: pods deleted now could not be created again"
    )
    toy.delete(others)
    settle(toy)
    assert (left(toy), before[mine] in uids(toy).values()) == ([], False)
    assert {name.split("-")[2] for name in cut_off(toy)} == {"frontend"}


def test_an_update_of_a_set_whose_replicas_share_a_domain_moves_them_all() -> None:
    toy = up(named("rack-a", replicas=3))
    toy.delete(toy.domain("rack-a"))
    before = uids(toy)
    version = named("rack-a", replicas=3)
    version["spec"]["template"]["cliques"][0] = gpu(annotations={NAMED: "rack-a"}, pod_spec=image(2))
    edit(toy, version)
    (plan,) = toy.plans()
    reasons = {operation.why for operation in plan.operations if operation.id.kind == "Pod"}
    settle(toy)

    assert reasons == {"ComputeDomain rack-a is being deleted and NVLink is cut: the update of replica 0 needs it to be created again"}
    assert left(toy) == []
    assert {id for id, _ in before.items() & uids(toy).items()} == {id for id in before if "frontend" in id.name}
    assert [id.name for id in toy.objects if id.kind == COMPUTE_DOMAIN.name] == ["rack-a"]
