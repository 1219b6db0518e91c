"""A clique that a user scaled below its minAvailable: what is said of its new pods is what its scheduler does with them."""

import json
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from resources.base.kinds import POD, PODCLIQUE
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster
from tests.enginectl.test_room import CAPACITY
from tests.enginectl.test_waiting_gangs import gang, sync_until_refused

VOLCANO = "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\nscheduler: {profiles: [{name: volcano}]}\n"


def manifest(folder: Path, image: str, **spec: str) -> Path:
    """A set of a clique with three pods of which it needs two, and one with a pod."""
    pod = {"containers": [{"name": "main", "image": image}], **spec}
    file = folder / "set.json"
    file.write_text(
        json.dumps(podcliqueset("one", clique("w", 3, minAvailable=2, pod_spec=pod), clique("l", 1, minAvailable=1, pod_spec=pod)))
    )
    return file


def placed(box: Box) -> list[bool]:
    """Of each pod whether it is on a node."""
    return sorted(bool(pod["spec"].get("nodeName")) for pod in box.all(POD))


def test_where_gangs_are_scheduled_its_new_pods_never_start_and_every_command_says_so(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config := tmp_path / "config.yaml").write_text(VOLCANO)
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=3, termination=0.0), addons=("volcano",)) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        words = ("--config", config)
        engine("sync", "-f", manifest(tmp_path, "x:1", schedulerName="volcano"), *words)
        box.change(PODCLIQUE, "one-0-w", {"spec": {"replicas": 1}})
        assert engine("sync", *words).code == Exit.DONE

        shown = engine("diff", "-f", (file := manifest(tmp_path, "x:2", schedulerName="volcano")), *words)
        assert shown.code == Exit.STUCK
        assert "PodClique/one-0-w  GangIncomplete: 1 pod of its gang cannot start: it has 1 of its minimum of 2" in shown.out
        assert "scale one-0-w to its minAvailable or more" in shown.out

        assert engine("sync", "-f", file, *words, "--timeout", "60s").code == Exit.STUCK
        assert placed(box) == [False, True]
        do = "do: kubectl scale pclq/one-0-w -n default --replicas=2"
        for asked in (("status", "one"), ("why", "pclq/one-0-w"), ("why", "podgang/one-0"), ("why", "pcs/one")):
            said = engine(*asked, *words).out
            assert do in said and "waits for room" not in said

        box.change(PODCLIQUE, "one-0-w", {"spec": {"replicas": 2}})
        assert engine("diff", *words).code == engine("sync", *words).code == Exit.DONE
        assert placed(box) == [True, True, True]


def test_where_pods_are_placed_one_by_one_its_new_pods_start(box: Box, engine: Engine, tmp_path: Path) -> None:
    engine("sync", "-f", manifest(tmp_path, "x:1"))
    box.change(PODCLIQUE, "one-0-w", {"spec": {"replicas": 1}})
    assert engine("sync").code == Exit.DONE

    file = manifest(tmp_path, "x:2")
    assert engine("diff", "-f", file).code == engine("sync", "-f", file).code == Exit.DONE
    assert placed(box) == [True, True]


def test_where_kube_scheduler_schedules_gangs_its_pods_wait_for_room_and_not_for_others(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=1, termination=0.0, capacity=CAPACITY, gangs=True)) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        sync_until_refused(box, engine, gang(tmp_path, "one", 3))
        box.change(PODCLIQUE, "one-0-a", {"spec": {"replicas": 2}})
        assert engine("sync", "--timeout", "20s").code == Exit.STUCK
        for asked in (("status", "one"), ("why", "podgang/one-0"), ("why", f"pod/{box.names(POD)[0]}")):
            said = engine(*asked).out
            assert "0 of its minimum of 2 pods are on nodes, 1 of the other 2 has room" in said and "kubectl scale" not in said, said

        box.change(PODCLIQUE, "one-0-a", {"spec": {"replicas": 1}})
        assert engine("sync").code == Exit.DONE and placed(box) == [True]
        said = engine("why", "podgang/one-0").out
        assert "it does not run (BelowMinimum): pod group one-0-a: 1 of at least 3 pods scheduled, 1 exist" in said
        assert "do: kubectl scale pclq/one-0-a -n default --replicas=3" in said
