"""`engine manifests`: what it prints can be applied, and deploy/ contains the definitions that it prints."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_group

from engine.errors import InputError
from enginectl.base.exit_codes import Exit, UsageError
from enginectl.commands.manifests import manifests
from resources.schema.crds import crds
from tests.enginectl.calling import Engine, finished

DEPLOYED = Path(__file__).parents[2] / "deploy" / "crds"
FILES = [
    "grove.io_clustertopologybindings.yaml",
    "grove.io_podcliques.yaml",
    "grove.io_podcliquescalinggroups.yaml",
    "grove.io_podcliquesets.yaml",
    "nvidia.com_dynamographdeployments.yaml",
    "nvidia.com_dynamographdeploymentscalingadapters.yaml",
    "scheduler.grove.io_podgangs.yaml",
]


def manifest(*arguments: str) -> Any:
    """The exit code of `engine manifests` with these arguments."""
    return get_group(manifests).main(list(arguments), standalone_mode=False)


def test_the_text_is_a_stream_of_all_definitions(capsys: pytest.CaptureFixture[str]) -> None:
    assert manifest("crds") == Exit.DONE

    assert list(yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)) == list(crds())


def test_the_json_is_one_versioned_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert manifest("crds", "-o", "json") == Exit.DONE

    assert json.loads(capsys.readouterr().out) == {"version": 1, "objects": list(crds())}


def test_the_deployed_definitions_are_those_that_the_command_writes(tmp_path: Path) -> None:
    # In a process of its own, as users run it.
    assert finished("manifests", "crds", "--dir", tmp_path, fresh=True).code == Exit.DONE

    assert {file.name: file.read_text() for file in DEPLOYED.iterdir()} == {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert sorted(file.name for file in DEPLOYED.iterdir()) == FILES


def test_a_folder_and_json_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out -o json"):
        manifest("crds", "--dir", str(tmp_path), "-o", "json")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match=r"file/grove\.io_podcliques\.yaml: (file exists|not a directory)"):
        manifest("crds", "--dir", str(tmp_path / "file"))


AUTO = "network:\n  autoMNNVLEnabled: true\n"
PROTECTED = "authorizer:\n  enabled: true\n  exemptServiceAccountUserNames: [system:serviceaccount:kube-system:gc]\n"
HEADER = "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"


def policies(engine: Engine, *arguments: str) -> list[Any]:
    """The objects that `engine manifests policies` prints."""
    result = engine("manifests", "policies", *arguments)
    assert result.code == Exit.DONE, result.err
    return list(yaml.load_all(result.out, yaml.CSafeLoader))


def expressions(objects: list[Any]) -> str:
    """The CEL expressions of these objects."""
    return json.dumps([body["spec"] for body in objects])


def configured(folder: Path, text: str) -> tuple[str, str]:
    """The option that names a configuration file with this text."""
    file = folder / "operator.yaml"
    file.write_text(HEADER + text)
    return "--config", str(file)


def test_each_policy_has_a_binding_and_denies_on_failure(engine: Engine) -> None:
    objects = policies(engine)

    names = [(body["kind"], body["metadata"]["name"]) for body in objects]
    assert names == [
        (kind, f"{plural}.engine.grove.io")
        for plural in (
            "podcliquesets",
            "clustertopologybindings",
            "scales",
            "dynamographdeploymentscalingadapters",
            "dynamographdeployments",
        )
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    ]
    assert {body["spec"].get("failurePolicy", "Fail") for body in objects} == {"Fail"}


def test_what_policies_cannot_state_is_listed(engine: Engine) -> None:
    assert "# - circular dependencies in startsAfter\n" in engine("manifests", "policies").out
    assert "circular dependencies in startsAfter" in engine("manifests", "policies", "-o", "json").document["notStated"]


def test_policies_follow_the_configuration(engine: Engine, tmp_path: Path) -> None:
    off, on = policies(engine), policies(engine, *configured(tmp_path, AUTO))

    assert "MNNVL is not enabled in the operator configuration" in expressions(off)
    assert "MNNVL is not enabled in the operator configuration" not in expressions(on)
    assert "explicit ComputeDomain annotations require opting out" in expressions(on)


def test_without_graphs_no_policy_is_about_them(engine: Engine, tmp_path: Path) -> None:
    assert "dynamographdeployments" not in expressions(policies(engine, *configured(tmp_path, "dynamo: {enabled: false}\n")))


def test_enrolment_is_a_mutating_policy_on_request(engine: Engine, tmp_path: Path) -> None:
    option = configured(tmp_path, AUTO)

    assert "MutatingAdmissionPolicy" not in {body["kind"] for body in policies(engine, *option)}
    assert "MutatingAdmissionPolicy" in {body["kind"] for body in policies(engine, "--mutating", *option)}
    assert "MutatingAdmissionPolicy" not in {body["kind"] for body in policies(engine, "--mutating")}


def test_protection_needs_the_account_of_the_engine(engine: Engine, tmp_path: Path) -> None:
    option = configured(tmp_path, PROTECTED)

    refused = engine("manifests", "policies", *option)
    assert (refused.code, "--service-account NAMESPACE/NAME" in refused.err) == (Exit.USAGE, True)
    assert engine("manifests", "policies", *option, "--service-account", "nonsense").code == Exit.USAGE
    protecting = policies(engine, *option, "--service-account", "grove/engine")
    assert "system:serviceaccount:grove:engine" in expressions(protecting)
    assert "system:serviceaccount:kube-system:gc" in expressions(protecting)


def test_the_roles_follow_the_configuration_and_the_namespace(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "operator.yaml"
    file.write_text("scheduler: {profiles: [{name: kai-scheduler}]}\nleaderElection: {resourceNamespace: here}\n")

    plain, configured = (
        engine("manifests", "rbac", "-n", "here", "-o", "json", *config).document["objects"] for config in ((), ("--config", str(file)))
    )

    before, after = (
        {name for body in objects for rule in body.get("rules", ()) for name in rule.get("resources", ())}
        for objects in (plain, configured)
    )
    assert after - before == {"topologies", "clustertopologybindings/finalizers"}
    for objects in (plain, configured):
        assert {body["metadata"].get("namespace", "here") for body in objects} == {"here", "kube-public"}


def test_an_account_needs_a_name_that_kubernetes_accepts(engine: Engine) -> None:
    assert engine("manifests", "rbac", "--service-account", "No Name").code == Exit.USAGE
