"""Graphs on the command line: status, why, snapshots, diff, reviews and preflight."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.installation.addons import ADDONS
from grove_sandbox.registry import ACTORS
from resources.base import kinds
from tests.enginectl.box import Box
from tests.enginectl.calling import CommandResult, Engine
from tests.enginectl.conftest import cluster

GRAPH = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: llm
  namespace: default
  annotations: {annotations}
spec:
  backendFramework: vllm
  services:
    Frontend:
      componentType: frontend
      extraPodSpec:
        mainContainer: {{image: "x:1", command: [python3], args: [-m, dynamo.frontend]}}
    decode:
      componentType: worker
      replicas: {replicas}
      multinode: {{nodeCount: 2}}
      volumeMounts: {mounts}
      resources: {{limits: {{gpu: "4"}}}}
      extraPodSpec:
        mainContainer: {{image: "x:1", command: [/bin/sh, -c], args: [python3 -m dynamo.vllm --model m --tensor-parallel-size 8]}}
"""
DGD = "DynamoGraphDeployment/default/llm"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where manifests are written."""
    made = tmp_path / "manifests"
    made.mkdir()
    return made


@pytest.fixture
def lws_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with LeaderWorkerSet and Volcano besides Grove."""
    with cluster(tmp_path, ACTORS, addons=("lws", "volcano")) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


