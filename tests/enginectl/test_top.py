"""`engine top`: nodes, GPUs and the workloads on them, and the notes about gangs that wait and about missing rights."""

import io
import sys
from pathlib import Path

import pytest

from engine.errors import Unreachable
from engine.report.printable import Line
from enginectl.actions import top as action
from enginectl.base.exit_codes import Exit
from enginectl.output import watching
from enginectl.output.node_table import Top
from resources.base.kinds import NODE, TOPOLOGY_BINDING
from resources.reports.node_table import NodeTable
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.test_waiting_gangs import box, domains, waiting

__all__ = ["box", "domains", "waiting"]
LABELS = {"example.com/rack": "r1", "nvidia.com/gpu.clique": "c.1"}
ON_NODE = "default/first-0 (a 1)"


def test_it_shows_each_node_with_its_gpus_and_who_sits_on_it_and_the_gangs_that_wait(waiting: None, engine: Engine) -> None:
    shown = engine("top")

    assert shown.code == Exit.DONE
    assert shown.out.splitlines()[0].split() == ["NODE", "GPUS", "FREE", "STATE", "WORKLOADS"]
    assert [line for line in shown.out.splitlines() if ON_NODE in line and "4 of 4" in line and "ready" in line] != []
    assert "total  1 NVLink clique, 4 nodes, 12 of 16 GPUs, 4 free" in shown.out
    assert "waiting  default/PodGang second-0: 0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room" in shown.out
    assert "on the full nodes is gang default/first-0 (3 pods)" in shown.out and "free or add nodes, or ask for less" in shown.out


def test_racks_are_those_of_the_topology_binding(waiting: None, box: Box, engine: Engine) -> None:
    nodes = sorted(box.names(NODE))
    for node in nodes[:2]:
        box.change(NODE, node, {"metadata": {"labels": LABELS}})
    levels = [{"domain": "rack", "key": "example.com/rack"}, {"domain": "host", "key": "kubernetes.io/hostname"}]
    binding = {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "metadata": {"name": "t"}, "spec": {"levels": levels}}
    box.create(TOPOLOGY_BINDING, binding)

    shown = engine("top").out

    assert "rack r1, NVLink clique c.1: " in shown
    assert "total  1 rack, 2 NVLink cliques, 4 nodes" in shown
    assert "rack r1, NVLink clique c.1: " in engine("top", "-n", "default").out

    box.deny(verb="list", resource="clustertopologybindings")
    unknown = engine("top")
    assert (unknown.code, "rack r1" in unknown.out) == (Exit.DONE, False)
    assert "note: racks are not known: " in unknown.errors and "ask for the right to list ClusterTopologyBindings" in unknown.errors


def test_the_domain_whose_pod_a_node_runs_is_shown_beside_its_free_gpus(domains: Path, box: Box, engine: Engine) -> None:
    shown = engine("top")

    assert shown.out.splitlines()[0].split() == ["NODE", "GPUS", "FREE", "STATE", "DOMAIN", "WORKLOADS"]
    cells = [line.split()[1:] for line in shown.out.splitlines() if line.strip().startswith("node-")]
    taken = ["1", "of", "4", "3", "ready", "default/first-0", "default/first-0", "(a", "1)"]
    assert sorted(cells) == [["0", "of", "4", "4", "ready", "-"], taken, taken, taken]
    nodes = engine("top", "-o", "json").document["nodes"]
    assert sorted(str(node["domain"]) for node in nodes) == ["None", *["default/first-0"] * 3]

    box.deny(verb="list", resource="resourceclaims")
    unknown = engine("top")
    assert (unknown.code, "DOMAIN" in unknown.out) == (Exit.DONE, False)
    assert "note: which nodes run a pod of a domain is not known: you may not list resourceclaims" in unknown.errors


def test_a_cordoned_node_has_no_room(waiting: None, box: Box, engine: Engine) -> None:
    for node in box.names(NODE):
        box.change(NODE, node, {"spec": {"unschedulable": True}})

    shown = engine("top")

    assert "12 of 16 GPUs, 0 free" in shown.out and "cordoned" in shown.out


def test_sets_and_namespaces_choose_the_nodes(waiting: None, engine: Engine) -> None:
    assert "total  1 NVLink clique, 3 nodes, 12 of 12 GPUs, 0 free, 1 other node" in engine("top", "first").out
    assert "waiting" not in engine("top", "first").out and "waiting" in engine("top", "second").out
    assert "no node has GPUs or pods of a set; 4 other nodes" in engine("top", "-n", "another").out
    unknown = engine("top", "third", "\x1b[31m")
    assert (unknown.code, unknown.errors) == (Exit.FAILED, "engine: there is no set called third, \\x1b[31m\n")


