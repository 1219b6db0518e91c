"""Removals in saved plans: shown and saved by `delete --out` and `diff --prune --out`, carried out by `sync --plan`, or stale."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from resources.base import applyset
from resources.base.kinds import CONFIG_MAP, POD, PODCLIQUESET
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import CommandResult, Engine
from tests.enginectl.test_approval import forged

PRUNE = ("--prune", "--applyset", "team")
PROTECT = {"metadata": {"annotations": {"engine.grove.io/protect": "true"}}}
KEEP = {"metadata": {"annotations": {"engine.grove.io/prune": "disabled"}}}


def write(folder: Path, name: str, replicas: int = 1) -> Path:
    """A manifest of a set with one pod for each replica."""
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(podcliqueset(name, clique("worker", 1), replicas=replicas)))
    return file


def deviations(answer: CommandResult) -> list[str]:
    """What the answer says is not as approved; that must be why the command has ended."""
    assert answer.code == Exit.STALE, answer
    return [line.removeprefix("not as approved: ") for line in answer.out.splitlines() if line.startswith("not as approved: ")]


def recorded(box: Box) -> str:
    """The kinds of the members, as the parent of the ApplySet has them; empty if it does not exist."""
    parents = [body["metadata"] for body in box.all(CONFIG_MAP) if body["metadata"]["name"] == "team"]
    return str(parents[0]["annotations"][applyset.GROUP_KINDS]) if parents else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder with a user's manifests of two sets."""
    (tmp_path / "manifests").mkdir()
    write(tmp_path / "manifests", "one")
    write(tmp_path / "manifests", "two")
    return tmp_path / "manifests"


@pytest.fixture
def members(box: Box, engine: Engine, folder: Path) -> Box:
    """A cluster with both sets as members of an ApplySet, settled."""
    assert engine("sync", "-f", folder, *PRUNE).code == Exit.DONE
    return box


@pytest.fixture
def deletion(members: Box, engine: Engine, tmp_path: Path) -> Path:
    """A plan that deletes the set `two`."""
    plan = tmp_path / "deletion.json"
    assert engine("delete", "two", "--out", plan).code == Exit.DONE
    return plan


@pytest.fixture
def pruning(members: Box, engine: Engine, folder: Path, tmp_path: Path) -> Path:
    """A plan that gives `one` another replica and prunes `two`."""
    plan = tmp_path / "pruning.json"
    write(folder, "one", replicas=2)
    (folder / "two.yaml").unlink()
    assert engine("diff", "-f", folder, *PRUNE, "--out", plan).code == Exit.DONE
    return plan


def test_the_parent_of_a_new_applyset_is_in_the_saved_plan_and_is_written_as_approved(
    box: Box, engine: Engine, folder: Path, tmp_path: Path
) -> None:
    plan = tmp_path / "plan.json"
    assert engine("diff", "-f", folder, *PRUNE, "--out", plan).code == Exit.DONE

    assert "create ConfigMap/team" in engine("show", plan).out
    assert engine("sync", "--plan", plan).code == Exit.DONE
    assert recorded(box) == "PodCliqueSet.grove.io"


def test_a_deletion_is_saved_shown_and_carried_out_as_it_was_shown(members: Box, engine: Engine, tmp_path: Path) -> None:
    plan, before = tmp_path / "plan.json", members.revisions()
    saved = engine("delete", "two", "--out", plan)
    untouched = members.revisions() == before
    shown = engine("show", plan)
    applied = engine("sync", "--plan", plan)
    again = engine("sync", "--plan", plan)

    assert (saved.code, untouched, "the plan was saved in" in saved.err) == (Exit.DONE, True, True)
    (removal,) = json.loads(plan.read_text())["removals"]
    assert f"  removes    PodCliqueSet/default/two (uid {removal['uid']}): asked for by engine delete" in shown.out.splitlines()
    assert shown.out.endswith(saved.out)
    assert (applied.code, members.names(PODCLIQUESET)) == (Exit.DONE, ["one"]), applied
    assert all(name.startswith("one-") for name in members.names(POD))
    assert (again.code, again.out.splitlines()[0]) == (Exit.DONE, "Applied: nothing, everything is in sync.")


def test_a_set_of_the_same_name_that_was_made_later_stays(members: Box, engine: Engine, folder: Path, deletion: Path) -> None:
    assert engine("delete", "two", "--yes").code == Exit.DONE
    assert engine("sync", "-f", folder / "two.yaml").code == Exit.DONE
    before = members.revisions()

    (deviation,) = deviations(engine("sync", "--plan", deletion))
    assert deviation.startswith("PodCliqueSet/default/two: then generation 1 (uid ")
    assert members.revisions() == before


