"""What keeps objects of a set from running, in every state that a pod can be in."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.plan import Wait
from engine.reason import Reason
from resources.base import kinds, labels
from resources.reports.obstacles import Standstill, advised, standstill
from resources.reports.set_pods import SetPods
from resources.reports.summary import waits_of
from tests.builders import clique, group, podcliqueset
from tests.laws.rack import Rack
from tests.mnnvl.asking import root, up
from tests.mnnvl.sets import auto, gpu, gpus

DEMO = root()
MESSAGE = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def of(toy: Rack, kind: str, name: str, unlisted: tuple[str, ...] = ()) -> Standstill:
    """What keeps an object from running."""
    world = toy.world()
    (observed,) = [observed for observed in world.roots if observed.root.id == DEMO]
    (plan,) = [plan for plan in toy.plans_of(world) if plan.root == DEMO]
    (id,) = [id for id in toy.objects if (id.kind, id.name) == (kind, name)]
    return standstill(SetPods.of(observed, unlisted), plan, id, toy.now)


def pod_of(toy: Rack, podclique: str) -> ResourceId:
    """The first pod of a PodClique."""
    return next(id for id in toy.pods() if toy.objects[id]["metadata"]["labels"][labels.PODCLIQUE] == podclique)


def why(toy: Rack, pod: ResourceId, **options: Any) -> tuple[str, str]:
    """The reason and the text of the only obstacle of a pod."""
    (obstacle,) = of(toy, "Pod", pod.name, **options).obstacles
    assert obstacle.about == pod
    return obstacle.reason, obstacle.text


def report(toy: Rack, pod: ResourceId, status: Mapping[str, Any]) -> None:
    """A pod gets this status."""
    toy.write(pod, {"status": None})
    toy.write(pod, {"status": status})


def unscheduled(message: str = MESSAGE, reason: str = "Unschedulable") -> dict[str, Any]:
    """The status of a pod that the scheduler could not place."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {"phase": "Pending", "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}


def started(*containers: Mapping[str, Any], init: tuple[Mapping[str, Any], ...] = ()) -> dict[str, Any]:
    """The status of a pod on a node with these container statuses."""
    moment = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": moment},
        {"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "wait", "lastTransitionTime": moment},
    ]
    return {"phase": "Pending", "conditions": conditions, "containerStatuses": list(containers), "initContainerStatuses": list(init)}


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    """The status of a container that does not start."""
    return {"name": "main", "image": "x:1", "ready": False, "state": {"waiting": {"reason": reason, "message": message}}, **more}


def ended(code: int, reason: str, message: str = "") -> dict[str, Any]:
    """How a container has ended."""
    return {"terminated": {"exitCode": code, "reason": reason, **({"message": message} if message else {})}}


