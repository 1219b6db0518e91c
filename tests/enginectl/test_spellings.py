"""Another spelling of the same pods is no change: no patch, no restart and no line, from any command's point of view."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from tests.enginectl.calling import CommandResult, Engine

Body = dict[str, Any]
PROBE = {"tcpSocket": {"port": 80}}
CONTAINER = {
    "name": "main",
    "image": "example/server:1",
    "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
    "livenessProbe": PROBE,
    "env": [{"name": "A"}],
}
POD: Body = {"containers": [CONTAINER], "volumes": [{"name": "cache", "emptyDir": {}}], "enableServiceLinks": True}

SPELLINGS: dict[str, tuple[Body, Body]] = {
    "zero values of the pod": ({"hostNetwork": False, "priorityClassName": "", "hostname": "", "nodeName": "", "subdomain": ""}, {}),
    "names that are empty": ({"serviceAccountName": "", "schedulerName": "", "imagePullSecrets": [], "tolerations": []}, {}),
    "the default scheduler": ({"schedulerName": "default-scheduler"}, {}),
    "defaults of the pod": ({"dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {}}, {}),
    "zero values of a container": ({}, {"workingDir": "", "imagePullPolicy": "", "terminationMessagePath": "", "tty": False, "args": []}),
    "defaults of a container": ({}, {"imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File", "resources": {"limits": {}}}),
    "zero values of a mount": ({}, {"volumeMounts": [{"name": "cache", "mountPath": "/cache", "subPath": "", "readOnly": False}]}),
    "zero values of a probe": ({}, {"livenessProbe": {**PROBE, "timeoutSeconds": 0, "initialDelaySeconds": 0}}),
    "defaults of a probe": ({}, {"livenessProbe": {**PROBE, "periodSeconds": 10, "failureThreshold": 3, "successThreshold": 1}}),
    "an empty variable": ({}, {"env": [{"name": "A", "value": ""}]}),
    "no volume source": ({"volumes": [{"name": "cache"}]}, {}),
}
OTHER_PODS: dict[str, tuple[Body, Body]] = {
    "automountServiceAccountToken": ({"automountServiceAccountToken": False}, {}),
    "enableServiceLinks": ({"enableServiceLinks": False}, {}),
    "securityContext": ({"securityContext": {"runAsUser": 0}}, {}),
    "nodeSelector": ({"nodeSelector": {"gpu": ""}}, {}),
    "imagePullPolicy": ({}, {"imagePullPolicy": "Always"}),
}


def manifest(pod: Body, container: Body) -> Body:
    """A set with these fields in its pod spec and its container; with a clique alone and one in a group."""
    spec = copy.deepcopy({**POD, **pod})
    spec["containers"] = [{**CONTAINER, **container}]
    cliques = [{"name": name, "spec": {"roleName": name, "replicas": 1, "podSpec": spec}} for name in ("alone", "member")]
    template = {"cliques": cliques, "podCliqueScalingGroups": [{"name": "pool", "cliqueNames": ["member"]}]}
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": metadata, "spec": {"replicas": 1, "template": template}}


def written(folder: Path, name: str, body: Body) -> Path:
    """A file with this manifest."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(body))
    return path


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("is_removed", [False, True], ids=["added", "removed"])
def test_another_spelling_changes_nothing(name: str, is_removed: bool, engine: Engine, tmp_path: Path) -> None:
    plain, spelled = written(tmp_path, "plain", manifest({}, {})), written(tmp_path, "spelled", manifest(*SPELLINGS[name]))
    base, change = (spelled, plain) if is_removed else (plain, spelled)

    result = engine("diff", "--base", base, "-f", change, "--detailed-exitcode")

    assert result.code == Exit.DONE and result.out.splitlines()[0] == "No changes."


def test_an_edit_is_shown_without_what_is_only_spelled_in_another_way(engine: Engine, tmp_path: Path) -> None:
    fields = [SPELLINGS[name] for name in SPELLINGS]
    pod, container = ({key: value for each in fields for key, value in each[side].items()} for side in (0, 1))
    base = written(tmp_path, "base", manifest({}, {}))
    change = written(tmp_path, "change", manifest(pod, {**container, "image": "example/server:2"}))

    assert changed_fields(engine("diff", "--base", base, "-f", change, "-o", "json")) == {"image"}


def changed_fields(result: CommandResult) -> set[str]:
    """The fields of pod specs that are patched in the next pass."""
    (root,) = result.document["roots"]
    changes = [change for step in root["operations"] if step["verb"] == "patch" for change in step["changes"]]
    return {change["path"].rpartition(".")[2] for change in changes if "odSpec" in change["path"]}


def test_the_scheduler_of_kubernetes_is_another_one_where_the_configuration_has_another_default(engine: Engine, tmp_path: Path) -> None:
    configuration = tmp_path / "operator.yaml"
    profiles = [{"name": "default-scheduler"}, {"name": "kai-scheduler"}]
    configuration.write_text(yaml.safe_dump({"scheduler": {"profiles": profiles, "defaultProfileName": "kai-scheduler"}}))
    queued = {"labels": {"kai.scheduler/queue": "a"}}

    def named(name: str, pod: Body) -> Path:
        body = manifest(pod, {})
        return written(tmp_path, name, {**body, "metadata": {**body["metadata"], **queued}})

    base = named("base", {})
    changes = {name: named(name, {"schedulerName": name}) for name in ("default-scheduler", "kai-scheduler")}

    codes = {
        name: engine("diff", "--config", configuration, "--base", base, "-f", change, "--detailed-exitcode").code
        for name, change in changes.items()
    }

    assert codes == {"default-scheduler": Exit.FAILED, "kai-scheduler": Exit.DONE}, "That of a stored set cannot be changed."


@pytest.mark.parametrize("field", OTHER_PODS)
def test_a_value_that_servers_keep_is_another_pod(field: str, engine: Engine, tmp_path: Path) -> None:
    base, change = written(tmp_path, "base", manifest({}, {})), written(tmp_path, "change", manifest(*OTHER_PODS[field]))

    result = engine("diff", "--base", base, "-f", change, "-o", "json")

    assert changed_fields(result) == {field}
    assert result.document["roots"][0]["forecast"]["effects"]["pods restarted"] == 2