@pytest.fixture
def bare_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster without Grove and without LeaderWorkerSets."""
    with cluster(tmp_path, ACTORS, grove=False) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


def written(folder: Path, name: str = "graph.yaml", *, replicas: int = 1, mounts: str = "[]", annotations: str = "{}") -> Path:
    """A file with the graph."""
    file = folder / name
    file.write_text(GRAPH.format(replicas=replicas, mounts=mounts, annotations=annotations))
    return file


def rows(text: str) -> list[dict[str, str]]:
    """The rows of all tables in a text, by their headers."""
    found: list[dict[str, str]] = []
    head: list[str] = []
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", line)
        if cells[0] == "NAMESPACE":
            head = cells
        elif line and not line.startswith((" ", "exit")) and head:
            found.append(dict(zip(head, cells, strict=True)))
    return found


def pods(box: Box) -> list[str]:
    """The names of all pods."""
    return box.names(kinds.POD)


def test_a_settled_graph_is_shown_above_its_set_wherever_it_is_asked_for(box: Box, engine: Engine, folder: Path) -> None:
    synced = engine("sync", "-f", written(folder, replicas=2))
    assert synced.code == Exit.DONE, synced

    graph, workload = rows(engine("status").out)
    assert graph | {"AGE": ""} == {
        "NAMESPACE": "default",
        "NAME": "llm",
        "STATE": "settled",
        "GRAPH STATE": "successful",
        "ORCHESTRATOR": "Grove",
        "SERVICES READY": "2/2",
        "AGE": "",
    }
    assert (workload["NAME"], workload["STATE"], workload["PODS READY"]) == ("llm", "settled", "5/5")

    named, missing, verbose = engine("status", "llm"), engine("status", "nobody"), engine("status", "-v")
    assert (named.code, len(rows(named.out)), missing.code) == (Exit.DONE, 2, Exit.FAILED)
    assert f"  part of {DGD}" in named.out
    assert "  service decode: 2 of 2 replicas available, 2 nodes each, PodCliqueScalingGroup/llm-0-decode\n" in verbose.out
    assert "  service Frontend: 1 of 1 replica ready, PodClique/llm-0-frontend\n" in verbose.out
    assert "service decode" not in named.out

    document = engine("status", "-o", "json").document
    (entry,) = document["graphs"]
    assert (entry["graphState"], entry["orchestrator"], entry["state"]) == ("successful", "Grove", "settled")
    assert [(service["name"], service["ready"], service["replicas"]) for service in entry["services"]] == [
        ("decode", True, 2),
        ("Frontend", True, 1),
    ]
    assert [nested["kind"] for nested in entry["sets"]] == ["PodCliqueSet"]
    assert document["workloads"][0]["parent"] == entry["root"]


def test_a_snapshot_of_a_graph_gives_the_diff_of_the_cluster(box: Box, engine: Engine, folder: Path) -> None:
    engine("sync", "-f", written(folder))
    snapshot = folder.parent / "snapshot.yaml"
    taken = engine("snapshot", "--out", snapshot)
    changed = written(folder, "changed.yaml", replicas=2)

    assert taken.code == Exit.DONE
    assert "kind: DynamoGraphDeployment" in snapshot.read_text()
    assert engine("diff", "--against", snapshot).out == engine("diff").out == "No changes.\nexit 0: done\n"
    live = engine("diff", "-f", changed)
    assert "~ scale replicas: 1 → 2 in PodCliqueScalingGroup/llm-0-decode" in live.out
    recorded = engine("diff", "-f", changed, "--against", snapshot)
    assert without_assumptions(recorded) == without_assumptions(live)


def without_assumptions(answer: CommandResult) -> list[str]:
    """The lines of a report but those of what its forecast assumes: a snapshot has no nodes."""
    return [line for line in answer.out.splitlines() if "assumes that" not in line]


def test_a_snapshot_knows_what_the_cluster_does_not_serve_and_which_claims_exist(box: Box, engine: Engine, folder: Path) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    box.create(kinds.PVC, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"}, "spec": claim})
    snapshot = folder.parent / "snapshot.yaml"
    graph = written(folder, mounts="[{name: models, mountPoint: /models}]", annotations='{nvidia.com/enable-grove: "false"}')
    box.create(kinds.DYNAMO_GRAPH, {"metadata": {}, **load(graph)})
    engine("snapshot", "--out", snapshot)

    live = engine("diff")
    assert "has no effect: the cluster has only Grove" in live.out
    assert without_assumptions(engine("diff", "--against", snapshot)) == without_assumptions(live)
    assert "name: models" in snapshot.read_text().split("kind: PersistentVolumeClaim")[1]


def load(file: Path) -> dict[str, Any]:
    """The object in a file."""
    import yaml

    body: dict[str, Any] = yaml.load(file.read_text(), yaml.CSafeLoader)
    return body


def test_why_shows_the_chain_from_a_pod_to_its_graph(box: Box, engine: Engine, folder: Path) -> None:
    engine("sync", "-f", written(folder))
    pod = next(name for name in pods(box) if "frontend" in name)

    graph, nested = engine("why", "dgd/llm"), engine("why", "pcs/llm")
    assert graph.code == nested.code == Exit.DONE
    assert "  state: settled (successful), run by Grove, 2 of 2 services ready\n" in graph.out
    assert "  service decode: 1 of 1 replica available, 2 nodes each, PodCliqueScalingGroup/llm-0-decode\n" in graph.out
    assert f"  desired by {DGD}: it runs the services of" in nested.out
    for object in (f"pod/{pod}", "pclq/llm-0-frontend"):
        assert f"  desired by PodCliqueSet/default/llm (replica 0), part of {DGD}: " in engine("why", object).out
    assert f"  desired by {DGD}: " in engine("why", "svc/llm-frontend").out
    second = {"apiVersion": "nvidia.com/v1alpha1", "kind": kinds.SCALING_ADAPTER.name, "metadata": {"name": "mine"}}
    box.create(kinds.SCALING_ADAPTER, {**second, "spec": {"replicas": 3, "dgdRef": {"name": "llm", "serviceName": "Decode"}}})
    assert "  note: it has no effect: only an adapter named llm-decode counts for Decode of " in engine("why", "dgdsa/mine").out
    file = written(folder, "adapted.yaml")
    file.write_text(file.read_text().replace("multinode:", "scalingAdapter: {enabled: true}\n      multinode:"))
    adapted = engine("diff", "-f", file)
    assert f"{kinds.SCALING_ADAPTER.name} mine has no effect: only an adapter named llm-decode counts" in adapted.out
    missing = engine("why", "pod/nobody")
    assert (missing.code, missing.messages) == (Exit.FAILED, ["engine: Pod/default/nobody does not exist, and no workload desires it"])

    (desired,) = engine("why", "pcs/llm", "-o", "json").document["desiredBy"]
    assert desired["parent"]["kind"] == "DynamoGraphDeployment"


def test_a_second_adapter_is_told_while_the_components_of_its_graph_are_tried(lws_box: Box, engine: Engine, folder: Path) -> None:
    adapter = {"apiVersion": "nvidia.com/v1alpha1", "kind": kinds.SCALING_ADAPTER.name, "metadata": {"name": "mine"}}
    lws_box.create(kinds.SCALING_ADAPTER, {**adapter, "spec": {"replicas": 3, "dgdRef": {"name": "llm", "serviceName": "Frontend"}}})
    file = written(folder, annotations='{nvidia.com/enable-grove: "false"}')
    file.write_text(file.read_text().replace("componentType: frontend", "componentType: frontend\n      scalingAdapter: {enabled: true}"))

    assert "mine has no effect: only an adapter named llm-frontend counts" in engine("diff", "-f", file).out


def test_why_names_the_fields_of_the_graph_that_a_field_of_its_set_is_computed_from(box: Box, engine: Engine, folder: Path) -> None:
    engine("sync", "-f", written(folder))

    out = engine("why", "pcs/llm", "-v").out
    assert "spec.template.podCliqueScalingGroups[0].replicas comes from spec.services.decode.replicas\n" in out


def test_a_graph_whose_claim_goes_away_while_its_pods_run_says_what_is_lost(box: Box, engine: Engine, folder: Path) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    box.create(kinds.PVC, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models"}, "spec": claim})
    assert engine("sync", "-f", written(folder, mounts="[{name: models, mountPoint: /models}]"), "--yes").code == 0
    box.delete(kinds.PVC, "models")
    engine("sync", "--yes")

    lost = "no new pod can start: service decode: PersistentVolumeClaim models does not exist"
    assert f"  warning: {lost}" in engine("status").out
    assert f"  warning: {lost}" in engine("why", "dgd/llm").out
    (entry,) = engine("status", "-o", "json").document["graphs"]
    assert [(alarm["reason"], alarm["message"].startswith(lost)) for alarm in entry["alarms"]] == [("DependencyMissing", True)]
    compared = engine("diff", "-f", folder, "--detailed-exitcode")
    assert (compared.code, compared.out.count(f"  note: {lost}"), "No changes." in compared.out) == (Exit.DONE, 1, True), compared
    assert engine("diff").out.count(f"  note: {lost}") == 1


def test_a_graph_whose_claim_is_missing_is_blocked_and_says_so(box: Box, engine: Engine, folder: Path) -> None:
    synced = engine("sync", "-f", written(folder, mounts="[{name: models, mountPoint: /models}]"), "--no-wait")
    assert synced.code == Exit.STUCK, synced

    status, why = engine("status"), engine("why", "dgd/llm")
    missing = "PersistentVolumeClaim models does not exist, and spec.pvcs does not create it"
    assert [(row["STATE"], row["NAME"]) for row in rows(status.out)] == [("blocked", "llm"), ("blocked", "llm")]
    assert missing in status.out and missing in why.out
    assert "  in sync" not in why.out


def test_a_graph_that_nothing_can_run_says_what_is_missing(bare_box: Box, engine: Engine, folder: Path) -> None:
    box = bare_box
    engine("sync", "-f", written(folder, annotations='{nvidia.com/enable-grove: "false"}'), "--no-wait")

    (graph,) = rows(engine("status").out)
    assert (graph["STATE"], graph["GRAPH STATE"], graph["ORCHESTRATOR"], graph["SERVICES READY"]) == ("blocked", "failed", "-", "0/2")
    why = engine("why", "dgd/llm").out
    assert "state: blocked (failed), nothing runs it, 0 of 2 services ready" in why
    assert "blocked: no multinode orchestrator available: Grove is disabled" in why
    assert "leaderworkerset.x-k8s.io and scheduling.volcano.sh" in why

    event, *_ = [event for event in box.all(kinds.EVENT) if event["reason"] == "FailedToReconcileTheResources"]
    assert (event["type"], event["involvedObject"]["kind"]) == ("Warning", "DynamoGraphDeployment")
    assert "no multinode orchestrator available" in event["message"]


def test_a_stored_graph_that_is_not_valid_is_blocked_with_its_fault(box: Box, engine: Engine, folder: Path) -> None:
    body = load(written(folder))
    body["spec"]["services"]["DECODE"] = body["spec"]["services"]["decode"]
    box.create(kinds.DYNAMO_GRAPH, body)
    engine("sync", "--no-wait")

    (graph,) = rows(engine("status").out)
    why = engine("why", "dgd/llm")
    assert (graph["STATE"], graph["GRAPH STATE"], graph["ORCHESTRATOR"], graph["SERVICES READY"]) == ("blocked", "failed", "-", "0/0")
    assert "  blocked: Validation failed: " in why.out
    assert "DECODE" in why.out
    assert "ValidationFailed" in {event["reason"] for event in box.all(kinds.EVENT)}


def test_a_graph_run_by_components_has_its_services_and_no_set(lws_box: Box, engine: Engine, folder: Path) -> None:
    synced = engine("sync", "-f", written(folder, replicas=2, annotations='{nvidia.com/enable-grove: "false"}'))
    assert synced.code == Exit.DONE, synced

    (graph,) = rows(engine("status").out)
    verbose = engine("status", "-v").out
    assert (graph["STATE"], graph["GRAPH STATE"], graph["ORCHESTRATOR"], graph["SERVICES READY"]) == (
        "settled",
        "successful",
        "components",
        "2/2",
    )
    assert "service decode: 2 of 2 replicas ready, 2 nodes each, LeaderWorkerSet/llm-decode-0" in verbose
    assert f"  desired by {DGD}: " in engine("why", "lws/llm-decode-1").out


def test_a_graph_that_exists_without_its_set_shows_the_set_that_is_about_to_be_created(box: Box, engine: Engine, folder: Path) -> None:
    box.create(kinds.DYNAMO_GRAPH, load(written(folder)))

    graph, nested = rows(engine("status").out)
    why = engine("why", "pcs/llm")
    assert (graph["STATE"], graph["GRAPH STATE"]) == ("changing", "-")
    assert (nested["STATE"], nested["AGE"]) == ("changing", "-")
    assert engine("status", "-o", "json").document["workloads"][0]["createdAt"] is None
    assert (why.code, "  does not exist\n" in why.out, f"  desired by {DGD}: " in why.out) == (Exit.DONE, True, True)


def test_a_set_that_must_be_replaced_is_blocked_with_what_to_do(box: Box, engine: Engine, folder: Path) -> None:
    file = written(folder)
    engine("sync", "-f", file)
    body = load(file)
    del body["spec"]["services"]["decode"]
    file.write_text(json.dumps(body))

    blocked, allowed = engine("diff", "-f", file), engine("sync", "-f", file, "--allow-replace", "--dry-run")
    assert "! blocked  PodCliqueSet/llm" in blocked.out
    assert "allow it with --allow-replace" in blocked.out
    assert "- delete PodCliqueSet/llm" in allowed.out
    engine("sync", "-f", file, "--no-wait")
    assert "allow it with --allow-replace" in engine("status").out
    assert "allow it with --allow-replace" in engine("why", "dgd/llm").out
    assert "-0-decode-" in " ".join(pods(box))


@pytest.mark.parametrize(
    ("image", "replicas", "effects"),
    [
        ("x:2", 2, {"pods restarted": 5, "GPUs restarted": 16}),
        ("x:1", 3, {"pods added": 2, "GPUs added": 8}),
        ("x:1", 1, {"pods removed": 2, "GPUs removed": 8}),
        ("x:2", 3, {"pods restarted": 5, "GPUs restarted": 16, "pods added": 2, "GPUs added": 8}),
    ],
    ids=["image", "scaled out", "scaled in", "both"],
)
def test_reports_tell_how_many_pods_of_a_graph_without_grove_restart_come_and_go(
    lws_box: Box, engine: Engine, folder: Path, image: str, replicas: int, effects: dict[str, int]
) -> None:
    without_grove = '{nvidia.com/enable-grove: "false"}'
    engine("sync", "-f", written(folder, replicas=2, annotations=without_grove))
    snapshot = folder.parent / "snapshot.yaml"
    engine("snapshot", "--out", snapshot)
    changed = written(folder, "changed.yaml", replicas=replicas, annotations=without_grove)
    changed.write_text(changed.read_text().replace("x:1", image))

    for options in ((), ("--against", snapshot), ("-o", "markdown"), ("-o", "html")):
        answer = engine("diff", "-f", changed, *options)
        texts = [
            f"{effects[f'pods {word}']} pods {word} ({effects[f'GPUs {word}']} GPUs)"
            for word in ("restarted", "added", "removed")
            if f"pods {word}" in effects
        ]
        assert all(text in answer.out for text in texts), answer
    (root,) = engine("diff", "-f", changed, "-o", "json").document["roots"]
    assert root["forecast"]["effects"] == effects


def test_the_note_about_names_is_shown_once_for_a_new_graph_and_its_set(engine: Engine, folder: Path) -> None:
    preview, document = (
        engine("diff", "-v", "-f", written(folder), "--against", "empty"),
        engine("diff", "-f", written(folder), "--against", "empty", "-o", "json"),
    )

    assert preview.out.count("it does not exist yet") == 1
    assert f"PodCliqueSet/default/llm: create (part of {DGD})\n" in preview.out
    graph, nested = document.document["roots"]
    assert (graph["parent"], nested["parent"]) == (None, graph["root"])
    created = sum(operation["verb"] == "create" for root in document.document["roots"] for operation in root["operations"])
    assert document.document["summary"]["create"] == created


def test_what_a_graph_and_its_set_wait_for_is_counted_once(box: Box, engine: Engine, folder: Path) -> None:
    engine("sync", "-f", written(folder, mounts="[{name: models, mountPoint: /models}]"), "--no-wait")

    document = engine("diff", "-o", "json").document
    pending = [json.dumps(wait["object"]) for root in document["roots"] for wait in root["pending"]]
    assert document["summary"]["pending"] == len(set(pending)) < len(pending)


def review(operation: str, new: dict[str, Any] | None, old: dict[str, Any] | None = None) -> str:
    """An AdmissionReview of a graph, on one line."""
    request = {
        "uid": operation.lower(),
        "operation": operation,
        "kind": {"group": "nvidia.com", "version": "v1alpha1", "kind": "DynamoGraphDeployment"},
        "resource": {"group": "nvidia.com", "version": "v1alpha1", "resource": "dynamographdeployments"},
        "namespace": "default",
        "name": "llm",
        "userInfo": {"username": "user"},
        "object": new,
        "oldObject": old,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def test_reviews_of_graphs_are_answered_with_warnings(engine: Engine, folder: Path) -> None:
    graph = load(written(folder))
    changed = json.loads(json.dumps(graph).replace("vllm", "sglang"))
    mismatch = load(written(folder, "other.yaml"))
    mismatch["spec"]["services"]["decode"]["resources"]["limits"]["gpu"] = "2"
    file = folder / "reviews.json"
    file.write_text("\n".join((review("CREATE", mismatch), review("UPDATE", changed, graph), review("DELETE", None, graph))))

    answers = engine("review", "-f", file)
    created, updated, deleted = (json.loads(line)["response"] for line in answers.out.splitlines() if line.startswith("{"))
    assert answers.code == Exit.DENIED
    assert created["allowed"] and any("tensor parallel size 8" in warning for warning in created["warnings"])
    assert not updated["allowed"] and "backendFramework" in updated["status"]["message"]
    assert deleted["allowed"]


def test_preflight_checks_the_kind_and_the_rights_of_graphs(box: Box, engine: Engine) -> None:
    assert "CRD dynamographdeployments.nvidia.com" in engine("preflight").out


def test_the_definition_of_graphs_is_among_the_manifests(engine: Engine) -> None:
    assert "name: dynamographdeployments.nvidia.com" in engine("manifests", "crds").out


def test_the_add_ons_that_these_tests_name_exist() -> None:
    assert {"lws", "volcano"} <= set(ADDONS)


def test_a_rewrite_from_components_to_grove_tries_the_pods_of_the_new_set(lws_box: Box, engine: Engine, folder: Path) -> None:
    assert engine("sync", "-f", written(folder, annotations='{nvidia.com/enable-grove: "false"}')).code == Exit.DONE

    shown = engine("diff", "--allow-replace", "-f", written(folder))

    assert shown.code == Exit.DONE
    assert "1 PodCliqueSet" in shown.out and "delete LeaderWorkerSet/llm-decode-0" in shown.out
    assert "not asked" not in shown.out


def test_a_gang_whose_pods_are_not_created_does_not_wait_for_room(box: Box, engine: Engine, folder: Path) -> None:
    file = written(folder)
    file.write_text(file.read_text().replace("vllm", "trtllm"))
    engine("sync", "--no-wait", "-f", file)
    box.wait_for(kinds.POD, lambda pod: any(each.get("reason") == "Unschedulable" for each in pod["status"].get("conditions", ())))

    shown = engine("status").out

    assert "Secret mpirun-ssh-key-llm-decode does not exist" in shown
    assert "waits for room" not in shown