RUNS = {"name": "main", "ready": False, "started": True, "state": {"running": {}}}
STATES = {
    "image": (started(waiting("ImagePullBackOff", "not found")), "ImagePull", "container main: ImagePullBackOff, image x:1: not found"),
    "crash": (
        started(waiting("CrashLoopBackOff", lastState=ended(137, "OOMKilled"), restartCount=4)),
        "Crashing",
        "container main has ended with exit code 137 (OOMKilled); its memory limit is too low, 4 restarts",
    ),
    "configuration": (
        started(waiting("CreateContainerConfigError", 'secret "s" not found')),
        "ContainerBlocked",
        'container main: CreateContainerConfigError: secret "s" not found',
    ),
    "creating": (started(waiting("ContainerCreating")), "Creating", "node node creates its containers"),
    "nothing yet": (started(), "Creating", "node node creates its containers"),
    "init": (
        started(waiting("PodInitializing"), init=({"name": "download", "state": {"running": {}}},)),
        "Initializing",
        "init container download runs",
    ),
    "init crash": (
        started(waiting("PodInitializing"), init=(waiting("CrashLoopBackOff", name="download", lastState=ended(1, "Error", "no disk")),)),
        "Crashing",
        "container download has ended with exit code 1 (Error): no disk",
    ),
    "restarted": (
        started(
            {"name": "main", "ready": False, "started": True, "state": {"running": {}}, "lastState": ended(2, "Error"), "restartCount": 1}
        ),
        "Crashing",
        "container main has ended with exit code 2 (Error), 1 restart",
    ),
    "readiness": (
        started(RUNS),
        "NotReady",
        "container main runs; its readiness probe has not succeeded",
    ),
    "startup": (
        started({"name": "main", "ready": False, "started": False, "state": {"running": {}}}),
        "NotReady",
        "container main runs; its startup probe has not succeeded",
    ),
    "readiness gate": (
        started({"name": "main", "ready": True, "started": True, "state": {"running": {}}}),
        "NotReady",
        "its condition Ready is not True: ContainersNotReady: wait",
    ),
    "failed": (
        {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory."},
        "Ended",
        "has ended (Failed) and is replaced: Evicted: The node was low on memory.",
    ),
    "failed container": (
        {"phase": "Failed", "containerStatuses": [{"name": "main", "state": ended(3, "Error")}]},
        "Ended",
        "has ended (Failed) and is replaced: has ended with exit code 3 (Error)",
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_a_pod_on_a_node_is_explained_by_its_containers(state: str) -> None:
    status, reason, text = STATES[state]
    toy = up(podcliqueset())
    pod = pod_of(toy, "demo-0-worker")
    report(toy, pod, status)

    assert why(toy, pod) == (reason, text)
    (obstacle,) = of(toy, "PodClique", "demo-0-worker").obstacles
    assert (obstacle.about, obstacle.reason) == (pod, reason)


def place(toy: Rack, pod: ResourceId, status: Mapping[str, Any]) -> None:
    """A pod has no node, and this status."""
    toy.write(pod, {"spec": {"nodeName": None}})
    report(toy, pod, status)


def test_a_pod_without_a_node_is_explained_by_the_scheduler_since_it_said_so() -> None:
    toy = up(podcliqueset())
    pod = pod_of(toy, "demo-0-worker")
    toy.now += timedelta(hours=1)
    place(toy, pod, unscheduled())

    assert why(toy, pod) == ("Unschedulable", MESSAGE)
    (obstacle,) = of(toy, "Pod", pod.name).obstacles
    assert obstacle.since is not None and obstacle.advice.startswith("free or add nodes")
    place(toy, pod, {"phase": "Pending"})
    assert why(toy, pod) == ("Unscheduled", "default-scheduler has not said anything about it")


def test_claims_that_lack_devices_and_templates_that_do_not_exist_are_named() -> None:
    toy = up(auto(1, gpu()))
    pod = pod_of(toy, "demo-0-worker")
    claim = kinds.RESOURCE_CLAIM.id("default", f"{pod.name}-mnnvl-claim")
    place(toy, pod, {**unscheduled(), "resourceClaimStatuses": [{"name": "mnnvl-claim", "resourceClaimName": claim.name}]})
    toy.write(claim, {"status": None})

    assert why(toy, pod) == ("Unschedulable", f"{MESSAGE}; ResourceClaim {claim.name} is not allocated")
    del toy.objects[kinds.RESOURCE_CLAIM_TEMPLATE.id("default", "demo-0")]
    assert why(toy, pod) == ("ClaimMissing", f"ResourceClaimTemplate demo-0 does not exist; Unschedulable: {MESSAGE}")
    assert why(toy, pod, unlisted=("ResourceClaimTemplate",))[0] == "Unschedulable"
    report(toy, pod, unscheduled())
    text = f"what its template asks for is not made: claim mnnvl-claim; Unschedulable: {MESSAGE}"
    assert why(toy, pod, unlisted=("ResourceClaimTemplate",)) == ("ClaimMissing", text)


def test_a_claim_that_does_not_exist_is_named_where_all_claims_are_known() -> None:
    spec = {"containers": [{"name": "main", "image": "i"}], "resourceClaims": [{"name": "d", "resourceClaimName": "none"}]}
    toy = up(podcliqueset("demo", clique("a", pod_spec=spec)))
    pod = pod_of(toy, "demo-0-a")
    place(toy, pod, unscheduled())

    assert why(toy, pod) == ("ClaimMissing", f"ResourceClaim none does not exist; Unschedulable: {MESSAGE}")
    assert why(toy, pod, unlisted=("ResourceClaim",)) == ("Unschedulable", MESSAGE)


def test_a_pod_whose_gang_lacks_pods_waits_for_them_and_not_for_nodes() -> None:
    toy = up(podcliqueset("demo", clique("a", 2)))
    pod, other = sorted(toy.pods())
    place(toy, pod, unscheduled())
    del toy.objects[other]

    (obstacle,) = of(toy, "Pod", pod.name).obstacles
    assert (obstacle.reason, obstacle.text) == (
        "GangIncomplete",
        f"its gang demo-0 is incomplete: demo-0-a has 1 of 2 pods; Unschedulable: {MESSAGE}",
    )
    assert obstacle.advice == "engine why podgang/demo-0 -n default"


def test_a_summary_says_what_to_do_about_the_first_pod_of_a_clique_that_does_not_run() -> None:
    toy = up(podcliqueset("demo", clique("a", 2)))
    for pod in toy.pods():
        place(toy, pod, unscheduled())
    world = toy.world()
    observed = next(observed for observed in world.roots if observed.root.id == DEMO)
    plan = next(plan for plan in toy.plans_of(world) if plan.root == DEMO)

    waits = advised(waits_of(observed, plan), SetPods.of(observed), toy.now)
    (wait,) = (wait for wait in waits if wait.id.kind == "PodClique")
    assert wait.advice == "free or add nodes with what the message names, create what does not exist, or ask for less"


def scaled() -> Rack:
    """A set with a gang for the minimum, and one beyond it, of which nothing is scheduled."""
    toy = Rack()
    toy.put(podcliqueset("demo", clique("front"), clique("w"), groups=(group("g", "w", replicas=2),)))
    for _ in range(3):
        for plan in toy.plans():
            toy.apply(plan.operations)
    return toy


def test_a_gated_pod_waits_for_the_base_gang_and_says_what_that_lacks() -> None:
    toy = scaled()
    gated, base = pod_of(toy, "demo-0-g-1-w"), kinds.PODGANG.id("default", "demo-0")

    reason, text = why(toy, gated)
    assert reason == "SchedulingGated" and text == (
        "its gang demo-0-g-0 may be scheduled after gang demo-0, which has not its minimum: "
        "demo-0-front has 0 of 1 pods scheduled; demo-0-g-0-w has 0 of 1 pods scheduled"
    )
    below = [obstacle.text for obstacle in of(toy, "PodGang", "demo-0").obstacles if obstacle.reason == "BelowMinimum"]
    assert below == [
        "pod group demo-0-front: 0 of at least 1 pods scheduled, 1 exist",
        "pod group demo-0-g-0-w: 0 of at least 1 pods scheduled, 1 exist",
    ]
    toy.live()
    assert why(toy, gated)[1].endswith("after gang demo-0, which is scheduled: the next pass removes the gate")
    del toy.objects[base]
    assert why(toy, gated)[1].endswith("after gang demo-0, which does not exist yet")


def test_a_gated_pod_beyond_the_minimum_waits_for_that_of_its_own_gang() -> None:
    toy = scaled()
    pod = pod_of(toy, "demo-0-front")
    toy.write(pod, {"spec": {"schedulingGates": [{"name": labels.GATE}]}})

    assert why(toy, pod) == (
        "SchedulingGated",
        "it is beyond the minimum of its gang demo-0, which has not its minimum: "
        "demo-0-front has 0 of 1 pods scheduled; demo-0-g-0-w has 0 of 1 pods scheduled",
    )


def test_a_foreign_gate_is_named() -> None:
    toy = up(podcliqueset())
    pod = pod_of(toy, "demo-0-worker")
    place(toy, pod, unscheduled("", "SchedulingGated"))
    toy.write(pod, {"spec": {"schedulingGates": [{"name": "example.com/quota"}]}})

    assert why(toy, pod) == ("SchedulingGated", "has the scheduling gates example.com/quota, which are not ours")
    whys = [wait.why for plan in toy.plans() for wait in plan.pending]
    assert any(each.endswith(f"{pod.name}: SchedulingGated: others have to remove scheduling gate example.com/quota") for each in whys), (
        whys
    )


def test_a_pod_that_starts_after_others_names_the_cliques_that_are_not_ready() -> None:
    toy = up(podcliqueset("demo", clique("a", 2), clique("b"), cliqueStartupType="CliqueStartupTypeInOrder"))
    late, early = pod_of(toy, "demo-0-b"), pod_of(toy, "demo-0-a")
    waiter = {"name": "grove-initc", "state": {"running": {}}}
    report(toy, late, started(waiting("PodInitializing"), init=(waiter,)))
    report(toy, early, started(waiting("ContainerCreating")))

    assert why(toy, late) == ("StartOrder", "starts after others: demo-0-a has 1 of 2 pods ready")
    assert of(toy, "Pod", late.name).obstacles[0].advice == "engine why pclq/demo-0-a -n default"


@pytest.mark.parametrize(
    ("minutes", "finalizers", "text"),
    [
        (1, ["example.com/x"], "is being deleted"),
        (3, ["example.com/x"], "is being deleted, and its grace period is over: finalizers example.com/x"),
        (3, None, "is being deleted, and its grace period is over: node node has not ended it"),
    ],
)
def test_a_pod_that_stays_although_it_is_deleted_is_explained(minutes: int, finalizers: list[str] | None, text: str) -> None:
    toy = up(podcliqueset())
    pod = pod_of(toy, "demo-0-worker")
    toy.write(pod, {"metadata": {"finalizers": finalizers}})
    toy.delete(pod)
    toy.now += timedelta(minutes=minutes)

    assert why(toy, pod) == ("Terminating", text)


def test_an_update_that_stands_still_names_the_pod_that_it_waits_for_in_every_replica() -> None:
    toy = up(podcliqueset("demo", clique("w", 2), replicas=2))
    edited = {**clique("w", 2), "spec": {**toy.objects[DEMO]["spec"]["template"]["cliques"][0]["spec"], "podSpec": gpus()}}
    toy.write(DEMO, {"spec": {"template": {"cliques": [edited]}}, "metadata": {"generation": 2}})
    for _ in range(3):
        for plan in toy.plans():
            toy.apply(plan.operations)
        toy.live()
        for pod in (pod for pod in toy.pods() if toy.objects[pod]["spec"]["containers"][0]["image"] == "example/model:1"):
            place(toy, pod, unscheduled())
            new = pod

    (first,), (second,), (whole,) = (of(toy, kind, name).obstacles for kind, name in UPDATED)
    assert first == whole and (first.about, first.reason, first.text) == (new, "Unschedulable", MESSAGE)
    assert (second.about, second.reason) == (new, "UpdateHeld")
    assert second.text == f"the update is in replica 0 first, where this pod is not ready: {MESSAGE}"
    assert {wait.id.name for wait in of(toy, "PodCliqueSet", "demo").waits} == {"demo-0-w", "demo-1-w"}


UPDATED = (("PodClique", "demo-0-w"), ("PodClique", "demo-1-w"), ("PodCliqueSet", "demo"))


def test_an_update_that_min_available_stops_says_what_to_do() -> None:
    toy = up(podcliqueset("demo", clique("w", 2)))
    world = toy.world()
    (observed,), (plan,) = world.roots, toy.plans_of(world)
    pods, podclique = SetPods.of(observed), kinds.PODCLIQUE.id("default", "demo-0-w")
    stopped = replace(plan, pending=(Wait(podclique, "1 of 2 pods are outdated", reason=Reason.MIN_AVAILABLE),))

    for id in (podclique, DEMO):
        (obstacle,) = standstill(pods, stopped, id, toy.now).obstacles
        assert (obstacle.about, obstacle.reason) == (podclique, "MinAvailable") and "more replicas than minAvailable" in obstacle.advice
    assert [wait.id for wait in standstill(pods, stopped, kinds.PODGANG.id("default", "demo-0"), toy.now).waits] == [podclique]


def test_pods_that_cannot_be_created_yet_are_what_their_clique_waits_for() -> None:
    toy = Rack()
    toy.driver = False
    toy.put(auto(1, gpu(replicas=2)))
    for _ in range(4):
        for plan in toy.plans():
            toy.apply(plan.operations)
        toy.live()

    for kind, name in (("PodClique", "demo-0-worker"), ("PodGang", "demo-0"), ("PodCliqueSet", "demo")):
        missing = [wait for wait in of(toy, kind, name).waits if wait.id.kind == "Pod"]
        assert len(missing) == 2 and all("the driver has not created ResourceClaimTemplate demo-0" in wait.why for wait in missing)


def test_what_runs_has_nothing_in_its_way() -> None:
    toy = up(auto(2, gpu()))

    assert all(of(toy, id.kind, id.name).runs for id in toy.objects if id.kind.startswith("Pod"))


def test_text_and_names_of_the_cluster_are_quoted_in_commands() -> None:
    toy = up(podcliqueset("demo", clique("a"), clique("b"), cliqueStartupType="CliqueStartupTypeInOrder"))
    late = pod_of(toy, "demo-0-b")
    waiter = {"name": "grove-initc", "state": {"running": {}}}
    containers = [{**container, "args": ["--podcliques=x; reboot:1"]} for container in toy.objects[late]["spec"]["initContainers"]]
    toy.write(late, {"spec": {"initContainers": containers}})
    report(toy, late, started(waiting("PodInitializing"), init=(waiter,)))

    assert of(toy, "Pod", late.name).obstacles[0].advice == "engine why 'pclq/x; reboot' -n default"