def test_the_document_is_complete_and_has_a_version(waiting: None, engine: Engine) -> None:
    document = engine("top", "-o", "json").document

    assert (document["version"], len(document["nodes"]), document["otherNodes"], document["island"]) == (1, 4, 0, "NVLink clique")
    assert sorted(node["gpus"]["free"] for node in document["nodes"]) == [0, 0, 0, 4]
    (pods,) = next(node["pods"] for node in document["nodes"] if node["pods"])
    assert pods == {"namespace": "default", "workload": "first", "replica": "0", "clique": "a", "pods": 1, "gpus": 4}
    (gang_,) = document["waiting"]
    assert (gang_["namespace"], gang_["gang"], gang_["advice"]) == ("default", "second-0", "free or add nodes, or ask for less")


def test_without_the_right_to_list_nodes_it_shows_where_the_pods_are(waiting: None, box: Box, engine: Engine) -> None:
    box.deny(verb="list", resource="nodes")

    shown = engine("top")

    assert shown.code == Exit.DONE
    assert "total  3 nodes, 12 GPUs requested by sets" in shown.out and ON_NODE in shown.out and "4 of ?" in shown.out
    assert "note: racks, GPUs and free room are not known: you may not list nodes; ask for the right to list nodes" in shown.errors
    (node, *_) = engine("top", "-o", "json").document["nodes"]
    assert (node["gpus"], node["state"], node["rack"]) == ({"allocatable": None, "requested": 4, "free": None}, "unknown", None)


@pytest.mark.parametrize(("resource", "code"), [("secrets", Exit.DONE), ("podcliquesets", Exit.INCOMPLETE)])
def test_what_it_does_not_show_need_not_be_listed(resource: str, code: Exit, waiting: None, box: Box, engine: Engine) -> None:
    box.deny(verb="list", resource=resource)

    assert engine("top").code == code


def test_who_may_list_in_one_namespace_is_told_to_name_it(waiting: None, box: Box, engine: Engine) -> None:
    box.deny(verb="list", resource="podcliquesets", namespace="")

    everywhere = engine("top")

    assert everywhere.code == Exit.INCOMPLETE and "no node has GPUs" not in everywhere.out
    assert everywhere.errors.count("note: engine top -n NAMESPACE shows the sets of one namespace") == 1
    assert engine("top", "-n", "default").code == Exit.DONE


def test_nothing_is_shown_twice_while_nothing_changes_and_an_outage_ends_nothing(
    waiting: None, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Enough(Exception):
        pass

    shown: list[int] = []

    async def look(*_: object) -> tuple[Top, list[str]]:
        shown.append(len(shown))
        if len(shown) == 5:
            raise Unreachable("no answer")
        if len(shown) > 6:
            raise Enough
        return Top(NodeTable((), "", others=min(2, len(shown) // 2))), []

    monkeypatch.setattr(action, "look", look)
    answer = engine("top", "--watch")

    assert answer.out.splitlines() == [
        "no node has GPUs or pods of a set",
        "",
        *(line for others in ("1 other node", "2 other nodes") for line in (f"no node has GPUs or pods of a set; {others}", "")),
        "note: this was seen last; now: no answer",
        "no node has GPUs or pods of a set; 2 other nodes",
        "",
        "no node has GPUs or pods of a set; 2 other nodes",
        "",
    ]


def test_on_a_terminal_it_has_a_screen_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    with watching.display() as show:
        show([Line("one [bold]name[/bold]")])
        during = stream.getvalue()

    assert "\x1b[?1049h" in during and "one [bold]name[/bold]" in during
    assert stream.getvalue().rstrip().endswith("\x1b[?25h") or "\x1b[?1049l" in stream.getvalue()


def test_it_is_not_watched_as_json(engine: Engine) -> None:
    answer = engine("top", "--watch", "-o", "json")

    assert (answer.code, answer.out.count("\n") > 0) == (Exit.USAGE, True)
    assert "--watch is for people: leave out -o json" in answer.errors


def test_a_cluster_without_nodes_says_so(box: Box, engine: Engine) -> None:
    for node in box.names(NODE):
        box.delete(NODE, node)

    assert engine("top").out.splitlines()[0] == "no node has GPUs or pods of a set"
