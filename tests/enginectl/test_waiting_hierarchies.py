"""Waiting gangs whose parts must each be in one rack: what `status` and `why` say of the rack that has no room."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from resources.base.kinds import NODE, POD, TOPOLOGY_BINDING
from tests.builders import clique, group, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster
from tests.enginectl.test_room import CAPACITY, GPU
from tests.enginectl.test_waiting_gangs import sync_until_refused
from tests.stories.gang_cluster import IN_ONE_RACK, TOPOLOGY
from tests.stories.native import HALL, RACK

WHOLE = {"containers": [{"name": "main", "image": "x", "resources": {"requests": {GPU: "4"}, "limits": {GPU: "4"}}}]}


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """Two racks of two nodes each, one of which is full in each rack."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=4, nodes_per_rack=2, gangs=True, termination=0.0, capacity=CAPACITY)) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        made.create(TOPOLOGY_BINDING, HALL)
        for node in nodes(made)[::2]:
            fill(made, node)
        yield made


def nodes(box: Box) -> list[str]:
    """The nodes, those of one rack beside each other."""
    bodies = [body["metadata"] for body in box.all(NODE)]
    return [each["name"] for each in sorted(bodies, key=lambda each: (each["labels"][RACK], each["name"]))]


def fill(box: Box, node: str) -> None:
    """Fill a node by a pod that has its name."""
    box.create(
        POD, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": node, "namespace": "default"}, "spec": {"nodeName": node, **WHOLE}}
    )


def remove(box: Box, pod: str) -> None:
    """Remove a pod at once."""
    box.portal.call(partial(box.cluster.client("user").delete, POD, "default", pod, grace=0))


def test_the_rack_that_the_part_of_a_gang_needs_is_what_it_waits_for(box: Box, engine: Engine, tmp_path: Path) -> None:
    (config := tmp_path / "operator.yaml").write_text(TOPOLOGY)
    cliques = (clique("front"), clique("l", pod_spec=WHOLE), clique("w", pod_spec=WHOLE))
    (file := tmp_path / "tree.json").write_text(json.dumps(podcliqueset("tree", *cliques, groups=(group("g", "l", "w") | IN_ONE_RACK,))))

    def is_said(*sentences: str) -> None:
        sync_until_refused(box, engine, file, "--config", config)
        pod = next(name for name in box.names(POD) if name.startswith("tree-0-g-0-l-"))
        for words in (("status", "tree"), ("why", "podgang/tree-0"), ("why", f"pod/{pod}")):
            said = engine(*words, "--config", config).out
            assert all(sentence in said for sentence in sentences) and "has not placed" not in said, said

    no_rack = f"no value of node label {RACK} has room for all of them: 2 pods need 2 nodes, one for each: 1 of 2 is free"
    is_said("0 of its minimum of 3 pods are on nodes, 2 of the other 3 have room", no_rack)

    first = nodes(box)[0]
    remove(box, first)
    assert engine("sync", "--config", config).code == Exit.DONE
    leader = next(body for body in box.all(POD) if body["metadata"]["name"].startswith("tree-0-g-0-l-"))
    remove(box, leader["metadata"]["name"])
    fill(box, leader["spec"]["nodeName"])
    rack = next(body["metadata"]["labels"][RACK] for body in box.all(NODE) if body["metadata"]["name"] == first)
    is_said("the other one has no room", f"others of them are at {RACK}={rack}: 1 pod needs a node: 0 of 2 are free")
