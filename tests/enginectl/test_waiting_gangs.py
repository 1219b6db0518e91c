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
from tests.enginectl.test_requirements import configured
from tests.enginectl.test_room import CAPACITY, GPU

SHORT = "3 pods need 3 nodes, one for each: 1 of 4 is free, and a node takes one pod in a ComputeDomain"


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster of four nodes with four GPUs each."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=4, termination=0.0, capacity=CAPACITY)) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


def gang(folder: Path, name: str, pods: int, gpus: int = 4, mnnvl: str = "disabled", **spec: Any) -> Path:
    """A set with one gang of pods that take a node each, all of which it needs."""
    resources = {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    pod_spec = {"containers": [{"name": "main", "image": "nginx:1.27", "resources": resources}], **spec}
    body = podcliqueset(name, clique("a", pods, minAvailable=pods, pod_spec=pod_spec))
    body["metadata"]["annotations"] = {"grove.io/auto-mnnvl": mnnvl}
    file = folder / f"{name}.json"
    file.write_text(json.dumps(body))
    return file


def sync_until_refused(box: Box, engine: Engine, file: Path, *words: str | Path) -> None:
    """Sync a set as often as it takes until all its pods exist and the scheduler has found no room for those without a node."""
    cliques = json.loads(file.read_text())["spec"]["template"]["cliques"]
    for _ in range(20):
        engine("sync", "-f", file, "--timeout", "20s", "--assume-nodes", *words)
        pods = [body for body in box.all(POD) if body["metadata"]["name"].startswith(f"{file.stem}-")]
        lacking = [body.get("status") or {} for body in pods if not body["spec"].get("nodeName")]
        refused = [any(each.get("reason") == "Unschedulable" for each in status.get("conditions") or ()) for status in lacking]
        if len(pods) == sum(clique["spec"]["replicas"] for clique in cliques) and lacking and all(refused):
            return
    raise AssertionError(f"the pods of {file.stem} are not refused")


@pytest.fixture
def waiting(box: Box, engine: Engine, tmp_path: Path) -> None:
    """`first` has three of the four nodes, `second` needs three."""
    assert engine("sync", "-f", gang(tmp_path, "first", 3)).code == Exit.DONE
    sync_until_refused(box, engine, gang(tmp_path, "second", 3))


def test_status_says_how_much_of_a_waiting_gang_has_room_and_which_gang_has_the_rest(waiting: None, engine: Engine) -> None:
    shown = engine("status", "second")

    assert "waits for room: 0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room" in shown.out
    assert "3 pods need 3 nodes, one for each: 1 of 4 is free" in shown.out
    assert "on the full nodes is gang default/first-0 (3 pods)" in shown.out
    assert "the scheduler says: 0/4 nodes are available" in shown.out
    assert "do: free or add nodes, or ask for less" in shown.out


def test_why_says_the_same_of_the_gang_its_pods_and_its_set(waiting: None, box: Box, engine: Engine) -> None:
    pod = next(pod for pod in box.names(POD) if pod.startswith("second-0-a-"))
    for word in ("podgang/second-0", f"pod/{pod}"):
        shown = engine("why", word)

        assert "PodGang second-0: 0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room" in shown.out
        assert "gang default/first-0 (3 pods)" in shown.out
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
    sync_until_refused(box, engine, gang(tmp_path, "zoned", 2, nodeSelector={"zone": "x"}))

    shown = engine("status", "zoned")

    assert "0 of its minimum of 2 pods are on nodes, 0 of the other 2 have room; no node has the label zone=x" in shown.out


def test_cordoned_nodes_are_no_room(waiting: None, box: Box, engine: Engine) -> None:
    for node in box.names(NODE):
        box.change(NODE, node, {"spec": {"unschedulable": True}})

    assert "0 of the other 3 have room; none of 4 nodes suits: 4 cordoned" in engine("status", "second").out


def test_tainted_nodes_with_room_are_named(waiting: None, box: Box, engine: Engine) -> None:
    taken = {pod["spec"].get("nodeName") for pod in box.all(POD)}
    (free,) = set(box.names(NODE)) - taken
    box.change(NODE, free, {"spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}})

    shown = engine("status", "second").out

    assert "0 of 3 are free" in shown
    assert "1 more with room is closed to them: 1 with taints that are not tolerated (team=a:NoSchedule)" in shown
    assert "do: untaint or uncordon nodes, or free or add nodes, or ask for less" in shown


def test_without_the_right_to_list_nodes_the_scheduler_is_quoted(waiting: None, box: Box, engine: Engine) -> None:
    box.deny(verb="list", resource="nodes")

    shown = engine("status", "second")

    assert shown.code == Exit.DONE
    assert "0 of its minimum of 3 pods are on nodes; the scheduler says: 0/4 nodes are available" in shown.out
    assert "(room was not checked: you may not list nodes and the pods of all namespaces)" in shown.out


@pytest.fixture
def domains(box: Box, engine: Engine, tmp_path: Path) -> Path:
    """`first` has a pod with one of four GPUs on three of the four nodes, in a domain; `second` needs three nodes for the same.

    Returns the configuration that both need.
    """
    config = configured(tmp_path, auto=True)
    file = gang(tmp_path, "first", 3, gpus=1, mnnvl="enabled")
    assert engine("sync", "-f", file, "--config", config).code == Exit.DONE
    sync_until_refused(box, engine, gang(tmp_path, "second", 3, gpus=1, mnnvl="enabled"), "--config", config)
    return config


def test_a_node_with_free_gpus_has_no_room_for_a_second_pod_of_a_domain(domains: Path, box: Box, engine: Engine, tmp_path: Path) -> None:
    room = "0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room"
    pod = next(pod for pod in box.names(POD) if pod.startswith("second-0-a-"))
    for words in (("status", "second"), ("why", "podgang/second-0"), ("why", f"pod/{pod}"), ("top",)):
        shown = engine(*words, "--config", domains)

        assert room in shown.out and f"{SHORT}; on the full nodes is gang default/first-0 (3 pods)" in shown.out, words
        assert "free or add nodes, or ask for less" in shown.out

    preview = engine("diff", "-f", gang(tmp_path, "third", 3, gpus=1, mnnvl="enabled"), "--config", domains).out
    assert "3 pods need 3 nodes, one for each: 1 of 4 is free (pods of namespace default have the rest), and a node takes" in preview
    assert "one pod in a ComputeDomain; free or add nodes, or ask for less" in preview


def test_a_gang_without_a_domain_has_room_on_nodes_whose_place_is_taken(domains: Path, box: Box, engine: Engine, tmp_path: Path) -> None:
    sync_until_refused(box, engine, gang(tmp_path, "plain", 5, gpus=3))

    assert "4 of the other 5 have room; 5 pods need 5 nodes, one for each: 4 of 4 are free (pods of" in engine("status", "plain").out


@pytest.mark.parametrize("denied", ["resourceslices", "resourceclaims"])
def test_what_may_not_be_listed_of_domains_is_said(denied: str, domains: Path, box: Box, engine: Engine, tmp_path: Path) -> None:
    box.deny(verb="list", resource=denied)

    shown = engine("why", "podgang/second-0", "--config", domains)

    assert "3 of the other 3 have room" in shown.out
    unread = f"not taken into account, for want of the right to list them: {denied}"
    assert f"({unread})" in shown.out
    if denied == "resourceslices":
        preview = engine("diff", "-f", gang(tmp_path, "third", 3, gpus=1, mnnvl="enabled"), "--config", domains)
        assert "blocked" not in preview.out and unread in preview.err
