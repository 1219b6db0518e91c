"""The roots in a user's files, and the messages about their faults."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.errors import InputError
from engine.ids import Kind
from engine.memo import Memo
from engine.resource import Body
from enginectl.base.exit_codes import UsageError
from enginectl.input.manifest_files import IS_TEMPLATE, VALID, read_manifests
from enginectl.input.roots import Roots, select_roots
from resources.base.kinds import PODCLIQUESET
from resources.schema.issues import ErrorType, Issue

SET = "apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata:\n  name: {}\nspec:\n  template:\n    cliques:\n    - name: a\n"

KUSTOMIZATION = "this is a kustomization: -k {folder} builds it"
OLDER = "ClusterTopology has been replaced by ClusterTopologyBinding in grove.io/v1alpha1, with other fields"
KNOWN = "there are ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet"


def faultless(kind: Kind, body: Body, memo: Memo) -> Sequence[Issue]:
    """A check that finds nothing."""
    return ()


def load(*paths: Path, **rest: Any) -> Roots:
    """The roots in the files, in namespace `here` unless they say otherwise."""
    manifests = read_manifests(paths, recursive=rest.pop("recursive", False))
    return select_roots(manifests, [PODCLIQUESET], rest.pop("check", faultless), namespace="here", **rest)


def write(folder: Path, name: str, text: str) -> Path:
    """A file with that text."""
    file = folder / name
    file.write_text(text)
    return file


def names(roots: Roots) -> list[str]:
    """The names of the roots."""
    return [f"{root['metadata']['namespace']}/{root['metadata']['name']}" for root in roots.bodies]


def test_a_directory_is_read_in_the_order_of_its_names_and_other_files_are_ignored(tmp_path: Path) -> None:
    for file, name in (("b.yml", "b"), ("a.yaml", "a"), ("note.txt", "never")):
        write(tmp_path, file, SET.format(name))
    write(tmp_path, "c.json", '{"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "c", "namespace": "x"}}')

    assert names(load(tmp_path)) == ["here/a", "here/b", "x/c"]


def test_directories_in_a_directory_are_read_only_on_request_and_hidden_and_linked_ones_never(tmp_path: Path) -> None:
    for folder, name in ((tmp_path, "top"), (tmp_path / "b", "b"), (tmp_path / "a" / "c", "c"), (tmp_path / ".git", "never")):
        folder.mkdir(parents=True, exist_ok=True)
        write(folder, f"{name}.yaml", SET.format(name))
    (tmp_path / "loop").symlink_to(tmp_path)

    assert names(load(tmp_path)) == ["here/top"]
    assert names(load(tmp_path, recursive=True)) == ["here/top", "here/c", "here/b"]


def test_a_pattern_stands_for_the_files_that_match_and_a_file_of_that_name_for_itself(tmp_path: Path) -> None:
    for name in ("b", "a", "[c]"):
        write(tmp_path, f"{name}.yaml", SET.format(name.strip("[]")))

    assert names(load(tmp_path / "?.yaml")) == ["here/a", "here/b"]
    assert names(load(tmp_path / "[c].yaml")) == ["here/c"]
    with pytest.raises(UsageError, match=r"x\*\.yaml: no such file or directory$"):
        load(tmp_path / "x*.yaml")


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("p.json", '{"version": 1, "kind": "SavedPlan"}', "this is a saved plan: engine sync --plan applies it, engine show shows it"),
        ("s.yaml", "apiVersion: engine.grove.io/v1\nkind: Snapshot", "this is a snapshot: --against takes it"),
        ("d.json", '{"version": 2, "kind": "Diff"}', "this is a report of engine diff; --out saves a plan"),
        ("kustomization.yaml", "resources: [a.yaml]", KUSTOMIZATION),
        ("kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization", KUSTOMIZATION),
    ],
)
def test_a_file_that_something_else_takes_says_what(tmp_path: Path, name: str, text: str, fault: str) -> None:
    file = write(tmp_path, name, text)

    with pytest.raises(InputError) as error:
        load(file)

    assert str(error.value) == f"{file}:1: {fault.format(folder=tmp_path)}"


def test_a_kustomization_may_be_of_another_program(tmp_path: Path) -> None:
    file = write(tmp_path, "kustomization.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: f}")

    assert load(file).notes == (f"{file}:1: Kustomization f is ignored: the engine takes PodCliqueSets only",)


def test_lists_are_flattened_and_their_entries_know_their_lines(tmp_path: Path) -> None:
    entries = "\n".join(
        f"- apiVersion: grove.io/v1alpha1\n  kind: PodCliqueSet\n  metadata:\n    name: {name}\n  spec: {{}}" for name in ("a", "b")
    )
    file = write(tmp_path, "list.yaml", f"apiVersion: v1\nkind: List\nitems:\n{entries}\n")

    with pytest.raises(InputError, match=rf"^{file}:13: spec\.replicas: must be whole$"):
        load(file, check=lambda _, body, memo: [BAD] if body["metadata"]["name"] == "b" else [])


BAD = Issue(("spec", "replicas"), ErrorType.MALFORMED, "must be whole")


def test_kinds_that_are_not_roots_are_noted_with_their_place(tmp_path: Path) -> None:
    file = write(tmp_path, "f.yaml", f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: team}}\n---\n{SET.format('a')}")

    roots = load(file)

    assert (names(roots), roots.notes) == (["here/a"], (f"{file}:1: Namespace team is ignored: the engine takes PodCliqueSets only",))


def test_many_kinds_that_are_not_roots_are_one_note(tmp_path: Path) -> None:
    others = "---\n".join(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\n" for number in range(8))
    file = write(tmp_path, "f.yaml", f"{others}---\n{SET.format('a')}")

    (note,) = load(file).notes

    assert note.startswith(f"{file}:1: ConfigMap c0 is ignored: the engine takes PodCliqueSets only; so are {file}:5: ConfigMap c1, ")
    assert note.endswith(f"{file}:21: ConfigMap c5 and 2 more")


def test_every_fault_is_reported_with_the_line_of_its_field(tmp_path: Path) -> None:
    file = write(tmp_path, "f.yaml", SET.format("a"))
    cliques = ("spec", "template", "cliques", 0)
    faults = [
        Issue((*cliques, "name"), ErrorType.INVALID, "too short", "a"),
        Issue((*cliques, "spec", "roleName"), ErrorType.REQUIRED),
        Issue(("metadata", "labels", "a.b/c"), ErrorType.UNKNOWN),
    ]

    with pytest.raises(InputError) as error:
        load(file, check=lambda *_: faults)

    assert str(error.value).splitlines() == [
        f"{file}:3: metadata.labels[a.b/c]: unknown field",
        f'{file}:8: spec.template.cliques[0].name: Invalid value: "a": too short',
        f"{file}:8: spec.template.cliques[0].spec.roleName: Required value",
    ]


def test_files_that_cannot_be_read_are_reported_together_after_the_objects_of_the_others(tmp_path: Path) -> None:
    a, c = write(tmp_path, "a.yaml", "a: ]"), write(tmp_path, "c.yaml", "a: 1\na: 2")
    write(tmp_path, "b.yaml", SET.format("b"))
    read: list[str] = []

    with pytest.raises(InputError) as error:
        read.extend(each.body["metadata"]["name"] for each in read_manifests([tmp_path]))

    assert read == ["b"]
    assert [line.partition(": ")[0] for line in str(error.value).splitlines()] == [f"{a}:1", f"{c}:2"]


def test_a_link_that_leads_nowhere_is_no_file_to_leave_out(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", SET.format("a"))
    (tmp_path / "b.yaml").symlink_to("gone")

    with pytest.raises(InputError, match=r"b\.yaml: no such file or directory$"):
        load(tmp_path)


def test_a_link_that_leads_nowhere_hides_no_fault_of_other_files(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "a: [")
    (tmp_path / "b.yaml").symlink_to("gone")
    write(tmp_path, "c.yaml", "c: [")

    with pytest.raises(InputError) as error:
        load(tmp_path)

    assert [line.split(":")[0].rpartition("/")[2] for line in str(error.value).splitlines()] == ["a.yaml", "b.yaml", "c.yaml"]


def test_the_lock_of_a_file_that_is_open_in_an_editor_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", SET.format("a"))
    (tmp_path / ".#a.yaml").symlink_to("user@host.123")

    assert names(load(tmp_path)) == ["here/a"]


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: grove.io/v1alpha1\nkind: PodCliqueSetList\nitems:\n- {metadata: {name: a}, spec: {}}\n",
        "kind: List\nitems:\n- {apiVersion: grove.io/v1alpha1, kind: PodCliqueSet, metadata: {name: a}, spec: {}}\n",
        f"apiVersion: v1\nkind: List\nitems:\n---\n{SET.format('a')}",
    ],
)
def test_the_items_of_a_list_of_one_kind_need_no_kind_and_a_list_no_version(tmp_path: Path, text: str) -> None:
    assert names(load(write(tmp_path, "l.yaml", text))) == ["here/a"]


def test_the_items_of_a_list_are_a_list(tmp_path: Path) -> None:
    file = write(tmp_path, "l.yaml", "apiVersion: v1\nkind: List\nitems: {a: b}\n")

    with pytest.raises(InputError, match=f"^{file}:3: items: must be a list$"):
        load(file)


def test_two_manifests_of_one_name_are_refused_with_both_places(tmp_path: Path) -> None:
    one, two = write(tmp_path, "1.yaml", SET.format("a")), write(tmp_path, "2.yaml", f"# again\n---\n{SET.format('a')}")

    with pytest.raises(InputError, match=f"^{two}:3: PodCliqueSet/here/a appears twice, first at {one}:1$"):
        load(tmp_path)


def test_one_name_in_two_namespaces_is_two_objects(tmp_path: Path) -> None:
    write(tmp_path, "1.yaml", SET.format("a"))
    write(tmp_path, "2.yaml", SET.format("a\n  namespace: there"))

    assert names(load(tmp_path)) == ["here/a", "there/a"]


def test_a_manifest_for_another_namespace_is_refused_if_one_is_given(tmp_path: Path) -> None:
    file = write(tmp_path, "f.yaml", SET.format("a\n  namespace: there"))

    with pytest.raises(InputError, match=f"^{file}:5: the namespace is there, but --namespace is here$"):
        load(file, forced=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("just text\n", ":1: a manifest must be a map with apiVersion and kind"),
        ("kind: PodCliqueSet\n", ":1: apiVersion is missing or not a string"),
        ("kind: PodCliqueSet\napiversion: v1\n", ":2: apiversion: unknown field: did you mean apiVersion?"),
        ("apiVersion: v1\nknid: PodCliqueSet\n", ":2: knid: unknown field: did you mean kind?"),
        ("apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nMetadata: {}\n", ":3: Metadata: unknown field: did you mean metadata?"),
        (
            "apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata:\n  namespace: x\n  Name: y\n",
            ":5: metadata.Name: unknown field: did you mean name?",
        ),
        ("# c\napiVersion: v1\nkind: 3\n", ":3: kind is missing or not a string"),
        ("apiVersion: grove.io/v1beta1\nkind: PodCliqueSet\n", ":1: PodCliqueSet is supported as grove.io/v1alpha1 only"),
        ("apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\n", ":1: metadata is missing or not a map"),
        (
            "apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata:\n  generateName: x\n",
            ":3: metadata.name is missing",
        ),
        (SET.format("12"), ":4: metadata.name must be a valid name, got 12: quote it"),
        (SET.format("y"), ":4: metadata.name must be a valid name, got true: quote it"),
        (SET.format("[x]"), ":4: metadata.name must be a valid name, got a list"),
        (SET.format("Mine"), f':4: metadata.name must be a valid name, got "Mine": {VALID}'),
        (SET.format("../up"), f':4: metadata.name must be a valid name, got "../up": {VALID}'),
        ("a: [b\n", ":2: not YAML: did not find expected ',' or ']'"),
        ("kind: PodCliqueSet\nmetadata:\n  name: {{ .Values.name }}\n", f":3: {IS_TEMPLATE}"),
        ("{{- if .Values.enabled }}\nkind: x\n{{- end }}\n", f":1: {IS_TEMPLATE}"),
        (SET.format('"{{ .Release.Name }}"'), f':4: metadata.name must be a valid name, got "{{{{ .Release.Name }}}}": {IS_TEMPLATE}'),
        ("apiVersion: grove.io/v1alpha1\nkind: Sets\n", f":2: there is no kind Sets in grove.io/v1alpha1; {KNOWN}"),
        ("kind: ClusterTopology\napiVersion: grove.io/v1alpha1\n", f":1: {OLDER}"),
        ("apiVersion: grove.io/v2\nkind: PodClique\n", ":2: PodClique is supported as grove.io/v1alpha1 only"),
        (
            "apiVersion: engine.grove.io/v1alpha1\nkind: Policy\n",
            ":2: there is no kind Policy in engine.grove.io/v1alpha1; there are PlanPolicy",
        ),
    ],
)
def test_what_is_no_manifest_is_reported_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, "f.yaml", text)

    with pytest.raises(InputError) as error:
        load(file)

    assert str(error.value) == f"{file}{message}"


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("grove.io/v1alpha1", "PodClique"),
        ("grove.io/v1alpha1", "PodGangMap"),
        ("scheduler.grove.io/v1alpha1", "PodGang"),
        ("nvidia.com/v1alpha1", "DynamoModel"),
        ("nvidia.com/v1", "ClusterPolicy"),
        ("resource.nvidia.com/v1beta1", "ComputeDomain"),
        ("v1", "PodCliqeSet"),
    ],
)
def test_kinds_that_exist_and_kinds_of_other_groups_are_ignored_with_a_note(tmp_path: Path, api_version: str, kind: str) -> None:
    file = write(tmp_path, "f.yaml", f"apiVersion: {api_version}\nkind: {kind}\n")

    assert load(file).notes == (f"{file}:1: {kind} is ignored: the engine takes PodCliqueSets only",)


@pytest.mark.parametrize(
    ("api_version", "kind", "meant"),
    [
        ("grov.io/v1alpha1", "PodCliqueSet", "PodCliqueSet in grove.io/v1alpha1"),
        ("grove.oi/v1alpha1", "PodCliqeSet", "PodCliqueSet in grove.io/v1alpha1"),
        ("v1alpha1", "PodCliqueSet", "PodCliqueSet in grove.io/v1alpha1"),
        ("scheduler.grov.io/v1alpha1", "PodGang", "PodGang in scheduler.grove.io/v1alpha1"),
        ("nvida.com/v1alpha1", "DynamoGraphDeployment", "DynamoGraphDeployment in nvidia.com/v1alpha1"),
        ("nvidia.com/v1alpha1", "DynmoGraphDeployment", "DynamoGraphDeployment in nvidia.com/v1alpha1"),
        ("nvidia.com/v1beta1", "DynamoGraphDeployments", "DynamoGraphDeployment in nvidia.com/v1beta1"),
        ("grove.io/v1alpha1", "PodCliqeSet", "PodCliqueSet in grove.io/v1alpha1"),
        ("grove.io/v1alpha1", "PodCliqueSets", "PodCliqueSet in grove.io/v1alpha1"),
        ("grove.io/v1alpha1", "podcliqueset", "PodCliqueSet in grove.io/v1alpha1"),
        ("grove.io/v1", "PodCliqe", "PodClique in grove.io/v1alpha1"),
        ("grov.io/v1alpha1", "PodCliqe", "PodClique in grove.io/v1alpha1"),
        ("grove.io/v1alpha1", "DynamoGraphDeployment", "DynamoGraphDeployment in nvidia.com/v1alpha1"),
        ("nvidia.com/v1alpha1", "DynamoGraphDeploymnt", "DynamoGraphDeployment in nvidia.com/v1alpha1"),
        ("nvidia.com/v1alpha1", "DynamoGraphDeploymentReqest", "DynamoGraphDeploymentRequest in nvidia.com"),
        ("nvida.com/v1alpha1", "DynamoGraphDeploymentRequest", "DynamoGraphDeploymentRequest in nvidia.com"),
        ("engine.grov.io/v1alpha1", "PlanPolicy", "PlanPolicy in engine.grove.io"),
    ],
)
def test_a_group_or_kind_that_is_a_typing_error_of_ours_is_an_error_whatever_else_the_files_hold(
    tmp_path: Path, api_version: str, kind: str, meant: str
) -> None:
    file = write(tmp_path, "f.yaml", f"{SET.format('a')}---\napiVersion: {api_version}\nkind: {kind}\n")

    with pytest.raises(InputError) as error:
        load(file)

    assert str(error.value).endswith(f"there is no kind {kind} in {api_version}; did you mean {meant}?")


def test_braces_in_a_valid_manifest_are_no_template(tmp_path: Path) -> None:
    file = write(tmp_path, "f.yaml", SET.format("a\n  annotations: {x: '{{ .Values.name }}'}"))

    assert names(load(file)) == ["here/a"]


def test_a_chart_and_a_url_are_usage_errors_that_say_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, "Chart.yaml", "name: x\n")
    with pytest.raises(UsageError, match=r"this is a Helm chart: render it first \(helm template … \| engine diff -f -\)"):
        load(tmp_path)
    with pytest.raises(UsageError, match=r"^https://example\.com/a\.yaml: a URL is not read: curl -fsSL URL \| engine diff -f -$"):
        load(Path("https://example.com/a.yaml"))


def test_a_missing_file_and_a_folder_without_manifests_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone.yaml: no such file or directory"):
        load(tmp_path / "gone.yaml")
    with pytest.raises(UsageError, match="no .yaml, .yml or .json file in this directory$"):
        load(tmp_path)
    (tmp_path / "below").mkdir()
    write(tmp_path / "below", "x.yaml", "x: 1\n")
    with pytest.raises(UsageError, match="file in this directory; -R reads those of the directories in it$"):
        load(tmp_path)


def test_control_characters_in_file_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    file = write(tmp_path, "a\x1b[2Jb.yaml", "x\n")

    with pytest.raises(InputError) as error:
        load(file)

    assert "\x1b" not in str(error.value)
