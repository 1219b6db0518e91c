"""Commands that need no cluster."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.version import VERSION
from enginectl.base.exit_codes import Exit
from tests.enginectl.calling import ROOT, Engine, environment

EXAMPLES = ROOT / "examples"
SIMPLE = EXAMPLES / "00-simple"

SET = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: x
spec:
  template:
    cliques:
      - name: a
        spec:
          roleName: a
          replicas: 1
          podSpec:
            containers: [{name: main, image: i}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a valid set."""
    path = tmp_path / "x.yaml"
    path.write_text(SET)
    return path


def names(document: dict[str, list[dict[str, dict[str, str]]]], kind: str) -> list[str]:
    """The names of the objects of a kind, in order."""
    return [str(body["metadata"]["name"]) for body in document["objects"] if str(body["kind"]) == kind]


def test_faults_of_files_that_cannot_be_read_and_of_manifests_are_reported_together(engine: Engine, file: Path) -> None:
    file.write_text(SET.replace("roleName", "rolename"))
    (file.parent / "y.yaml").write_text("a: ]")
    (file.parent / "z.yaml").write_bytes(SET.encode("utf-16-le"))

    answer = engine("diff", "-f", file.parent, "--against", "empty")

    assert answer.code == Exit.FAILED
    for fault in (
        "x.yaml:10: spec.template.cliques[0].spec.rolename: unknown field",
        "y.yaml:1: not YAML",
        "z.yaml:1: not YAML: control characters are not allowed",
    ):
        assert fault in answer.err


@pytest.mark.parametrize("words", [("-f", ""), ("--filename=",), ("-f", SIMPLE, "--out", ""), ("-f", SIMPLE, "--config", "")])
def test_the_empty_name_of_a_variable_that_is_not_set_names_no_file(engine: Engine, words: tuple[str, ...]) -> None:
    answer = engine("diff", *words, "--against", "empty")

    assert (answer.code, answer.messages[0]) == (Exit.USAGE, f"engine: {words[-2:][0].rstrip('=')} needs the name of a file")


def test_the_simple_example_renders_to_every_kind_of_object(engine: Engine) -> None:
    answer = engine("render", "-f", SIMPLE, "-o", "json")
    document = answer.document

    assert (answer.code, document["version"]) == (Exit.DONE, 1)
    assert sorted(names(document, "PodClique")) == ["simple1-0-pca", "simple1-0-pcd", "simple1-0-sga-0-pcb", "simple1-0-sga-0-pcc"]
    assert names(document, "PodCliqueScalingGroup") == ["simple1-0-sga"]
    assert names(document, "PodGang") == names(document, "Service") == ["simple1-0"]
    assert sorted(names(document, "HorizontalPodAutoscaler")) == ["simple1-0-pca", "simple1-0-sga"]
    assert [*names(document, "Role"), *names(document, "RoleBinding")] == ["grove.io:pcs:simple1"] * 2
    assert [*names(document, "ServiceAccount"), *names(document, "Secret")] == ["simple1", "simple1-ic-sat"]
    assert len(names(document, "Pod")) == 9


def test_owners_that_do_not_exist_yet_have_a_placeholder_as_uid(engine: Engine) -> None:
    bodies = {(body["kind"], body["metadata"]["name"]): body for body in engine("render", "-f", SIMPLE, "-o", "json").document["objects"]}

    (owner,) = bodies["PodClique", "simple1-0-sga-0-pcb"]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == (
        "PodCliqueScalingGroup",
        "simple1-0-sga",
        "(uid of PodCliqueScalingGroup/default/simple1-0-sga)",
    )


