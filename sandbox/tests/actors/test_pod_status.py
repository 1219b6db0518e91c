"""Pod status: what a kubelet makes of a pod at given times."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from grove_sandbox.actors.pod_status import NodeState, desired_status, differs, stopped_status
from grove_sandbox.actors.script import script_of
from sandbox.tests.actors.manifests import pod

BORN = datetime(2026, 1, 1, tzinfo=UTC)


def looked_at(body: dict[str, Any], second: float, *, waiting: bool = False) -> tuple[dict[str, Any], float | None]:
    """The pod as it is after a look at that second, and at which second to look again."""
    node = NodeState(BORN + timedelta(seconds=second), "10.0.0.1", "172.16.0.1", lambda container: not waiting)
    verdict = desired_status(body, script_of(body), node)
    until = (verdict.until - BORN).total_seconds() if verdict.until else None
    return {**body, "status": dict(verdict.value)}, until


def after(body: dict[str, Any], *seconds: float) -> dict[str, Any]:
    """The pod after looks at those seconds."""
    for second in seconds:
        body, _ = looked_at(body, second)
    return body


def condition(body: Mapping[str, Any], type: str) -> tuple[str, str | None, str]:
    found = next(one for one in body["status"]["conditions"] if one["type"] == type)
    return found["status"], found["reason"], found["lastTransitionTime"]


def main(body: Mapping[str, Any]) -> dict[str, Any]:
    return dict(body["status"]["containerStatuses"][0])


def failing(text: str, **spec: Any) -> dict[str, Any]:
    return pod("p", annotations={"sandbox.grove.io/fail": text}, **spec)


def test_a_pod_without_annotations_is_ready_at_once_and_its_status_stays() -> None:
    body, until = looked_at(pod("p"), 0)

    assert body["status"]["phase"] == "Running"
    assert condition(body, "Ready") == ("True", None, "2026-01-01T00:00:00Z")
    assert body["status"]["podIP"] == "10.0.0.1"
    assert until is None


def test_a_status_once_written_is_not_written_again() -> None:
    body = after(pod("p"), 0)

    again, _ = looked_at(body, 30)

    assert not differs(again["status"], body["status"])


def test_readiness_comes_when_the_annotation_says() -> None:
    body, until = looked_at(pod("p", annotations={"sandbox.grove.io/ready-after": "5s"}), 0)

    assert (condition(body, "Ready")[:2], until) == (("False", "ContainersNotReady"), 5)
    assert condition(after(body, 4), "Ready")[0] == "False"
    assert condition(after(body, 5), "Ready") == ("True", None, "2026-01-01T00:00:05Z")


def test_a_slow_start_is_pending_until_its_containers_are_created() -> None:
    body, until = looked_at(pod("p", annotations={"sandbox.grove.io/start-after": "3s"}), 0)

    assert (body["status"]["phase"], until) == ("Pending", 3)
    assert main(body)["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert after(body, 3)["status"]["phase"] == "Running"


def test_init_containers_come_one_after_the_other() -> None:
    annotations = {"sandbox.grove.io/init-after": "2s"}
    body, until = looked_at(pod("p", annotations=annotations, initContainers=[{"name": "one"}, {"name": "two"}]), 0)

    assert [list(one["state"]) for one in body["status"]["initContainerStatuses"]] == [["running"], ["waiting"]]
    assert condition(body, "Initialized")[:2] == ("False", "ContainersNotInitialized")
    assert main(body)["state"]["waiting"]["reason"] == "PodInitializing"
    assert until == 2
    second, until = looked_at(body, 2)
    assert [list(one["state"]) for one in second["status"]["initContainerStatuses"]] == [["terminated"], ["running"]]
    assert until == 4
    assert after(second, 4)["status"]["phase"] == "Running"


def test_a_startup_waiter_runs_until_its_condition_is_met() -> None:
    waiting, until = looked_at(pod("p", after=["--podcliques=leader:1"]), 0, waiting=True)

    assert (waiting["status"]["phase"], until) == ("Pending", None)
    assert list(waiting["status"]["initContainerStatuses"][0]["state"]) == ["running"]
    assert condition(after(waiting, 7), "Initialized") == ("True", None, "2026-01-01T00:00:07Z")


def test_a_sidecar_among_the_init_containers_runs_on() -> None:
    body = after(pod("p", initContainers=[{"name": "proxy", "restartPolicy": "Always"}]), 0)

    assert body["status"]["phase"] == "Running"
    assert list(body["status"]["initContainerStatuses"][0]["state"]) == ["running"]


def test_a_crash_restarts_at_once_and_then_with_back_off() -> None:
    body, until = looked_at(failing("crash@5s"), 0)
    assert (main(body)["restartCount"], until) == (0, 5)

    body, until = looked_at(body, 5)
    assert (main(body)["restartCount"], until) == (1, 10)
    assert main(body)["lastState"]["terminated"]["exitCode"] == 1

    body, until = looked_at(body, 10)
    assert main(body)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert (condition(body, "Ready")[0], body["status"]["phase"], until) == ("False", "Running", 20)

    body, until = looked_at(body, 20)
    assert (main(body)["restartCount"], list(main(body)["state"]), until) == (2, ["running"], 25)
    body, until = looked_at(body, 25)
    assert until == 45


def test_a_crash_loop_ends_when_the_annotation_is_removed() -> None:
    body = after(failing("crash@5s"), 0, 5, 10)
    mended = {**body, "metadata": {**body["metadata"], "annotations": {}}}

    assert condition(after(mended, 20), "Ready")[0] == "True"


def test_an_exit_ends_a_pod_that_is_not_restarted() -> None:
    done = after(failing("exit:0@5s", restartPolicy="OnFailure"), 0, 5)
    broken = after(failing("exit:3@5s", restartPolicy="Never"), 0, 5)

    assert (done["status"]["phase"], condition(done, "Ready")[1]) == ("Succeeded", "PodCompleted")
    assert (broken["status"]["phase"], condition(broken, "Ready")[1]) == ("Failed", "PodFailed")
    assert main(broken)["state"]["terminated"]["exitCode"] == 3


def test_an_evicted_pod_has_failed_for_good() -> None:
    body, until = looked_at(failing("evict@10s"), 0)
    assert until == 10
    body, until = looked_at(body, 10)

    assert (body["status"]["phase"], body["status"]["reason"], until) == ("Failed", "Evicted", None)
    assert condition(body, "DisruptionTarget")[0] == "True"
    assert after(body, 500)["status"] == body["status"]


def test_a_pod_can_lose_its_readiness_and_get_it_back() -> None:
    body = after(failing("unready@10s"), 0)
    assert condition(body, "Ready")[0] == "True"
    lost = after(body, 10)
    assert condition(lost, "Ready") == ("False", "ContainersNotReady", "2026-01-01T00:00:10Z")

    mended = {**lost, "metadata": {**lost["metadata"], "annotations": {}}}

    assert condition(after(mended, 12), "Ready") == ("True", None, "2026-01-01T00:00:12Z")


def test_an_image_that_cannot_be_pulled_keeps_the_pod_pending() -> None:
    body, until = looked_at(failing("image-pull"), 0)

    assert (body["status"]["phase"], until) == ("Pending", None)
    assert main(body)["state"]["waiting"]["reason"] == "ImagePullBackOff"


def test_an_annotation_that_cannot_be_parsed_is_reported_in_the_status() -> None:
    state = main(after(failing("explode"), 0))["state"]["waiting"]

    assert state["reason"] == "CreateContainerConfigError"
    assert "sandbox.grove.io/fail" in state["message"]


def test_a_readiness_gate_holds_readiness_back_until_somebody_opens_it() -> None:
    body = after(pod("p", readinessGates=[{"conditionType": "example.com/warm"}]), 0)
    assert condition(body, "ContainersReady")[0] == "True"
    assert condition(body, "Ready")[:2] == ("False", "ReadinessGatesNotReady")

    opened = {"type": "example.com/warm", "status": "True"}
    body["status"]["conditions"] = [*body["status"]["conditions"], opened]

    assert condition(after(body, 3), "Ready")[0] == "True"


def test_a_deleted_pod_ends_with_stopped_containers() -> None:
    body = after(pod("p"), 0)
    last = stopped_status(body, BORN + timedelta(seconds=9))

    assert last["phase"] == "Succeeded"
    assert last["containerStatuses"][0]["state"]["terminated"]["finishedAt"] == "2026-01-01T00:00:09Z"
    assert not last["containerStatuses"][0]["ready"]