def test_a_set_that_was_edited_since_stays(members: Box, engine: Engine, deletion: Path) -> None:
    members.scale("two", 2)

    assert deviations(engine("sync", "--plan", deletion))[0].endswith("with another spec: spec.replicas 1 → 2")
    assert members.names(PODCLIQUESET) == ["one", "two"]


def test_a_set_that_was_protected_since_is_denied_and_its_deletion_not_saved_again(members: Box, engine: Engine, deletion: Path) -> None:
    members.change(PODCLIQUESET, "two", PROTECT)
    answer = engine("sync", "--plan", deletion)
    deletion.unlink()
    again = engine("delete", "two", "--out", deletion)

    assert (answer.code, "denied by protected" in answer.err) == (Exit.DENIED, True)
    assert (again.code, deletion.exists()) == (Exit.DENIED, False)
    assert members.names(PODCLIQUESET) == ["one", "two"]


def test_a_pruned_set_is_removed_after_the_manifests_are_applied_and_the_parent_is_written(
    members: Box, engine: Engine, pruning: Path
) -> None:
    shown = engine("show", pruning)
    applied = engine("sync", "--plan", pruning)
    before = members.revisions()
    again = engine("sync", "--plan", pruning)

    assert "  applyset   ConfigMap/default/team" in shown.out.splitlines()
    assert "  removes    PodCliqueSet/default/two (uid " in shown.out
    assert (applied.code, members.names(PODCLIQUESET), len(members.names(POD))) == (Exit.DONE, ["one"], 2), applied
    assert recorded(members) == "PodCliqueSet.grove.io"
    assert (again.code, members.revisions()) == (Exit.DONE, before)


def test_the_parent_of_a_new_applyset_is_written_by_the_plan_and_not_before(box: Box, engine: Engine, folder: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert engine("diff", "-f", folder, *PRUNE, "--out", plan).code == Exit.DONE
    assert recorded(box) == ""

    assert engine("sync", "--plan", plan).code == Exit.DONE
    assert recorded(box) == "PodCliqueSet.grove.io"
    assert {body["metadata"]["labels"][applyset.PART_OF] for body in box.all(PODCLIQUESET)} == {
        applyset.applyset_id(CONFIG_MAP.id("default", "team"))
    }


def test_a_pruned_set_that_is_gone_already_changes_nothing_else(members: Box, engine: Engine, pruning: Path) -> None:
    assert engine("delete", "two", "--yes").code == Exit.DONE

    assert engine("sync", "--plan", pruning).code == Exit.DONE
    assert len(members.names(POD)) == 2


def test_a_plan_that_would_prune_others_by_now_is_stale(members: Box, engine: Engine, pruning: Path) -> None:
    three: dict[str, Any] = podcliqueset("three", clique("worker", 1))
    three["metadata"]["labels"] = {applyset.PART_OF: applyset.applyset_id(CONFIG_MAP.id("default", "team"))}
    members.create(PODCLIQUESET, three)
    members.change(PODCLIQUESET, "two", KEEP)
    before = members.revisions()

    removed, kept = "to be removed: no manifest of ApplySet team names it any more", "not to be removed"
    assert deviations(engine("sync", "--plan", pruning)) == [
        f"PodCliqueSet/default/three: then {kept}, now {removed}",
        f"PodCliqueSet/default/two: then {removed}, now {kept}",
    ]
    assert members.revisions() == before


def test_a_forged_parent_is_refused(members: Box, engine: Engine, pruning: Path) -> None:
    scope = json.loads(pruning.read_text())["scope"]
    pod = {"kind": "Pod", "name": "team", "namespace": "default"}
    answer = engine("sync", "--plan", forged(pruning, scope={**scope, "applyset": pod}))

    assert (answer.code, "Pod/default/team cannot be the parent of an ApplySet" in answer.err) == (Exit.FAILED, True)


def test_a_removal_that_was_not_shown_is_not_carried_out(members: Box, engine: Engine, deletion: Path) -> None:
    document, before = json.loads(deletion.read_text()), members.revisions()
    uid = next(body["metadata"]["uid"] for body in members.all(PODCLIQUESET) if body["metadata"]["name"] == "one")
    hidden = {**document["removals"][0], "uid": uid, "object": {**document["removals"][0]["object"], "name": "one"}}
    answer = engine("sync", "--plan", forged(deletion, removals=[*document["removals"], hidden]))

    assert any("PodCliqueSet/default/one" in deviation for deviation in deviations(answer))
    assert members.revisions() == before


def test_what_saves_a_deletion_asks_nothing_and_confirms_nothing(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("delete", "one", "--out", tmp_path / "plan.json", "--yes").code == Exit.USAGE
    assert engine("delete", "one", "--out", "-").code == Exit.USAGE