def test_what_is_rendered_and_previewed_is_the_same_in_every_process_and_whatever_the_order_of_files(tmp_path: Path) -> None:
    one, two = (["-f", shutil.copy(EXAMPLES / name, tmp_path)] for name in ("00-simple/simple.yaml", "03-scaling-group/group.yaml"))
    empty = ["diff", "--against", "empty"]
    commands = [["render", "-o", "json"], ["render", "-o", "yaml"], [*empty, "-v"], [*empty, "-o", "json"], [*empty, "-o", "html"]]
    program = "import sys, json; from enginectl.main import app; print({*map(app, json.loads(sys.argv[1]))} == {0})"

    outputs = []
    for seed, files in (("1", [*one, *two]), ("2", [*two, *one])):
        words = json.dumps([[*command, *files] for command in commands])
        command = [sys.executable, "-c", program, words]
        outputs.append(subprocess.check_output(command, env=environment(PYTHONHASHSEED=seed), text=True))

    assert outputs[0].endswith("True\n") and len(outputs[0]) > 100_000
    assert outputs[0] == outputs[1]


def test_an_object_that_depends_on_the_cluster_is_left_out_of_a_rendering_with_a_note(engine: Engine, file: Path) -> None:
    shared = SET.replace("    cliques:", "    resourceSharing: [{name: theirs, scope: AllReplicas}]\n    cliques:")
    file.write_text(shared.replace("spec:\n  template", "spec:\n  replicas: 1\n  template"))

    answer = engine("render", "-f", file, "-o", "json")

    assert names(answer.document, "ResourceClaim") == []
    assert len(names(answer.document, "Pod")) == 1
    assert "note: ResourceClaim/default/x-all-theirs is left out: failed to get external ResourceClaimTemplate default/theirs" in answer.err


def test_a_preview_against_nothing_shows_a_create_for_every_object_that_is_rendered(engine: Engine) -> None:
    rendered = engine("render", "-f", SIMPLE, "-o", "json").document["objects"]
    (root,) = engine("diff", "-f", SIMPLE, "--against", "empty", "-o", "json").document["roots"]

    assert {operation["verb"] for operation in root["operations"]} == {"create"}
    assert sorted((one["object"]["kind"], one["object"]["name"]) for one in root["operations"]) == sorted(
        (body["kind"], body["metadata"]["name"]) for body in rendered
    )
    manifests = {one["key"]: one["manifest"] for one in root["operations"]}
    assert manifests["create /Service/default/simple1-0"] in rendered


def test_changes_have_an_exit_code_only_with_the_option(engine: Engine, file: Path) -> None:
    plain = engine("diff", "-f", file, "--against", "empty")
    detailed = engine("diff", "-f", file, "--against", "empty", "--detailed-exitcode")
    nothing = engine("diff", "--against", "empty", "--detailed-exitcode")

    assert (plain.code, plain.last) == (Exit.DONE, "exit 0: done")
    assert (detailed.code, detailed.last) == (Exit.CHANGES, "exit 2: there are changes")
    assert (nothing.code, nothing.out) == (Exit.DONE, "No changes.\nexit 0: done\n")


def test_stdout_is_one_json_document_and_notes_go_to_stderr(engine: Engine, file: Path) -> None:
    file.write_text(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: team}}\n---\n{SET}")

    answer = engine("diff", "-f", file, "--against", "empty", "-o", "json", "--detailed-exitcode")

    assert (answer.code, answer.document["version"]) == (Exit.CHANGES, 2)
    taken = "PodCliqueSets, ClusterTopologyBindings and DynamoGraphDeployments"
    note = f"note: {file}:1: Namespace team is ignored: the engine takes {taken} only"
    assert answer.err == f"{note}\nexit 2: there are changes\n"


def test_manifests_may_come_on_standard_input(file: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "enginectl", "render", "-f", "-"],
        input=SET,
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"},
    )

    assert "name: grove.io:pcs:x" in process.stdout


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("roleName: a", "roleNmae: a", ":10: spec.template.cliques[0].spec.roleNmae: unknown field: did you mean roleName?"),
        (
            "roleName: a",
            "terminationDelay: 1s",
            ":10: spec.template.cliques[0].spec.terminationDelay: unknown field: did you mean spec.templ",
        ),
        ("replicas: 1", "replicas: one", ':11: spec.template.cliques[0].spec.replicas: must be an integer, got "one"'),
        ("replicas: 1", "replicas: yes", ":11: spec.template.cliques[0].spec.replicas: must be an integer, got true"),
        ("podSpec:", "podSpec: [", ":14: not YAML:"),
        ("      - name: a\n", "      - name: a\n        name: b\n", ":9: the key name appears twice"),
    ],
)
def test_a_fault_in_a_manifest_is_reported_with_its_line_and_field(
    engine: Engine, file: Path, before: str, after: str, message: str
) -> None:
    file.write_text(SET.replace(before, after, 1))

    answer = engine("diff", "-f", file, "--against", "empty")

    assert (answer.code, answer.out) == (Exit.FAILED, "")
    assert f"engine: {file}{message}" in answer.err
    assert answer.err.endswith("exit 1: failed\n")


