"""A set that was deleted with `--cascade=orphan`: every command gives the same answer, and says what is left and how it is deleted."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import CommandResult, Engine

DELETE = "kubectl delete"
PARTS = ("PodCliqueSet/default/lone does not exist", "2 Pods", "1 PodClique,", DELETE, "-n default", "part-of=lone")


@pytest.fixture
def orphaned(box: Box, engine: Engine, tmp_path: Path) -> Callable[..., CommandResult]:
    """The command line, after the set of a namespace was deleted this way."""
    return orphan(box, engine, tmp_path, "lone")


def orphan(box: Box, engine: Engine, folder: Path, *names: str) -> Callable[..., CommandResult]:
    """Apply these sets, and delete the first of them without what it has."""
    file = folder / "sets.json"
    sets = [podcliqueset(name, clique("a", 2)) for name in names]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": sets}))
    assert engine("sync", "-f", file).code == Exit.DONE
    box.delete_alone(kinds.PODCLIQUESET, names[0])
    box.wait_for(kinds.PODCLIQUE, lambda body: not body["metadata"].get("ownerReferences"), f"{names[0]}-0-a")
    return engine


@pytest.mark.parametrize("place", [(), ("-A",), ("-n", "default")], ids=" ".join)
def test_diff_and_sync_agree_while_the_set_is_being_deleted_and_afterwards(
    orphaned: Callable[..., CommandResult], place: tuple[str, ...]
) -> None:
    answers = [orphaned(*place, command, *words) for command, *words in (("diff",), ("sync", "--yes"), ("diff",), ("sync", "--yes"))]

    assert [answer.code for answer in answers] == [Exit.DENIED] * 4, [answer.out for answer in answers]
    assert all(part in answer.err for answer in answers for part in PARTS), [answer.err for answer in answers]


def test_beside_another_set_nothing_is_denied_and_what_is_left_is_told_all_the_same(box: Box, engine: Engine, tmp_path: Path) -> None:
    orphan(box, engine, tmp_path, "lone", "other")

    answers = [engine(command, *words) for command, *words in (("diff",), ("sync", "--yes"), ("diff",))]

    assert [answer.code for answer in answers] == [Exit.DONE] * 3
    assert all(part in answer.err for answer in answers for part in PARTS), [answer.err for answer in answers]


def test_what_a_set_has_left_denies_nothing_to_commands_about_other_workloads(box: Box, engine: Engine, tmp_path: Path) -> None:
    orphan(box, engine, tmp_path, "lone")
    assert engine("sync", "--yes").code == Exit.DENIED
    levels = [{"domain": "rack", "key": "topology.kubernetes.io/rack"}]
    binding = {"apiVersion": kinds.TOPOLOGY_BINDING.api_version, "kind": kinds.TOPOLOGY_BINDING.name, "spec": {"levels": levels}}
    manifests = {"racks": {**binding, "metadata": {"name": "racks"}}, "other": podcliqueset("other", clique("a", 2))}
    answers = []

    for name, manifest in manifests.items():
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(manifest))
        answers += [engine(*words) for words in (("diff", "-f", file), ("sync", "-f", file), ("delete", "-f", file, "--yes"))]
    answers += [engine("sync", "-f", file), engine("delete", "PodCliqueSet/other", "--yes")]

    assert [answer.code for answer in answers] == [Exit.DONE] * 8, [answer.err for answer in answers]
    assert all(answer.err.count("note: PodCliqueSet/default/lone does not exist any more") <= 1 for answer in answers)
    assert engine("diff").code == Exit.DENIED
    assert "lone-0-a" in box.names(kinds.PODCLIQUE) and "other-0-a" not in box.names(kinds.PODCLIQUE)


def test_the_state_of_such_a_namespace_is_denied(orphaned: Callable[..., CommandResult]) -> None:
    orphaned("sync", "--yes")

    shown = orphaned("status", "--exit-code")

    assert (shown.code, "denied by no-roots" in shown.err) == (Exit.DENIED, True)
    assert all(part in shown.err for part in PARTS)


def test_what_keeps_a_pod_whose_set_is_gone_is_said_by_the_command_that_sync_names(box: Box, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "set.json"
    file.write_text(json.dumps(podcliqueset("lone", clique("a"))))
    assert engine("sync", "-f", file).code == Exit.DONE
    (name,) = box.names(kinds.POD)
    box.change(kinds.POD, name, {"metadata": {"finalizers": ["example.com/hold"]}})
    box.change(kinds.PODCLIQUESET, "lone", {"metadata": {"finalizers": None}})
    box.delete(kinds.PODCLIQUESET, "lone")

    box.delete(kinds.POD, name)
    box.wait_for(kinds.POD, lambda body: body["metadata"].get("deletionGracePeriodSeconds") == 0, name)

    done = engine("sync", "--yes", "--no-wait")
    command = f"engine why pod/{name} -n default"
    why = engine(*command.split()[1:])

    assert (done.code, command in done.out) == (Exit.STUCK, True), done
    assert why.code == Exit.DONE and "finalizer example.com/hold keeps it" in why.out, why
