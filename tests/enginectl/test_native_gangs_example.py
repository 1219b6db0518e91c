"""The example of kube-scheduler's gangs, with the command line on a sandbox that serves them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.nodes import node_names
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from resources.base import kinds
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.conftest import cluster

EXAMPLE = ROOT / "examples" / "12-native-gangs"
NODES = ActorOptions(nodes=4, gangs=True, termination=0.0)
CONFIG = ("--config", EXAMPLE / "config" / "operator.yaml")


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """The cluster of `engine sandbox up --gangs --nodes 4`, whose nodes have the label of the example, two in each rack."""
    with cluster(tmp_path, ACTORS, NODES) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        for number, name in enumerate(node_names(NODES)):
            made.wait_for(kinds.NODE, lambda node: "status" in node, name)
            made.change(kinds.NODE, name, {"metadata": {"labels": {"rack": f"r{number // 2}"}}})
        yield made


def nodes(box: Box, name: str) -> set[str]:
    """The nodes of the pods of a set; the empty name stands for none."""
    pods = [pod for pod in box.all(kinds.POD) if pod["metadata"]["labels"]["app.kubernetes.io/part-of"] == name]
    return {pod["spec"].get("nodeName", "") for pod in pods}


def test_the_example_does_what_its_readme_says(box: Box, engine: Engine) -> None:
    assert "PodGroups are served, CompositePodGroups too" in engine("preflight", *CONFIG).out
    shown = engine("diff", "-f", EXAMPLE / "gangs.yaml", *CONFIG)
    assert shown.code == Exit.STUCK and "6 pods need 6 nodes, one for each: 4 of 4 are free" in shown.out

    assert engine("sync", "-f", EXAMPLE / "gangs.yaml", *CONFIG, "--timeout", "20s").code == Exit.STUCK
    whole, waiting = sorted(("red", "blue"), key=lambda name: nodes(box, name) == {""})
    assert len(nodes(box, whole)) == 3 and nodes(box, waiting) == {""}
    status = engine("status", *CONFIG).out
    assert "waits for room: 0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room" in status
    assert f"on the full nodes is gang default/{whole}-0 (3 pods); the scheduler says: " in status
    assert "minCount (3) cannot be satisfied" in status

    assert engine("delete", f"pcs/{whole}", "--yes", *CONFIG).code == Exit.DONE
    assert engine("sync", *CONFIG).code == Exit.DONE
    assert len(nodes(box, waiting)) == 3 and nodes(box, whole) == set()
    assert engine("delete", f"pcs/{waiting}", "--yes", *CONFIG).code == Exit.DONE
    assert box.names(kinds.POD_GROUP) == []


def test_its_gang_in_one_rack_is_there(box: Box, engine: Engine) -> None:
    files = ("-f", EXAMPLE / "racks.yaml", "-f", EXAMPLE / "one-rack.yaml")
    assert engine("sync", *files, *CONFIG, "--timeout", "60s").code == Exit.DONE

    racks = {node["metadata"]["name"]: node["metadata"]["labels"]["rack"] for node in box.all(kinds.NODE)}
    assert len(nodes(box, "near")) == 2 and len({racks[node] for node in nodes(box, "near")}) == 1