def test_two_of_one_name_are_refused_with_both_places(engine: Engine, file: Path) -> None:
    file.write_text(f"{SET}---\n{SET}")

    answer = engine("render", "-f", file)

    assert (answer.code, answer.err.splitlines()[0]) == (
        Exit.FAILED,
        f"engine: {file}:15: PodCliqueSet/default/x appears twice, first at {file}:1",
    )


def test_a_rejected_set_is_reported_and_the_others_are_planned(engine: Engine, file: Path) -> None:
    file.write_text(SET + "    podCliqueScalingGroups: [{name: g, cliqueNames: [nobody]}]\n---\n" + SET.replace("name: x", "name: z", 1))

    answer = engine("diff", "-f", file, "--against", "empty")

    assert answer.code == Exit.FAILED
    assert 'spec.template.podCliqueScalingGroups[0].cliqueNames: Invalid value: "nobody": unidentified PodClique names found' in answer.out
    assert "default/z: create\n" in answer.out and "default/x: no changes, INVALID\n" in answer.out


def test_no_secret_is_shown(engine: Engine) -> None:
    for words in (("render",), ("diff", "--against", "empty", "-o", "json")):
        assert json.dumps("(masked)") not in engine(*words, "-f", SIMPLE).out  # There is none to mask: a token Secret is made empty.


def test_unknown_fields_of_the_operator_configuration_are_ignored_with_a_warning(engine: Engine, file: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("authorizer:\n  reconcilerServiceAccountUserName: x\nlogLevel: info\n")

    answer = engine("render", "-f", file, "--config", config)

    assert (answer.code, answer.err) == (
        Exit.DONE,
        f"warning: {config}:2: authorizer.reconcilerServiceAccountUserName is unknown and ignored\n",
    )


def test_the_image_of_the_init_container_can_be_configured_and_is_pinned_to_this_release(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("initContainer: {image: mirror.example:5000/waiter}\n")

    def images(*words: str | Path) -> set[str]:
        bodies = engine("render", "-f", EXAMPLES / "02-start-order", "-o", "json", *words).document["objects"]
        return {one["image"] for body in bodies if body["kind"] == "Pod" for one in body["spec"].get("initContainers", ())}

    monkeypatch.delenv("GROVE_INIT_CONTAINER_IMAGE", raising=False)
    assert images() == {f"grove-initc:{VERSION}"}
    assert images("--config", config) == {f"mirror.example:5000/waiter:{VERSION}"}
    monkeypatch.setenv("GROVE_INIT_CONTAINER_IMAGE", "theirs:7")
    assert images("--config", config) == {"theirs:7"}


def test_an_invalid_configuration_is_reported_with_its_line(engine: Engine, file: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("logLevel: info\nleaderElection:\n  leaseDuration: 5s\n")

    answer = engine("render", "-f", file, "--config", config)

    assert answer.code == Exit.USAGE
    assert answer.err.startswith(f"engine: {config}:3: leaderElection.leaseDuration: ")


def test_a_plan_is_written_as_one_html_document(engine: Engine, file: Path) -> None:
    answer = engine("diff", "-f", file, "--against", "empty", "-o", "html")

    assert (answer.code, answer.err) == (Exit.DONE, "")
    assert answer.out.startswith("<!DOCTYPE html>") and answer.out.endswith("</html>\n")
    assert "PodCliqueSet/default/x" in answer.out


def test_html_shows_a_plan_and_no_result(engine: Engine, file: Path) -> None:
    answer = engine("sync", "-f", file, "-o", "html")

    assert answer.code == Exit.USAGE
    assert "-o html shows a plan: it needs --dry-run" in answer.err
