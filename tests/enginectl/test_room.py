"""Room: what a preview says of pods that no node has room for, and where it does not know the nodes."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.ids import Kind
from engine.runtime.provider import Observation, Scope
from enginectl.actions import announcement, node_reading
from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.registry import ACTORS
from providers.cluster import Cluster
from resources.base.kinds import NODE, POD, PODCLIQUESET, RESOURCE_QUOTA
from resources.lifecycle.availability import FIRST_MOMENTS
from resources.preview.forecasting import forecast_of
from resources.preview.room import in_room
from resources.preview.shown import shown
from tests.builders import clique, podcliqueset
from tests.counting import counted
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.conftest import cluster
from tests.enginectl.quick_clock import QUICK
from tests.enginectl.test_questions import terminal
from tests.enginectl.test_requirements import configured
from tests.mnnvl.sets import auto

GPU = "nvidia.com/gpu"
CAPACITY = {"cpu": "16", "memory": "64Gi", GPU: "4", "pods": "110"}


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster of three nodes with four GPUs each."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=3, termination=0.0, capacity=CAPACITY)) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


@pytest.fixture
def manifest(tmp_path: Path) -> "Manifests":
    return Manifests(tmp_path)


class Manifests:
    """Writes a set of replicas with one pod each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, replicas: int = 1, gpus: int = 4, name: str = "demo", **spec: Any) -> Path:
        resources = {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
        pod_spec = {"containers": [{"name": "main", "image": "nginx:1.27", "resources": resources}], **spec}
        file = self._folder / f"{name}.json"
        body = podcliqueset(name, clique("a", 1, pod_spec=pod_spec), replicas=replicas)
        body["metadata"]["annotations"] = {"grove.io/auto-mnnvl": "disabled"}
        file.write_text(json.dumps(body))
        return file


def others(box: Box, node: str, **spec: Any) -> None:
    """A pod of somebody else takes the GPUs of a node."""
    resources = {"requests": {GPU: "4"}, "limits": {GPU: "4"}}
    containers = [{"name": "main", "image": "nginx", "resources": resources}]
    metadata = {"name": f"other-{node}", "namespace": "default"}
    box.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeName": node, "containers": containers, **spec}})


def test_pods_that_fit_are_assumed_to_be_scheduled_on_the_nodes_as_they_are(box: Box, engine: Engine, manifest: Manifests) -> None:
    shown = engine("diff", "-f", manifest(3))

    assert shown.code == Exit.DONE and "; settled" in shown.out
    assert "nodes, and what others run on them, stay as they are; new pods that fit are scheduled" in shown.out
    assert "May not fit" not in shown.out


def test_a_label_that_no_node_has_is_named_and_it_never_settles(box: Box, engine: Engine, manifest: Manifests) -> None:
    for command in (("diff",), ("sync", "--dry-run")):
        shown = engine(*command, "-f", manifest(1, nodeSelector={"zone": "x"}))

        assert shown.code == Exit.STUCK
        assert "blocked  PodClique/demo-0-a  1 pod cannot be scheduled: no node has the label zone=x" in shown.out


def test_a_pod_that_must_be_beside_others_never_starts_without_them(box: Box, engine: Engine, manifest: Manifests) -> None:
    term = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    file = manifest(1, gpus=1, affinity=affinity)

    shown = engine("diff", "-f", file)
    assert shown.code == engine("sync", "-f", file, "--timeout", "40s").code == Exit.STUCK
    assert "1 pod must be beside the pods that the required affinity names (app=cache), and none of them is on a node" in shown.out

    container = {"name": "main", "image": "nginx"}
    metadata = {"name": "cache", "namespace": "default", "labels": {"app": "cache"}}
    spec = {"nodeName": "node-0000", "containers": [container]}
    box.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    later = engine("diff", "-f", manifest(1, gpus=1, affinity=affinity, name="later"))
    assert later.code == Exit.DONE and "default/later: create" in later.out and "; settled" in later.out


def test_pods_that_have_room_only_after_hours_do_not_settle_in_time(box: Box, engine: Engine, manifest: Manifests) -> None:
    for number, zone in enumerate("aab"):
        box.change(NODE, f"node-000{number}", {"metadata": {"labels": {"zone": zone}}})
    term = {"labelSelector": {"matchLabels": {"grove.io/podclique": "demo-0-a"}}, "topologyKey": "zone"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    file = manifest(1, gpus=2, affinity=near)
    body = json.loads(file.read_text())
    body["spec"]["template"]["cliques"][0]["spec"] |= {"replicas": 2, "minAvailable": 2}
    body["spec"]["template"] |= {"terminationDelay": "4h"}
    file.write_text(json.dumps(body))
    for number in range(2):
        others(box, f"node-000{number}")
    assert engine("sync", "-f", file).code == Exit.DONE
    QUICK.advance(FIRST_MOMENTS.total_seconds() + 1)  # A pod that is lost sooner ends no gang: that of such a young clique waits for good.
    lost = next(name for name in box.names(POD) if name.startswith("demo-0-a"))
    box.delete(POD, lost)
    others(box, "node-0002", containers=[{"name": "main", "image": "nginx", "resources": {"limits": {GPU: "2"}, "requests": {GPU: "2"}}}])
    for number in range(2):
        box.delete(POD, f"other-node-000{number}")

    shown = engine("diff", "-f", file)
    assert shown.code == Exit.STUCK, "It waits for longer than a sync does, and settles."
    assert "blocked  PodClique/demo-0-a  1 pod cannot be scheduled: 1 pod must be at one value of node label zone" in shown.out
    assert ": delete 2 Pods" in shown.out and "; settled" in shown.out and "STUCK" not in shown.out


def test_a_pod_that_asks_for_more_than_the_largest_node_has_never_starts(box: Box, engine: Engine, manifest: Manifests) -> None:
    shown = engine("diff", "-f", manifest(1, gpus=8))

    assert shown.code == Exit.STUCK
    assert "8 nvidia.com/gpu requested, the largest of 3 nodes that suit has 4; ask for less, or add larger nodes" in shown.out


def test_more_pods_than_free_nodes_are_told_how_many_are_free_and_who_has_the_rest(box: Box, engine: Engine, manifest: Manifests) -> None:
    others(box, "node-0000")

    shown = engine("diff", "-f", manifest(3))

    assert shown.code == Exit.STUCK
    assert "3 pods need 3 nodes, one for each: 2 of 3 are free (pods of namespace default have the rest)" in shown.out


def test_json_has_what_is_left_and_what_it_assumes(box: Box, engine: Engine, manifest: Manifests) -> None:
    document = engine("diff", "-f", manifest(4), "-o", "json").document

    assert "ROOM" in document["forecast"]["assumptions"]
    (root,) = document["roots"]
    assert root["forecast"]["end"] == "stuck"
    assert any(each["blocked"] and "4 pods need 4 nodes" in each["why"] for each in root["forecast"]["left"])


def test_nodes_that_will_come_are_assumed_if_asked_for(box: Box, engine: Engine, manifest: Manifests) -> None:
    for command in (("diff",), ("sync", "--dry-run")):
        shown = engine(*command, "-f", manifest(9, gpus=8), "--assume-nodes")

        assert shown.code == Exit.DONE
        assert "nodes are added for new pods that have no room" in shown.out


def test_a_scale_in_that_frees_room_for_a_waiting_pod_settles(box: Box, engine: Engine, manifest: Manifests) -> None:
    assert engine("sync", "-f", manifest(4), "--timeout", "40s").code == Exit.STUCK

    assert engine("diff", "-f", manifest(4)).code == Exit.DONE, "Nothing is changed, whatever waits."
    shown = engine("diff", "-f", manifest(3))
    assert shown.code == Exit.DONE and "; settled" in shown.out
    assert engine("sync", "-f", manifest(3)).code == Exit.DONE


def test_an_update_whose_new_pods_need_the_room_of_those_that_go_after_them_never_settles(
    box: Box, engine: Engine, manifest: Manifests
) -> None:
    assert engine("sync", "-f", manifest(3)).code == Exit.DONE
    smaller = manifest(5, gpus=2)

    shown = engine("diff", "-f", smaller)

    assert shown.code == Exit.STUCK, "In the end all would fit, and no pod goes before the new ones are ready."
    assert "2 PodCliques: demo-{3..4}-a  1 pod cannot be scheduled" in shown.out
    document = engine("diff", "-f", smaller, "-o", "json").document
    assert document["forecast"]["operations"]["delete"] == 0
    assert engine("sync", "-f", smaller, "--timeout", "40s").code != Exit.DONE


def test_an_update_of_full_nodes_whose_pods_go_first_settles(box: Box, engine: Engine, manifest: Manifests) -> None:
    assert engine("sync", "-f", manifest(3)).code == Exit.DONE
    other = manifest(3, terminationGracePeriodSeconds=1)

    shown = engine("diff", "-f", other)

    assert shown.code == Exit.DONE and "; settled" in shown.out
    assert "May not fit" not in shown.out
    assert engine("sync", "-f", other).code == Exit.DONE


def test_pods_of_lower_priority_are_told_and_hold_nothing_back(box: Box, engine: Engine, manifest: Manifests) -> None:
    for number in range(3):
        others(box, f"node-000{number}", priority=-10)

    shown = engine("diff", "-f", manifest(2))

    assert shown.code == Exit.DONE and "; settled" in shown.out
    assert "May not fit: pods of PodClique demo-0-a and 1 more: 2 pods need 2 nodes, one for each: 0 of 3 are free" in shown.out
    assert "pods of lower priority could be preempted for them" in shown.out
    assert engine("diff", "-f", manifest(4)).code == Exit.STUCK, "There are three nodes, whoever is preempted."


@pytest.mark.parametrize("denied", ["nodes", "pods"])
def test_without_the_right_to_list_nodes_and_pods_everywhere_the_reason_is_told(
    box: Box, engine: Engine, manifest: Manifests, denied: str
) -> None:
    box.deny(resource=denied, verb="list", namespace="")

    shown = engine("diff", "-f", manifest(9))

    assert shown.code == Exit.DONE
    assert "every new pod is scheduled and becomes ready" in shown.out
    assert "Room on the nodes is not checked: you may not list nodes and the pods of all namespaces." in shown.out


def test_a_cluster_of_too_many_pods_is_not_read_to_its_end(
    box: Box, engine: Engine, manifest: Manifests, monkeypatch: pytest.MonkeyPatch
) -> None:
    others(box, "node-0000")
    others(box, "node-0001")
    monkeypatch.setattr(node_reading, "MAX_PODS", 1)

    shown = engine("diff", "-f", manifest(9))

    assert shown.code == Exit.DONE and "Room on the nodes is not checked: more than 200,000 pods run in the cluster." in shown.out


def test_offline_every_pod_is_assumed_to_be_scheduled(engine: Engine, manifest: Manifests) -> None:
    shown = engine("diff", "-f", manifest(9), "--against", "empty")

    assert shown.code == Exit.DONE and "every new pod is scheduled and becomes ready" in shown.out
    assert "Room on the nodes" not in shown.out


def test_nodes_are_read_only_if_pods_are_created(box: Box, engine: Engine, manifest: Manifests) -> None:
    assert engine("sync", "-f", manifest(1)).code == Exit.DONE
    box.deny(resource="nodes", verb="list")

    assert "Room on the nodes" not in engine("diff", "-f", manifest(0)).out
    assert "Room on the nodes is not checked" in engine("diff", "-f", manifest(2)).out


@pytest.mark.parametrize(
    "words",
    [("--yes",), (), ("--yes", "--policy", str(ROOT / "examples" / "policies" / "protected.yaml"))],
    ids=["yes", "nobody to ask", "judged"],
)
def test_sync_tells_before_it_writes_what_speaks_against_the_plan(
    box: Box, engine: Engine, manifest: Manifests, words: tuple[str, ...]
) -> None:
    box.create(RESOURCE_QUOTA, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": {"pods": "1"}}})
    counted_so_far = {"status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}}
    box.portal.call(partial(box.cluster.client("user").patch, subresource="status"), RESOURCE_QUOTA, "default", "team", counted_so_far)

    written = engine("sync", *words, "-f", manifest(2, gpus=8), "--no-wait").err

    before, create, _ = written.partition("+ create")
    assert create and "8 nvidia.com/gpu requested, the largest of 3 nodes that suit has 4" in before
    assert "ResourceQuota/team" in before
    assert "Plan:" not in written and before.count("PodCliqueSet/default/demo:") == 1


def test_on_a_terminal_with_nothing_to_ask_it_tells_what_speaks_against_the_plan(box: Box, manifest: Manifests) -> None:
    with terminal(box, "sync", "-f", manifest(2, gpus=8), "--no-wait") as shown:
        shown.end()

    before, create, _ = shown.text.partition("+ create")
    assert create and "8 nvidia.com/gpu requested, the largest of 3 nodes that suit has 4" in before


def test_what_is_large_for_the_time_left_is_written_without_a_forecast(
    box: Box, engine: Engine, manifest: Manifests, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most, forecasts in ((20_000, 1), (50, 0)):
        monkeypatch.setattr(announcement, "MOST_WORK", most)
        with counted({"forecast": forecast_of}) as counts:
            synced = engine("sync", "--yes", "-f", manifest(2, name=f"of-{most}"), "--no-wait")

        assert counts["forecast"] == forecasts and "+ create" in synced.err
        assert (announcement.TOO_LARGE in synced.err) == (not forecasts)


def test_nodes_that_are_never_listed_do_not_keep_a_sync_from_writing(
    box: Box, engine: Engine, manifest: Manifests, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*arguments: object, **rest: object) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(Cluster, "scan", never)
    monkeypatch.setattr(announcement, "SHARE", 1e-3)

    synced = engine("sync", "--yes", "-f", manifest(2, name="slow"), "--no-wait", "--timeout", "40s")

    before, create, _ = synced.err.partition("+ create")
    assert create and announcement.NOT_IN_TIME in before


def test_our_own_faults_while_a_sync_is_announced_do_not_keep_it_from_writing(
    box: Box, engine: Engine, manifest: Manifests, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*arguments: object, **rest: object) -> None:
        raise ExceptionGroup("facts", [ValueError("ours")])

    monkeypatch.setattr(announcement, "shown_and_facts", fail)

    synced = engine("sync", "--yes", "-f", manifest(2), "--no-wait")

    before, create, _ = synced.err.partition("+ create")
    assert create and announcement.NO_ANNOUNCEMENT in before


def test_a_sync_that_creates_no_pods_or_is_quiet_reads_no_nodes(box: Box, engine: Engine, manifest: Manifests) -> None:
    assert engine("sync", "--quiet", "-f", manifest(2)).code == Exit.DONE
    box.deny(resource="nodes", verb="list")
    unchecked = "Room on the nodes is not checked"

    for replicas, words in ((2, ()), (1, ()), (2, ("--quiet",))):
        synced = engine("sync", "--yes", *words, "-f", manifest(replicas))
        assert synced.code == Exit.DONE and unchecked not in synced.err
    assert unchecked in engine("sync", "--yes", "-f", manifest(3)).err


def test_nothing_is_printed_if_nothing_is_assumed(box: Box, engine: Engine, manifest: Manifests) -> None:
    assert engine("sync", "-f", manifest(0)).code == Exit.DONE
    box.delete(PODCLIQUESET, "demo")

    shown = engine("diff")

    assert "delete" in shown.out and "This assumes" not in shown.out


def test_every_preview_lists_nodes_and_pods_once_and_is_decorated_in_one_place(
    box: Box, engine: Engine, manifest: Manifests, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    listed: list[str] = []
    scan, observe = Cluster.scan, Cluster.observe

    async def noted_scan(self: Cluster, kind: Kind, visit: Callable[[Mapping[str, Any]], bool], *, fields: str = "") -> None:
        listed.append(kind.name)
        await scan(self, kind, visit, fields=fields)

    async def noted_observe(self: Cluster, scope: Scope) -> Observation:
        listed.extend(kind.name for kind in scope.references if kind == NODE)
        return await observe(self, scope)

    monkeypatch.setattr(Cluster, "scan", noted_scan)
    monkeypatch.setattr(Cluster, "observe", noted_observe)
    file = manifest(1)
    with_domains = tmp_path / "domains.json"
    with_domains.write_text(json.dumps(auto(1, name="other")))
    config = configured(tmp_path, auto=True)
    commands: list[list[str | Path]] = [
        ["diff", "-f", file],
        ["diff", "-f", file, "--out", tmp_path / "plan"],
        ["sync", "--dry-run", "-f", file],
        ["sync", "--plan", tmp_path / "plan"],
        ["sync", "--yes", "-f", manifest(1, name="second")],
        ["diff", "-f", with_domains, "--config", config],
    ]
    for words in commands:
        listed.clear()
        with counted({"shown": shown, "in_room": in_room}) as counts:
            engine(*words)

        assert (listed, counts) == (["Node", "Pod"], {"shown": 1, "in_room": 1}), words


def test_a_saved_plan_has_the_forecast_that_was_shown(box: Box, engine: Engine, manifest: Manifests, tmp_path: Path) -> None:
    file, plan = manifest(40, gpus=0), tmp_path / "plan"

    seen = engine("diff", "-f", file, "--out", plan)

    assert seen.code == Exit.DONE
    assert "nodes, and what others run on them, stay as they are" in seen.out
    assert "nodes, and what others run on them, stay as they are" in engine("show", plan).out
