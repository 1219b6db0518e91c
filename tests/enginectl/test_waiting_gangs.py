"""Waiting gangs: what `status` and `why` say of a gang that the scheduler found no room for."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from resources.base.kinds import NODE, POD
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster
from tests.enginectl.test_room import CAPACITY, GPU


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster of four nodes with four GPUs each."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=4, termination=0.0, capacity=CAPACITY)) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


def gang(folder: Path, name: str, pods: int, **spec: Any) -> Path:
    """A set with one gang of pods that take a node each, all of which it needs."""
    resources = {"requests": {GPU: "4"}, "limits": {GPU: "4"}}
    pod_spec = {"containers": [{"name": "main", "image": "nginx:1.27", "resources": resources}], **spec}
    body = podcliqueset(name, clique("a", pods, minAvailable=pods, pod_spec=pod_spec))
    body["metadata"]["annotations"] = {"grove.io/auto-mnnvl": "disabled"}
    file = folder / f"{name}.json"
    file.write_text(json.dumps(body))
    return file


@pytest.fixture
def waiting(box: Box, engine: Engine, tmp_path: Path) -> None:
    """`first` has three of the four nodes, `second` needs three."""
    assert engine("sync", "-f", gang(tmp_path, "first", 3), "--timeout", "60s").code == Exit.DONE
    engine("sync", "-f", gang(tmp_path, "second", 3), "--timeout", "20s")


def test_status_says_how_much_of_a_waiting_gang_has_room_and_which_gang_has_the_rest(waiting: None, engine: Engine) -> None:
    shown = engine("status", "second")

    assert "waits for room: 0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room" in shown.out
    assert "3 pods need 3 nodes, one for each: 1 of 4 are free" in shown.out
    assert "on the full nodes are gangs default/first-0 (3 pods)" in shown.out
    assert "the scheduler says: 0/4 nodes are available" in shown.out
    assert "do: free or add nodes, or ask for less" in shown.out


def test_why_says_the_same_of_the_gang_its_pods_and_its_set(waiting: None, box: Box, engine: Engine) -> None:
    pod = next(pod for pod in box.names(POD) if pod.startswith("second-0-a-"))
    for word in ("podgang/second-0", f"pod/{pod}"):
        shown = engine("why", word)

        assert "PodGang second-0: 0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room" in shown.out
        assert "gangs default/first-0 (3 pods)" in shown.out
    assert "waits for room: 0 of its minimum of 3" in engine("why", "pcs/second").out


def test_a_gang_that_runs_waits_for_nothing_and_nodes_are_not_read(waiting: None, box: Box, engine: Engine) -> None:
    for words in (("status", "first"), ("why", "podgang/first-0")):
        assert "its minimum" not in engine(*words).out


def test_json_has_what_a_gang_waits_for(waiting: None, engine: Engine) -> None:
    (workload,) = engine("status", "second", "-o", "json").document["workloads"]

    (shown,) = workload["gangs"]
    assert (
        shown["waiting"].startswith("0 of its minimum of 3 pods are on nodes") and shown["advice"] == "free or add nodes, or ask for less"
    )


def test_a_node_that_suits_no_pod_is_said_so(box: Box, engine: Engine, tmp_path: Path) -> None:
    engine("sync", "-f", gang(tmp_path, "zoned", 2, nodeSelector={"zone": "x"}), "--assume-nodes", "--timeout", "20s")

    shown = engine("status", "zoned")

    assert "0 of its minimum of 2 pods are on nodes, 0 of the other 2 have room; no node has the label zone=x" in shown.out


def test_cordoned_nodes_are_no_room(waiting: None, box: Box, engine: Engine) -> None:
    for node in box.names(NODE):
        box.change(NODE, node, {"spec": {"unschedulable": True}})

    assert "0 of the other 3 have room; none of 4 nodes suits: 4 cordoned" in engine("status", "second").out


def test_without_the_right_to_list_nodes_the_scheduler_is_quoted(waiting: None, box: Box, engine: Engine) -> None:
    box.deny(verb="list", resource="nodes")

    shown = engine("status", "second")

    assert shown.code == Exit.DONE
    assert "0 of its minimum of 3 pods are on nodes; the scheduler says: 0/4 nodes are available" in shown.out
    assert "(room was not checked: you may not list nodes and the pods of all namespaces)" in shown.out
