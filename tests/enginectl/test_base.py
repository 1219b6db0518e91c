"""`engine diff --base`: what a change of manifests changes, without a cluster."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from enginectl.base.options import ReportFormat
from tests.enginectl.calling import ROOT, CommandResult, Engine

SET = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodCliqueSet",
    "metadata": {"name": "one"},
    "spec": {
        "replicas": 2,
        "template": {
            "cliques": [
                {
                    "name": "a",
                    "annotations": {"team": "blue"},
                    "spec": {"roleName": "a", "replicas": 2, "podSpec": {"containers": [{"name": "main", "image": "i:1"}]}},
                }
            ]
        },
    },
}

Edit = Callable[[dict[str, Any]], object]


class Folders:
    """The folder of a base and that of a change, and the command on them."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine, self.base, self.change = engine, folder / "base", folder / "change"
        for each in (self.base, self.change):
            each.mkdir()
        self.write("one", SET)

    def write(self, name: str, body: dict[str, Any], *, change: dict[str, Any] | None = None) -> None:
        """Put an object into both folders."""
        for folder, content in ((self.base, body), (self.change, change or body)):
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))

    def edit(self, edit: Edit) -> None:
        """Change the set in the folder of the change."""
        body = yaml.load((self.change / "one.yaml").read_text(), yaml.CSafeLoader)
        edit(body)
        (self.change / "one.yaml").write_text(yaml.safe_dump(body))

    def diff(self, *options: str | Path) -> CommandResult:
        """`engine diff --base BASE -f CHANGE -o json`. It must not look for a cluster."""
        return self.engine("diff", "--base", self.base, "-f", self.change, "-o", "json", *options)


@pytest.fixture
def folders(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Folders with one set."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "there-is-none"))
    return Folders(engine, tmp_path)


def named(name: str) -> dict[str, Any]:
    """The set under another name."""
    return {**SET, "metadata": {"name": name}}


def root_of(answer: CommandResult, name: str = "one") -> Any:
    """What is reported about a set; None if nothing is."""
    return next((root for root in answer.document["roots"] if root["root"]["name"] == name), None)


def changed_fields(answer: CommandResult) -> set[tuple[str, str, str]]:
    """(Verb, kind, path) of the changed fields, without statuses."""
    return {
        (operation["verb"], operation["object"]["kind"], change["path"])
        for root in answer.document["roots"]
        for operation in root["operations"]
        for change in operation["changes"]
        if operation["verb"] != "status"
    }


def test_no_change_is_nothing_to_do(folders: Folders) -> None:
    answer = folders.diff("--detailed-exitcode")

    assert (answer.code, answer.document["summary"]["changes"]) == (Exit.DONE, 0)
    assert answer.document["forecast"] is None


def test_an_edited_image_is_the_only_change_and_the_same_bytes_every_time(folders: Folders) -> None:
    folders.write("two", named("two"))
    folders.edit(lambda body: body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0].update(image="i:2"))

    first, second = folders.diff("--detailed-exitcode"), folders.diff("--detailed-exitcode")

    assert first.out == second.out
    assert first.code is Exit.CHANGES
    assert {root["root"]["name"] for root in first.document["roots"] if root["operations"]} == {"one"}
    assert ("patch", "PodCliqueSet", "spec.template.cliques[a].spec.podSpec.containers[main].image") in changed_fields(first)
    assert root_of(first)["forecast"]["end"] == "settled"
    assert root_of(first)["forecast"]["effects"]["pods restarted"] == 4


