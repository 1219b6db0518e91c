"""`engine why` for what does not run: pods, gangs and sets, in the words of a user; and it agrees with `engine status`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.ids import Kind
from enginectl.base.exit_codes import Exit
from grove_sandbox.registry import ACTORS
from resources.base import kinds
from tests.enginectl.box import Box
from tests.enginectl.calling import CommandResult, Engine
from tests.enginectl.conftest import cluster

SET = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: demo, namespace: default}
spec:
  replicas: 1
  template:
    cliqueStartupType: CliqueStartupTypeInOrder
    cliques:
    - name: front
      spec: {roleName: front, replicas: 2, podSpec: {containers: [{name: f, image: "x:1"}]}}
    - name: work
      spec: {roleName: work, replicas: 1, podSpec: {containers: [{name: w, image: "x:1"}]}}
    podCliqueScalingGroups:
    - {name: g, cliqueNames: [work], replicas: 2, minAvailable: 1}
"""
GRAPH = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: llm, namespace: default}
spec:
  services:
    Frontend:
      componentType: frontend
      extraPodSpec: {mainContainer: {image: "x:1", command: [python3], args: [-m, dynamo.frontend]}}
"""
MESSAGE = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. \x1b[31mno\u202e"
SAFE = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. \\x1b[31mno\\u202e"
"""The message as it is shown."""


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster without scheduler and kubelet."""
    with cluster(tmp_path, [actor for actor in ACTORS if actor not in ("scheduler", "kubelet")]) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


@pytest.fixture
def idle(empty: Box, engine: Engine, tmp_path: Path) -> Box:
    """The cluster with a set whose pods have been created."""
    applied(empty, engine, tmp_path, SET, pods=4)
    return empty


def applied(box: Box, engine: Engine, folder: Path, manifest: str, pods: int) -> None:
    """Passes are made until so many pods exist."""
    file = folder / "manifest.yaml"
    file.write_text(manifest)
    for _ in range(10):
        if len(box.names(kinds.POD)) == pods:
            return
        assert engine("sync", "-f", file, "--no-wait").code in (Exit.DONE, Exit.FAILED)
    raise AssertionError(f"{box.names(kinds.POD)} after 10 passes")


def report(box: Box, kind: Kind, name: str, status: dict[str, Any]) -> None:
    """The scheduler or the kubelet writes the status of an object."""
    client = box.cluster.client("user")
    box.portal.call(lambda: client.patch(kind, "default", name, {"status": status}, subresource="status"))


def named(box: Box, prefix: str) -> list[str]:
    """The pods whose names begin like that."""
    return [name for name in box.names(kinds.POD) if name.startswith(prefix)]


def condition(type: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    """A condition of a pod."""
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}


def reasons(answer: CommandResult) -> set[tuple[str, str]]:
    """The pods, or other objects, that do not run, each with the reason."""
    return {(obstacle["object"]["name"], obstacle["reason"]) for obstacle in answer.document["obstacles"]}


