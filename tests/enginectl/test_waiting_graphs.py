"""Graphs without Grove whose LeaderWorkerSets wait for room: what `status`, `why` and `top` say of them and of their pods."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from resources.base.kinds import LEADER_WORKER_SET, POD, POD_GROUP
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster
from tests.enginectl.test_graphs import written
from tests.enginectl.test_room import CAPACITY

COUNTS = "0 of its minimum of 2 pods are on nodes, 1 of the other 2 has room"
WITHOUT_GROVE = '{nvidia.com/enable-grove: "false"}'


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with LeaderWorkerSet, whose scheduler schedules gangs, and three nodes with four GPUs each."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=3, termination=0.0, capacity=CAPACITY, gangs=True), addons=("lws",)) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


@pytest.fixture
def waiting(box: Box, engine: Engine, tmp_path: Path) -> tuple[str, str]:
    """A graph whose replicas need two nodes each: one runs, one waits. Returns the LeaderWorkerSets of both."""
    assert engine("sync", "-f", written(tmp_path, annotations=WITHOUT_GROVE)).code == Exit.DONE
    for _ in range(20):
        engine("sync", "-f", written(tmp_path, replicas=2, annotations=WITHOUT_GROVE), "--timeout", "20s", "--assume-nodes")
        if len(box.names(LEADER_WORKER_SET)) == 2:
            break
    box.wait_for(POD_GROUP, lambda group: bool(group.get("status", {}).get("conditions")), "llm-decode-1")
    assert box.names(LEADER_WORKER_SET) == ["llm-decode-0", "llm-decode-1"]
    return "llm-decode-0", "llm-decode-1"


def test_status_and_why_say_how_much_of_a_group_has_room_what_is_missing_and_who_has_the_rest(
    waiting: tuple[str, str], box: Box, engine: Engine
) -> None:
    runs, waits = waiting
    pod = next(name for name in box.names(POD) if name.startswith(f"{waits}-"))
    for words in (("status",), ("why", "dgd/llm")):
        shown = engine(*words).out
        assert f"LeaderWorkerSet {waits} waits for room: {COUNTS}; " in shown and f"{runs} waits" not in shown, words
    for words in (("why", f"lws/{waits}"), ("why", f"pod/{pod}"), ("top",)):
        assert f"LeaderWorkerSet {waits}: {COUNTS}\n" in (shown := engine(*words).out), words
        assert "together with others they request 8 nvidia.com/gpu, and 3 nodes that suit have 4 free" in shown, words
        assert f"on the full nodes is gang default/{runs} (2 pods); the scheduler says: " in shown, words
        assert "free or add nodes, or ask for less" in shown
    made = f"part of DynamoGraphDeployment/default/llm: the controller of LeaderWorkerSet/default/{waits} has made it"
    assert made in (shown := engine("why", f"pod/{pod}").out) and "not managed" not in shown
    of_deployment = next(name for name in box.names(POD) if name.startswith("llm-frontend"))
    assert "the controller of Deployment/default/llm-frontend has made it" in engine("why", f"pod/{of_deployment}").out
    for name in (f"lws/{runs}", f"pod/{runs}-0"):
        assert "its minimum" not in engine("why", name).out
    (graph,) = engine("status", "-o", "json").document["graphs"]
    assert [(each["object"]["name"], each["advice"]) for each in graph["waiting"]] == [(waits, "free or add nodes, or ask for less")]


def test_diff_and_sync_say_that_a_group_waits_and_why_as_of_a_set(waiting: tuple[str, str], engine: Engine, tmp_path: Path) -> None:
    one, two = (written(tmp_path, f"{count}.yaml", replicas=count, annotations=WITHOUT_GROVE) for count in (1, 2))
    for words in (("diff",), ("diff", "-f", two)):
        shown = engine(*words)
        assert shown.code == Exit.DONE and "default/llm: no changes, still STUCK" in shown.out, shown
        assert "pending  PodGroup/llm-decode-1         Unschedulable: " in shown.out and "No changes: 2 pending." in shown.out
    (graph,) = engine("status", "-o", "json").document["graphs"]
    assert "PodGroup" in str(graph["waits"]) and "minCount (2)" in str(graph["waits"]), graph
    assert "settled, 1 pass" in engine("diff", "-f", one).out

    # The pods have been refused before the graph is written: how much a busy machine does in this time does not matter.
    noted = written(tmp_path, "noted.yaml", replicas=2, annotations='{nvidia.com/enable-grove: "false", example.com/noted: "yes"}')
    synced = engine("sync", "-f", noted, "--timeout", "30s")
    assert synced.code == Exit.STUCK and "1 patched" in synced.out, synced


def test_who_may_not_list_pods_is_told_nothing_of_room(waiting: tuple[str, str], box: Box, engine: Engine) -> None:
    box.deny(verb="list", resource="pods")

    shown = engine("status", "llm")

    assert shown.code in (Exit.DONE, Exit.INCOMPLETE) and "waits for room" not in shown.out


def test_a_group_that_has_got_its_nodes_waits_no_longer(waiting: tuple[str, str], box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, replicas=1, annotations=WITHOUT_GROVE), "--yes").code == Exit.DONE

    assert "waits for room" not in engine("status").out


def test_a_preview_says_which_groups_will_have_no_room_and_counts_the_room_that_others_leave(
    box: Box, engine: Engine, tmp_path: Path
) -> None:
    two = written(tmp_path, replicas=2, annotations=WITHOUT_GROVE)
    new = engine("diff", "-f", two)
    assert new.out.count("2 pods cannot be scheduled: ") == 1 and "LeaderWorkerSet/llm-decode-1  2 pods" in new.out, new.out
    assert "room for new pods" not in new.out

    assert engine("sync", "-f", written(tmp_path, annotations=WITHOUT_GROVE)).code == Exit.DONE
    assert "cannot be scheduled" not in engine("diff", "-f", written(tmp_path, annotations=WITHOUT_GROVE)).out
    two = written(tmp_path, replicas=2, annotations=WITHOUT_GROVE)
    assert "LeaderWorkerSet/llm-decode-1  2 pods cannot be scheduled" in engine("diff", "-f", two).out
    renamed = written(tmp_path, replicas=1, annotations=WITHOUT_GROVE)
    Path(renamed).write_text(Path(renamed).read_text().replace("decode:", "prefill:"))
    assert "cannot be scheduled" not in engine("diff", "-f", renamed).out, "the pods of decode leave their nodes"


def test_an_edit_that_mounts_a_claim_that_does_not_exist_is_stuck(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, annotations=WITHOUT_GROVE)).code == Exit.DONE
    file = written(tmp_path, mounts="[{name: models, mountPoint: /models}]", annotations=WITHOUT_GROVE)

    shown = engine("diff", "-f", file)

    assert shown.code == engine("sync", "-f", file, "--timeout", "40s").code == Exit.STUCK
    assert "2 pods cannot start: PersistentVolumeClaim models does not exist" in shown.out
