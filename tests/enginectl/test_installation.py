"""`engine manifests all` and its parts: a whole installation from the command line."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.version import VERSION
from enginectl.base.exit_codes import Exit
from resources.base.labels import MANAGED_BY
from tests.enginectl.calling import Engine

Body = dict[str, Any]


def printed(engine: Engine, *words: str | Path) -> list[Body]:
    """The objects that `engine manifests` prints for these words."""
    result = engine("manifests", *words)
    assert result.code == Exit.DONE, result.err
    return list(yaml.load_all(result.out, yaml.CSafeLoader))


def only(objects: list[Body], kind: str) -> Body:
    """The only object of a kind."""
    (body,) = (body for body in objects if body["kind"] == kind)
    return body


def kinds(objects: list[Body]) -> list[str]:
    """The kinds of the objects, each once, in order."""
    return list(dict.fromkeys(body["kind"] for body in objects))


def configuration(objects: list[Body]) -> Any:
    """The operator configuration that an installation has."""
    (own,) = (body for body in objects if body["kind"] == "ConfigMap" and body["metadata"]["namespace"] != "kube-public")
    return yaml.load(own["data"]["config.yaml"], yaml.CSafeLoader)


def test_an_installation_is_in_an_order_in_which_it_can_be_applied(engine: Engine) -> None:
    assert kinds(printed(engine, "all")) == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Secret",
        "Lease",
        "Service",
        "PodDisruptionBudget",
        "Deployment",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ]


def test_the_same_choices_give_the_same_bytes(engine: Engine) -> None:
    words = ("manifests", "all", "--ui", "--network-policy", "--service-monitor")

    assert engine(*words).out == engine(*words).out


def test_the_json_is_one_versioned_document_with_the_same_objects(engine: Engine) -> None:
    document = engine("manifests", "all", "-o", "json").document

    assert document == {"version": 1, "objects": printed(engine, "all")}


def test_no_object_of_an_installation_counts_as_an_object_of_a_set(engine: Engine) -> None:
    objects = printed(engine, "all", "--no-crds", "--service-monitor", "--network-policy")

    assert [body["metadata"]["name"] for body in objects if MANAGED_BY in body["metadata"]["labels"]] == []


def test_the_pods_are_restricted_and_have_a_token_that_expires(engine: Engine) -> None:
    pod = only(printed(engine, "deployment"), "Deployment")["spec"]["template"]["spec"]

    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    (token,) = (
        source for volume in pod["volumes"] for source in volume.get("projected", {}).get("sources", ()) if "serviceAccountToken" in source
    )
    assert token["serviceAccountToken"] == {"path": "token", "expirationSeconds": 43200}


def test_the_lease_is_in_the_namespace_of_the_installation(engine: Engine) -> None:
    objects = printed(engine, "deployment", "-n", "engine")

    assert configuration(objects)["leaderElection"]["resourceNamespace"] == "engine"
    assert only(objects, "Lease")["metadata"]["namespace"] == "engine"


def test_the_configuration_is_what_the_file_says_over_the_defaults(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "operator.yaml"
    file.write_text("server: {webhooks: {port: 443}}\nnetwork: {autoMNNVLEnabled: true}\nscheduler: {profiles: []}\n")

    objects = printed(engine, "deployment", "--config", file)

    installed = configuration(objects)
    assert installed["network"] == {"autoMNNVLEnabled": True}
    assert installed["scheduler"] == {"profiles": []}
    assert (installed["server"]["webhooks"]["port"], installed["server"]["metrics"]["port"]) == (443, 9445)
    assert [port["port"] for port in only(objects, "Service")["spec"]["ports"]] == [443, 9445]


def test_without_a_port_for_webhooks_the_error_says_what_else_judges(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "operator.yaml"
    file.write_text("server: {webhooks: {port: 0}}\n")

    answer = engine("manifests", "all", "--config", file)

    assert answer.code == Exit.USAGE and "choose --admission policies or none" in answer.err
    assert engine("manifests", "all", "--config", file, "--admission", "none").code == Exit.DONE


def test_a_service_monitor_needs_a_port_to_read(engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "operator.yaml"
    config.write_text("server:\n  metrics:\n    port: 0\n")

    def monitors(*words: Any) -> list[Any]:
        return [body for body in printed(engine, "all", "--no-crds", "--service-monitor", *words) if body["kind"] == "ServiceMonitor"]

    assert len(monitors()) == 1 and monitors("--config", config) == []


def test_images_without_a_tag_get_that_of_the_release_or_the_one_that_is_given(engine: Engine) -> None:
    def images(*words: str) -> list[str]:
        container = only(printed(engine, "deployment", *words), "Deployment")["spec"]["template"]["spec"]["containers"][0]
        return [container["image"], next(each["value"] for each in container["env"] if each["name"] == "GROVE_INIT_CONTAINER_IMAGE")]

    assert images() == [f"grove-engine:{VERSION}", f"grove-initc:{VERSION}"]
    assert images("--image", "m:5000/engine", "--tag", "v2") == ["m:5000/engine:v2", "grove-initc:v2"]
    assert images("--image", "m/engine@sha256:00", "--init-image", "m/initc:v1") == ["m/engine@sha256:00", "m/initc:v1"]


def test_options_without_effect_in_the_mode_are_named(engine: Engine) -> None:
    cron = engine("manifests", "all", "--mode", "cronjob", "--replicas", "3", "--ui", "--network-policy", "--service-monitor")
    deployed = engine("manifests", "all", "--schedule", "0 * * * *", "--replicas", "3")

    assert "note: without effect with --mode cronjob: --replicas, --ui, --network-policy, --service-monitor\n" in cron.err
    assert "note: without effect with --mode deployment: --schedule\n" in deployed.err
    assert "without effect" not in engine("manifests", "all", "--mode", "cronjob", "--schedule", "0 * * * *").err


def test_a_cron_job_has_policies_and_nothing_that_serves(engine: Engine) -> None:
    objects = printed(engine, "all", "--no-crds", "--mode", "cronjob", "--schedule", "*/2 * * * *", "--timeout", "90s")

    job = only(objects, "CronJob")["spec"]
    assert (job["schedule"], job["concurrencyPolicy"]) == ("*/2 * * * *", "Forbid")
    assert "--timeout=90s" in job["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["command"][-1]
    assert {"ValidatingAdmissionPolicy", "Lease"} <= set(kinds(objects))
    assert not {"Deployment", "Service", "Secret", "MutatingWebhookConfiguration"} & set(kinds(objects))
    assert configuration(objects)["server"]["webhooks"]["port"] == 0


def test_protection_by_policies_trusts_the_account_of_the_installation(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "operator.yaml"
    file.write_text("authorizer: {enabled: true}\n")

    objects = printed(engine, "all", "--no-crds", "--admission", "policies", "--config", file, "-n", "here")

    assert "system:serviceaccount:here:grove-engine" in str([body for body in objects if "Policy" in body["kind"]])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("all", "--mode", "cronjob", "--admission", "webhooks"), "exclude each other"),
        (("cronjob", "--timeout", "soon"), "--timeout soon"),
        (("all", "-n", "Not A Name"), "--namespace Not A Name"),
        (("all", "--image", ""), "--image is empty"),
        (("all", "--shards", "101"), "--shards"),
    ],
)
def test_what_cannot_be_installed_is_refused(engine: Engine, words: tuple[str, ...], message: str) -> None:
    result = engine("manifests", *words)

    assert (result.code, message in result.err) == (Exit.USAGE, True), result.err


def test_without_leader_election_there_is_one_replica_which_ends_before_the_next_one_starts(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "operator.yaml"
    file.write_text("leaderElection: {enabled: false}")

    several = engine("manifests", "all", "--config", file)
    objects = printed(engine, "deployment", "--replicas", "1", "--config", file)

    assert (several.code, "need leader election" in several.err) == (Exit.USAGE, True), several.err
    assert [body["spec"]["strategy"] for body in objects if body["kind"] == "Deployment"] == [{"type": "Recreate"}]