def test_a_set_that_cannot_be_scheduled_is_explained_from_every_side(idle: Box, engine: Engine) -> None:
    fronts, (gated,) = named(idle, "demo-0-front-"), named(idle, "demo-0-g-1-work-")
    for front in fronts:
        report(idle, kinds.POD, front, {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", MESSAGE)]})

    pod, gate = engine("why", f"pod/{fronts[0]}"), engine("why", f"pod/{gated}")
    assert pod.code == Exit.DONE and "in sync" not in pod.out and "\x1b" not in pod.out and "\u202e" not in pod.out
    assert (
        "  it does not run (Unschedulable): 0/3 nodes are available: 3 Insufficient nvidia.com/gpu. \\x1b[31mno\\u202e, since " in pod.out
    )
    assert "    do: free or add nodes with what the message names, create what does not exist, or ask for less" in pod.out.splitlines()
    assert (
        "  it does not run (SchedulingGated): its gang demo-0-g-0 may be scheduled after gang demo-0, which has not its minimum: "
        in gate.out
    )
    assert "    do: engine why podgang/demo-0 -n default" in gate.out.splitlines()

    gang, whole = engine("why", "podgang/demo-0"), engine("why", "pcs/demo")
    assert "  it does not run (BelowMinimum): pod group demo-0-front: 0 of at least 2 pods scheduled, 2 exist" in gang.out
    assert f"Pod/default/{fronts[0]} does not run (Unschedulable): " in gang.out
    assert "  state: " in whole.out and "  in sync" not in whole.out and "SchedulingGated" in whole.out
    document = engine("why", "pcsg/demo-0-g", "-o", "json")
    assert (gated, "SchedulingGated") in reasons(document) and document.document["version"] == 2


def test_it_agrees_with_status(idle: Box, engine: Engine) -> None:
    (workload,) = engine("status", "demo", "-o", "json").document["workloads"]
    why = engine("why", "pcs/demo", "-o", "json").document

    assert why["workload"] == workload and workload["state"] not in ("settled", "completed")
    assert [wait for wait in workload["waits"] if wait["object"]["kind"] != "PodCliqueSet"] == why["waits"]
    waiting = {wait["object"]["name"] for wait in why["waits"] if wait["object"]["kind"] == "PodClique"}
    assert waiting == {"demo-0-front", "demo-0-g-0-work", "demo-0-g-1-work"}
    assert {obstacle["object"]["name"] for obstacle in why["obstacles"]} == set(idle.names(kinds.POD))
    for name in waiting:
        clique = engine("why", f"pclq/{name}", "-o", "json").document
        assert clique["pending"] and clique["obstacles"]


def test_a_pod_that_waits_for_others_and_one_that_crashes_are_explained(idle: Box, engine: Engine) -> None:
    front, (work,) = named(idle, "demo-0-front-")[0], named(idle, "demo-0-g-0-work-")
    scheduled = [condition("PodScheduled", "True"), condition("Ready", "False", "ContainersNotReady")]
    waiter = {"name": "grove-initc", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": {"running": {}}}
    report(idle, kinds.POD, work, {"phase": "Pending", "conditions": scheduled, "initContainerStatuses": [waiter]})
    crash = {"terminated": {"exitCode": 1, "reason": "Error"}}
    container = {"name": "f", "image": "x:1", "imageID": "", "ready": False, "restartCount": 3, "lastState": crash}
    state = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    report(idle, kinds.POD, front, {"phase": "Running", "conditions": scheduled, "containerStatuses": [container | state]})

    late, crashed = engine("why", f"po/{work}"), engine("why", f"po/{front}")
    assert "  it does not run (StartOrder): starts after others: demo-0-front has 0 of 2 pods ready, since " in late.out
    assert "    do: engine why pclq/demo-0-front -n default" in late.out.splitlines()
    assert "  it does not run (Crashing): container f has ended with exit code 1 (Error), 3 restarts, since " in crashed.out
    assert f"    do: kubectl logs -n default {front} -c f --previous" in crashed.out.splitlines()


def test_kinds_that_are_not_ours_are_called_so(idle: Box, engine: Engine) -> None:
    answer = engine("why", "namespace/default")

    assert (answer.code, "  not managed: the engine has nothing to do with Namespace objects" in answer.out.splitlines()) == (
        Exit.DONE,
        True,
    )


def test_a_graph_is_explained_by_the_pods_of_its_services(empty: Box, engine: Engine, tmp_path: Path) -> None:
    applied(empty, engine, tmp_path, GRAPH, pods=1)
    (pod,) = empty.names(kinds.POD)
    report(empty, kinds.POD, pod, {"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", MESSAGE)]})
    answer, document = engine("why", "dgd/llm"), engine("why", "dgd/llm", "-o", "json")

    assert f"  Pod/default/{pod} does not run (Unschedulable): {SAFE}, since " in answer.out and "  in sync" not in answer.out
    assert reasons(document) == {(pod, "Unschedulable")} and document.document["graph"]["state"] != "settled"


def test_an_object_that_does_not_exist_yet_is_shown_with_what_is_due(idle: Box, engine: Engine) -> None:
    idle.scale("demo", 2)
    answer = engine("why", "pclq/demo-0-front")
    unborn = engine("why", "pclq/demo-1-front")

    assert "  pending: 0 of 2 pods ready" in answer.out
    assert "  does not exist" in unborn.out.splitlines() and "  due: create, ScaledOut: clique front of replica 1" in unborn.out


def test_a_set_that_is_not_enlarged_because_of_a_limit_is_blocked_in_status_and_why_as_in_diff(
    box: Box, engine: Engine, tmp_path: Path
) -> None:
    (file := tmp_path / "set.yaml").write_text(SET)
    (config := tmp_path / "config.yaml").write_text(
        "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\nlimits: {set: {replicas: 2}}\n"
    )
    assert engine("sync", "-f", file, "--config", config).code == Exit.DONE
    box.change(kinds.PODCLIQUESET, "demo", {"spec": {"replicas": 7}})
    assert engine("sync", "--config", config, "--timeout", "60s").code == Exit.STUCK

    said = [engine(*words, "--config", config).out for words in (("diff",), ("status",), ("why", "pcs/demo"))]

    assert all("blocked" in text and "spec.replicas is 7, of which 2 are created" in text for text in said)