@pytest.mark.parametrize("format", ReportFormat)
@pytest.mark.parametrize("verbose", [(), ("-v",)])
def test_the_time_of_the_imagined_cluster_is_in_no_format(folders: Folders, format: str, verbose: tuple[str, ...]) -> None:
    folders.edit(lambda body: body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"].append({"name": "b", "image": "i"}))
    first, again = (folders.diff("-o", format, *verbose) for _ in range(2))

    assert first.code == Exit.DONE and first.out == again.out
    assert not re.search(r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}|as of", first.out)


def test_the_delay_of_a_termination_is_a_duration_and_no_time(folders: Folders) -> None:
    def fail(body: dict[str, Any]) -> None:
        body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["nodeSelector"] = {"no": "such-node"}

    folders.edit(fail)

    assert [root["wakeAt"] for root in folders.diff().document["roots"]] == [None]


def test_what_the_change_leaves_out_is_removed(folders: Folders) -> None:
    folders.edit(lambda body: body["spec"]["template"]["cliques"][0].pop("annotations"))

    fields = changed_fields(folders.diff())

    assert any(kind == "PodCliqueSet" and "annotations" in path for _, kind, path in fields)
    assert any(kind == "PodClique" and "team" in path for _, kind, path in fields)


def ordered(*names: str, type: str = "CliqueStartupTypeInOrder") -> dict[str, Any]:
    """The set with these cliques, which start in an order."""
    pod_spec = {"containers": [{"name": "main", "image": "i:1"}]}
    cliques = [{"name": name, "spec": {"roleName": name, "replicas": 1, "podSpec": pod_spec}} for name in names]
    return {**SET, "spec": {"replicas": 1, "template": {"cliques": cliques, "cliqueStartupType": type}}}


@pytest.mark.parametrize(
    "before, after, fault",
    [
        (ordered("a", "b"), ordered("b", "a"), "clique order cannot be changed"),
        (ordered("a", "b"), ordered("a", "c"), "not allowed to change clique composition"),
        (ordered("a", "b"), ordered("a", "b", type="CliqueStartupTypeAnyOrder"), "cliqueStartupType"),
    ],
    ids=["order", "name", "type"],
)
def test_what_a_cluster_refuses_of_a_stored_set_is_refused_of_that_of_the_base(
    folders: Folders, before: dict[str, Any], after: dict[str, Any], fault: str
) -> None:
    folders.write("one", before, change=after)

    answer = folders.diff()

    assert answer.code == Exit.FAILED
    assert any(fault in problem and "one.yaml:" in problem for problem in root_of(answer)["problems"]), root_of(answer)["problems"]


def test_a_scale_in_shows_what_goes_and_nothing_else(folders: Folders) -> None:
    folders.edit(lambda body: body["spec"].update(replicas=1))

    forecast = root_of(folders.diff())["forecast"]

    assert forecast["effects"] == {"pods removed": 2}
    assert (forecast["operations"]["create"], forecast["end"]) == (0, "settled")


def test_a_new_set_is_created_and_one_that_is_left_out_stays_and_is_named(folders: Folders) -> None:
    folders.write("two", named("two"))
    (folders.change / "one.yaml").unlink()
    (folders.base / "two.yaml").unlink()

    answer = folders.diff()

    assert root_of(answer, "two")["forecast"]["effects"] == {"pods added": 4}
    assert root_of(answer)["operations"] == []
    assert root_of(answer)["notes"] == ["it is in the base and not in the files of the change: it stays"]


def test_targets_choose_in_the_base_and_in_the_change_of_which_one_may_be_empty(folders: Folders) -> None:
    folders.write("two", named("two"))

    only_two = folders.diff("--target", "two")
    (folders.change / "one.yaml").unlink()
    (folders.change / "two.yaml").unlink()
    gone = folders.diff("--exclude", "one")

    assert [root["root"]["name"] for root in only_two.document["roots"]] == ["two"]
    assert root_of(gone) is None
    assert (gone.code, root_of(gone, "two")["notes"]) == (Exit.DONE, ["it is in the base and not in the files of the change: it stays"])


def test_a_graph_is_compared_down_to_its_pods(folders: Folders) -> None:
    (example,) = (ROOT / "examples" / "06-dynamo").glob("*vllm*.yaml")
    text = example.read_text()
    (folders.base / "graph.yaml").write_text(text)
    (folders.change / "graph.yaml").write_text(text)
    assert folders.diff().document["summary"]["changes"] == 0

    bodies = [body for body in yaml.load_all(text, yaml.CSafeLoader) if body]
    service = next(iter(bodies[0]["spec"]["services"].values()))
    service["replicas"] = service.get("replicas", 1) + 1
    (folders.change / "graph.yaml").write_text(yaml.safe_dump_all(bodies))

    answer = folders.diff()

    kinds = {root["root"]["kind"] for root in answer.document["roots"] if root["operations"]}
    assert "DynamoGraphDeployment" in kinds
    assert sum(root["forecast"]["effects"].get("pods added", 0) for root in answer.document["roots"] if root["forecast"]) > 0


def test_a_fault_in_the_base_is_told_with_file_and_line(folders: Folders) -> None:
    body = {**SET, "spec": {**SET["spec"], "replicas": "many"}}  # type: ignore[dict-item]
    (folders.base / "one.yaml").write_text(yaml.safe_dump(body))

    answer = folders.diff()

    assert answer.code is Exit.FAILED
    assert "base/one.yaml:" in answer.err
    assert "replicas" in answer.err


def test_a_snapshot_is_what_the_base_is_applied_to(folders: Folders, engine: Engine, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.yaml"
    foreign = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one-2", "namespace": "default", "uid": "theirs"}}
    snapshot.write_text(yaml.safe_dump(foreign))
    folders.edit(lambda body: body["spec"].update(replicas=3))

    root = root_of(folders.diff("--against", snapshot))

    assert [wait["object"]["name"] for wait in root["blocked"]] == ["one-2"]
    assert root["forecast"]["end"] == "stuck"
    assert root_of(folders.diff())["forecast"]["end"] == "settled"


def test_a_base_that_gets_stuck_is_told(folders: Folders, tmp_path: Path) -> None:
    snapshot = tmp_path / "snapshot.yaml"
    foreign = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one-0", "namespace": "default", "uid": "theirs"}}
    snapshot.write_text(yaml.safe_dump(foreign))

    (note,) = root_of(folders.diff("--against", snapshot))["notes"]

    assert note.startswith("in the base it is not settled: Service default/one-0 already exists")
