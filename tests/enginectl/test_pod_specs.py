"""Faults and warnings about pod specs in manifests."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from resources.base.kinds import PODCLIQUESET
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: x
spec:
  replicas: 1
  template:
    cliques:
      - name: a
        spec:
          roleName: a
          replicas: 1
          podSpec:
            containers:
              - name: main
                image: i
                SAID
"""
CONTAINER = "spec.template.cliques[0].spec.podSpec.containers[0]"
COMMANDS = [("diff", "--against", "empty"), ("render",)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the manifest goes."""
    return tmp_path / "x.yaml"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_field_of_the_wrong_type_is_reported_with_its_line_and_nothing_is_planned(
    engine: Engine, file: Path, command: tuple[str, ...]
) -> None:
    file.write_text(SET.replace("SAID", 'ports: [{containerPort: "80"}]\n                tty: 1'))

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.FAILED
    assert answer.out == ""
    assert answer.err.splitlines()[:2] == [
        f'engine: {file}:17: {CONTAINER}.ports[0].containerPort: Invalid value: "80": must be of type integer: "string"',
        f'engine: {file}:18: {CONTAINER}.tty: Invalid value: 1: must be of type boolean: "integer"',
    ]


def test_a_pod_spec_of_the_wrong_type_is_one_fault(engine: Engine, file: Path) -> None:
    file.write_text(SET[: SET.index("            containers:")] + "            - containers: []\n")

    answer = engine("render", "-f", file)

    fault = f'engine: {file}:13: {CONTAINER.rpartition(".")[0]}: Invalid value: a list: must be of type object: "array"'
    assert (answer.code, answer.messages) == (Exit.FAILED, [fault, "exit 1: failed"])


def test_a_wrong_type_of_a_field_that_the_engine_reads_too_is_one_fault(engine: Engine, file: Path, tmp_path: Path) -> None:
    file.write_text(SET.replace("SAID", "command: run"))
    (snapshot := tmp_path / "snapshot.yaml").write_text("apiVersion: engine.grove.io/v1\nkind: Snapshot\nmetadata: {name: s, uid: ''}\n")

    answer = engine("diff", "-f", file, "--against", snapshot)

    fault = f'engine: {file}:17: {CONTAINER}.command: Invalid value: "run": must be of type array: "string"'
    assert (answer.code, answer.messages) == (Exit.FAILED, [fault, "exit 1: failed"])


UNKNOWN = f"{CONTAINER}.imagePullPolice: unknown field: did you mean imagePullPolicy?"
REFUSED = f"{CONTAINER}.livenessProbe: Required value: must specify a handler type"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_typing_error_and_what_the_server_would_refuse_are_faults_with_their_lines(
    engine: Engine, file: Path, command: tuple[str, ...]
) -> None:
    file.write_text(SET.replace("SAID", "imagePullPolice: Always\n                livenessProbe: {}"))

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.FAILED
    for line in (f"{file}:17: {UNKNOWN}", f"{file}:18: {REFUSED}"):
        assert line in answer.out + answer.err
    assert "imagePullPolice: Always" not in answer.out
    assert "Plan: " not in answer.out


@pytest.mark.parametrize("command", COMMANDS)
def test_validate_makes_them_warnings_or_nothing(engine: Engine, file: Path, command: tuple[str, ...]) -> None:
    file.write_text(SET.replace("SAID", "imagePullPolice: Always\n                livenessProbe: {}"))

    warned, ignored = (engine(*command, "-f", file, "--validate", word) for word in ("warn", "ignore"))

    assert (warned.code, ignored.code) == (Exit.DONE, Exit.DONE)
    assert [line for line in warned.err.splitlines() if line.startswith("warning")] == [
        f'warning: {file}:17: unknown field "{CONTAINER}.imagePullPolice"; did you mean imagePullPolicy?',
        f"warning: {file}:18: the API server would refuse the pods: {REFUSED}",
    ]
    assert "warning" not in ignored.err
    assert command != ("render",) or "imagePullPolice: Always" in warned.out


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_cluster_a_field_that_resembles_none_is_a_warning_and_is_kept(
    engine: Engine, file: Path, command: tuple[str, ...]
) -> None:
    file.write_text(SET.replace("SAID", "quantumTunnel: true"))

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.DONE
    assert answer.err.splitlines()[:1] == [f'warning: {file}:17: unknown field "{CONTAINER}.quantumTunnel"']
    assert command != ("render",) or "quantumTunnel: true" in answer.out


def test_faults_of_the_set_and_of_its_pods_are_reported_together(engine: Engine, file: Path) -> None:
    manifest = SET.replace("SAID", "imagePullPolice: Always").replace(
        "          replicas: 1\n", "          replicas: 1\n          replcas: 2\n"
    )
    file.write_text(manifest)

    answer = engine("diff", "--against", "empty", "-f", file)

    assert answer.code == Exit.FAILED
    assert [line.partition(": ")[2] for line in answer.err.splitlines()[:2]] == [
        f"{file}:13: spec.template.cliques[0].spec.replcas: unknown field: did you mean replicas?",
        f"{file}:18: {UNKNOWN}",
    ]


def test_many_unknown_fields_are_faults_and_take_no_time_to_compare(engine: Engine, file: Path) -> None:
    fields = ", ".join(f"zz{number}: 1" for number in range(3_000))
    file.write_text(SET.replace("SAID", f"securityContext: {{{fields}}}"))

    answer = engine("render", "-f", file)

    assert answer.code == Exit.FAILED
    assert f"{CONTAINER}.securityContext.zz2999: unknown field" in answer.err


def test_what_a_base_has_already_is_not_judged_and_what_changes_is(engine: Engine, file: Path, tmp_path: Path) -> None:
    base, scaled = tmp_path / "base.yaml", tmp_path / "scaled.yaml"
    faulty = SET.replace("SAID", "livenessProbe: {}")
    base.write_text(faulty)
    scaled.write_text(faulty.replace("  replicas: 1\n  template", "  replicas: 2\n  template"))
    file.write_text(faulty.replace("image: i", "image: j"))

    kept, changed = (engine("diff", "--base", base, "-f", each) for each in (scaled, file))

    assert kept.code == Exit.DONE
    assert changed.code == Exit.FAILED
    assert REFUSED in changed.out


def test_reports_have_the_faults_of_pods_at_their_lines(engine: Engine, file: Path, tmp_path: Path) -> None:
    file.write_text(SET.replace("SAID", "imagePullPolice: Always"))
    sarif, markdown = tmp_path / "plan.sarif", tmp_path / "plan.md"

    answer = engine(
        "diff", "--against", "empty", "-f", file, "-o", "json", "--report", f"sarif={sarif}", "--report", f"markdown={markdown}"
    )

    assert answer.code == Exit.FAILED
    for text in (answer.out, sarif.read_text(), markdown.read_text()):
        assert "did you mean imagePullPolicy?" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_valid_spec_gives_no_warning(engine: Engine, file: Path, command: tuple[str, ...]) -> None:
    file.write_text(
        SET.replace("SAID", 'env:\n                resources: {limits: {cpu: 0.5, memory: 1e9}}\n                imagePullPolicy: ""')
    )

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.DONE
    assert "warning" not in answer.err


def test_outside_of_a_pod_spec_an_unknown_field_is_a_fault(engine: Engine, file: Path) -> None:
    file.write_text(SET.replace("SAID", "").replace("          replicas: 1\n", "          replicas: 1\n          replcas: 2\n"))

    answer = engine("render", "-f", file)

    assert answer.code == Exit.FAILED
    assert f"{file}:13: spec.template.cliques[0].spec.replcas: unknown field" in answer.err


def review(operation: str, spec: dict[str, Any], old: dict[str, Any] | None = None, replicas: int = 1) -> str:
    """An AdmissionReview of a set with this pod spec, in a line."""
    resource = {"group": "grove.io", "version": "v1alpha1"}
    request = {
        "uid": "u",
        "kind": {**resource, "kind": "PodCliqueSet"},
        "resource": {**resource, "resource": "podcliquesets"},
        "namespace": "default",
        "name": "x",
        "operation": operation,
        "userInfo": {"username": "somebody"},
        "object": workload(spec, replicas),
        "oldObject": None if old is None else workload(old),
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def workload(spec: dict[str, Any], replicas: int = 1) -> dict[str, Any]:
    """A set of one clique with this pod spec."""
    body: dict[str, Any] = yaml.load(SET.replace("SAID", ""), yaml.CSafeLoader)
    body["metadata"]["namespace"] = "default"
    body["spec"]["replicas"] = replicas
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"] = spec
    return body


def test_a_review_denies_wrong_types_warns_about_unknown_fields_and_keeps_old_faults(engine: Engine, file: Path) -> None:
    mistyped = {"containers": [{"name": "main", "image": 5}]}
    novel = {"containers": [{"name": "main", "imagePullPolice": "Always"}]}
    file.write_text("\n".join([review("CREATE", mistyped), review("CREATE", novel), review("UPDATE", mistyped, mistyped, replicas=3)]))

    denied, warned, borne = (json.loads(line)["response"] for line in engine("review", "-f", file).out.splitlines())

    assert [cause["field"] for cause in denied["status"]["details"]["causes"]] == [f"{CONTAINER}.image"]
    assert warned["allowed"] is True
    assert warned["warnings"] == [
        f'unknown field "{CONTAINER}.imagePullPolice"',
        f"the API server would refuse the pods: {CONTAINER}.image: Required value",
    ]
    assert (borne["allowed"], borne.get("warnings")) == (True, None)


TYPO = "imagePullPolice: Always"


def test_a_template_with_a_typing_error_costs_no_running_pod(box: Box, engine: Engine, file: Path) -> None:
    file.write_text(SET.replace("SAID", ""))
    settled = engine("sync", "-f", file, "--yes")
    before = box.revisions()
    file.write_text(SET.replace("image: i", "imgae: j").replace("SAID", ""))

    preview, refused = engine("diff", "-f", file), engine("sync", "-f", file, "--yes")

    assert (settled.code, preview.code, refused.code) == (Exit.DONE, Exit.FAILED, Exit.FAILED)
    for text in (preview.out, refused.err):
        assert f"{CONTAINER}.imgae: unknown field: did you mean image?" in text
        assert f"{CONTAINER}.image: Required value" in text
    assert box.revisions() == before


def test_a_cluster_says_which_fields_exist(box: Box, engine: Engine, file: Path) -> None:
    file.write_text(SET.replace("SAID", "quantumTunnel: true"))

    strict, warned = engine("diff", "-f", file), engine("diff", "-f", file, "--validate", "warn")

    assert strict.code == Exit.FAILED
    assert f"{CONTAINER}.quantumTunnel: unknown field" in strict.out
    assert warned.code == Exit.DONE
    assert f'unknown field "{CONTAINER}.quantumTunnel"' in warned.err


def test_a_stored_pod_spec_does_not_keep_the_rest_of_its_set_from_being_changed(box: Box, engine: Engine, file: Path) -> None:
    stored = SET.replace("SAID", TYPO)
    box.create(PODCLIQUESET, {**yaml.load(stored, yaml.CSafeLoader), "metadata": {"name": "x", "namespace": "default"}})
    file.write_text(stored.replace("  replicas: 1\n  template", "  replicas: 2\n  template"))
    scaled = engine("diff", "-f", file)
    file.write_text(stored.replace("image: i", "image: j"))
    changed = engine("diff", "-f", file)

    assert (scaled.code, changed.code) == (Exit.DONE, Exit.FAILED)
    assert "unknown field" in changed.out


def test_a_stored_set_that_a_server_would_refuse_pods_of_is_planned_with_a_note(box: Box, engine: Engine) -> None:
    stored = yaml.load(SET.replace("SAID", "livenessProbe: {}"), yaml.CSafeLoader)
    box.create(PODCLIQUESET, {**stored, "metadata": {"name": "x", "namespace": "default"}})

    preview, synced, status = engine("diff"), engine("sync", "--yes", "--no-wait"), engine("status")

    assert (preview.code, synced.code) == (Exit.DONE, Exit.DONE)
    for text in (preview.out, status.out):
        assert f"note: the API server would refuse the pods: {REFUSED}" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_a_metric_that_no_autoscaler_may_have_is_a_fault_with_its_line(engine: Engine, file: Path, command: tuple[str, ...]) -> None:
    target = "{type: Utilisation, averageUtilization: 80}"
    scaling = f"autoScalingConfig: {{maxReplicas: 2, metrics: [{{type: Resource, resource: {{name: cpu, target: {target}}}}}]}}"
    file.write_text(SET.replace("SAID", "tty: true").replace("podSpec:", f"{scaling}\n          podSpec:"))

    answer = engine(*command, "-f", file)

    assert answer.code == Exit.FAILED
    path = "spec.template.cliques[0].spec.autoScalingConfig.metrics[0].resource.target.type"
    assert f'{file}:13: {path}: Invalid value: "Utilisation": must be either Utilization, Value, or AverageValue' in answer.out + answer.err
