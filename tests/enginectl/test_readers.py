"""People who only read: every command that writes nothing works without the right to see Secrets, and says that it does not show them."""

import json
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

NOTE = "you may not list Secrets: those that should exist are taken to exist"


@pytest.fixture
def reader(box: Box, engine: Engine, tmp_path: Path) -> Engine:
    """The command line of a reader; a set is in sync, and its Secret too."""
    manifest = tmp_path / "set.yaml"
    manifest.write_text(json.dumps(podcliqueset("web", clique("worker", 1))))
    assert engine("sync", "-f", manifest).code == Exit.DONE
    box.deny(resource="secrets")
    for verb in ("create", "update", "patch", "delete", "watch"):
        box.deny(verb=verb)
    return engine


def test_a_preview_of_what_is_in_sync_is_complete_without_secrets(reader: Engine) -> None:
    shown = reader("diff", "--detailed-exitcode")

    assert (shown.code, "Secret" in shown.out) == (Exit.DONE, False)
    assert NOTE in shown.err


def test_the_state_of_a_workload_does_not_depend_on_secrets(reader: Engine) -> None:
    shown = reader("status", "--exit-code")

    assert shown.code == Exit.DONE and "settled" in shown.out


def test_an_object_is_explained_without_secrets(reader: Engine) -> None:
    assert reader("why", "podclique/web-0-worker").code == Exit.DONE


def test_a_snapshot_says_that_it_has_no_secrets_and_a_preview_against_it_creates_none(reader: Engine, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"

    taken = reader("snapshot", "--out", file)
    shown = reader("diff", "--against", file, "--detailed-exitcode")

    assert (taken.code, shown.code) == (Exit.DONE, Exit.DONE)
    assert "the snapshot has no Secrets" in taken.err and NOTE in shown.err
    assert "kind: Secret" not in file.read_text()


def test_other_workloads_do_not_change_because_secrets_are_not_shown(reader: Engine, tmp_path: Path) -> None:
    manifest = tmp_path / "new.yaml"
    manifest.write_text(json.dumps(podcliqueset("new", clique("worker", 1))))

    assert "other workload" not in reader("diff", "-f", manifest).out


@pytest.mark.parametrize("listed", [("secrets", "services", "serviceaccounts", "pods", "configmaps"), ()], ids=["viewer", "none"])
def test_what_a_set_that_may_not_be_listed_has_is_not_judged_as_objects_of_others(
    reader: Engine, box: Box, tmp_path: Path, listed: tuple[str, ...]
) -> None:
    box.permit()
    for kind in {*kinds.KINDS}:
        if kind.plural not in listed:
            box.deny(verb="list", resource=kind.plural)

    for name in ("web", "new"):
        manifest = tmp_path / "set.yaml"
        manifest.write_text(json.dumps(podcliqueset(name, clique("worker", 2))))
        shown = reader("diff", "-f", manifest)
        assert shown.code == Exit.INCOMPLETE
        assert f"! blocked  PodCliqueSet/{name}  NotListed: PodCliqueSet objects could not be listed completely" in shown.out
        assert "No changes: 1 blocked.\n" in shown.out and "note: the API server" not in shown.out
        synced = reader("sync", "-f", manifest, "--yes", "--timeout", "20s")
        assert synced.code == Exit.INCOMPLETE and "created" not in synced.out


def test_a_set_whose_objects_may_not_be_listed_lacks_no_secret(reader: Engine, box: Box) -> None:
    for kind in {*kinds.KINDS} - {kinds.PODCLIQUESET}:
        box.deny(verb="list", resource=kind.plural)

    shown = reader("diff")

    assert shown.code == Exit.INCOMPLETE and "Secret" not in shown.out


def test_of_one_namespace_the_right_to_list_in_it_is_enough(reader: Engine, box: Box) -> None:
    box.deny(verb="list", resource="clustertopologybindings")

    assert reader("why", "web").code == reader("why", "podclique/web-0-worker").code == Exit.DONE
    assert reader("why", "nothing").code == Exit.INCOMPLETE


def version(tmp_path: Path, number: int, **spec: Any) -> str:
    """A manifest of a set in that version."""
    pod = {"containers": [{"name": "main", "image": f"nginx:1.2{number}"}], **spec}
    manifest = tmp_path / "set.yaml"
    manifest.write_text(json.dumps(podcliqueset("web", clique("worker", 2, pod_spec=pod))))
    return str(manifest)


def test_a_template_that_the_server_refuses_is_shown_to_readers_by_its_condition(box: Box, engine: Engine, tmp_path: Path) -> None:
    refused, why = {"serviceAccountName": "nobody"}, 'serviceaccount "nobody" not found'
    assert engine("sync", "-f", version(tmp_path, 7)).code == Exit.DONE
    asked = engine("diff", "-f", version(tmp_path, 8, **refused))
    assert (asked.code, why in asked.out) == (Exit.STUCK, True)
    synced = engine("sync", "-f", version(tmp_path, 8, **refused), "--yes")
    assert (synced.code, why in synced.out) == (Exit.STUCK, True)
    for verb in ("create", "update", "patch", "delete", "watch"):
        box.deny(verb=verb)

    for words in (("diff",), ("diff", "-f", version(tmp_path, 8, **refused))):
        shown = engine(*words)
        assert (shown.code, why in shown.out) == (Exit.STUCK, True)
        assert shown.err.count("you may not create pods") == 1
    assert why in engine("status").out
    another = engine("diff", "-f", version(tmp_path, 9))
    assert (another.code, why in another.out) == (Exit.DONE, False)
    assert another.err.count("you may not create pods") == 1


def test_sync_does_not_go_on_without_secrets(box: Box, engine: Engine, tmp_path: Path) -> None:
    manifest = tmp_path / "set.yaml"
    manifest.write_text(json.dumps(podcliqueset("web", clique("worker", 1))))
    box.deny(resource="secrets")

    assert engine("sync", "-f", manifest).code == Exit.INCOMPLETE


def test_a_forecast_assumes_secrets_that_are_not_shown(box: Box, engine: Engine, tmp_path: Path) -> None:
    def following(version: int) -> str:
        pod = {"containers": [{"name": "main", "image": f"nginx:1.2{version}"}]}
        cliques = (clique("leader", pod_spec=pod), clique("worker", 2, pod_spec=pod, startsAfter=["leader"]))
        manifest = tmp_path / "set.yaml"
        manifest.write_text(json.dumps(podcliqueset("web", *cliques, cliqueStartupType="CliqueStartupTypeExplicit")))
        return str(manifest)

    assert engine("sync", "-f", following(7)).code == Exit.DONE
    complete = engine("diff", "-f", following(8), "-o", "json")
    box.deny(resource="secrets")
    without = engine("diff", "-f", following(8), "-o", "json")

    assert [root["forecast"] for root in without.document["roots"]] == [root["forecast"] for root in complete.document["roots"]]
    assert without.document["forecast"] == complete.document["forecast"]
    assert "Secret" not in json.dumps(without.document["roots"])


def changed(name: str = "web", image: str = "nginx:1.27", replicas: int = 1) -> dict[str, Any]:
    """A set with a Secret."""
    pod = {"containers": [{"name": "main", "image": image}]}
    cliques = (clique("leader", pod_spec=pod), clique("worker", 2, pod_spec=pod, startsAfter=["leader"]))
    return podcliqueset(name, *cliques, replicas=replicas, cliqueStartupType="CliqueStartupTypeExplicit")


@pytest.mark.parametrize(
    "change",
    [changed("other"), changed(image="nginx:1.28"), changed(replicas=3), changed()],
    ids=["a new set", "an update", "a scale-out", "nothing"],
)
def test_a_reader_saves_the_plan_of_a_user_with_all_rights(box: Box, engine: Engine, tmp_path: Path, change: dict[str, Any]) -> None:
    file, theirs, ours = tmp_path / "set.yaml", tmp_path / "theirs.plan", tmp_path / "ours.plan"
    file.write_text(json.dumps(changed()))
    assert engine("sync", "-f", file).code == Exit.DONE
    file.write_text(json.dumps(change))

    complete = engine("diff", "-f", file, "--out", ours, "-o", "json")
    box.deny(resource="secrets")
    reader = engine("diff", "-f", file, "--out", theirs, "-o", "json")
    box.permit()

    assert reader.document["roots"] == complete.document["roots"]
    assert reader.document["forecast"] == complete.document["forecast"]
    assert (reader.code, complete.code) == (Exit.DONE, Exit.DONE)
    assert engine("sync", "--plan", theirs).code == Exit.DONE


def test_a_reader_saves_the_plan_of_a_deletion(box: Box, engine: Engine, tmp_path: Path) -> None:
    file, plan = tmp_path / "set.yaml", tmp_path / "deletion.plan"
    file.write_text(json.dumps(changed()))
    assert engine("sync", "-f", file).code == Exit.DONE

    complete = engine("delete", "pcs/web", "--dry-run", "-o", "json")
    box.deny(resource="secrets")
    reader = engine("delete", "pcs/web", "--dry-run", "-o", "json", "--out", plan)
    box.permit()

    assert reader.document["roots"] == complete.document["roots"]
    assert engine("sync", "--plan", plan).code == Exit.DONE


def test_a_reader_sees_how_a_deletion_that_has_begun_goes_on(box: Box, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(json.dumps(changed()))
    assert engine("sync", "-f", file).code == Exit.DONE
    box.delete(kinds.PODCLIQUESET, "web")

    complete = engine("diff", "-o", "json")
    box.deny(resource="secrets")
    reader = engine("diff", "-o", "json")

    assert reader.document["roots"] == complete.document["roots"]
    assert reader.document["forecast"] == complete.document["forecast"]


def few_rights(box: Box) -> None:
    """Take all rights to list away, but for sets."""
    for kind in kinds.KINDS:
        if kind.plural != kinds.PODCLIQUESET.plural:
            box.deny(verb="list", resource=kind.plural)


def test_with_few_rights_one_line_names_the_kinds_and_the_whole_remedy(box: Box, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(json.dumps(changed()))
    assert engine("sync", "-f", file).code == Exit.DONE
    few_rights(box)
    remedy = "engine manifests rbac prints the roles that allow it"

    status, diff = engine("status"), engine("diff")

    assert (status.code, diff.code) == (Exit.INCOMPLETE, Exit.INCOMPLETE)
    for text in (status.err, diff.out):
        (line,) = [line for line in text.splitlines() if remedy in line]
        assert "PodClique, PodCliqueScalingGroup, PodGang" in line and "could not be listed completely" in line
    assert status.out.count("could not be listed completely") == 1 == status.out.count("do: grant the right")
    (blocked,) = [line for line in diff.out.splitlines() if "! blocked" in line]
    assert "objects: " in blocked and blocked.endswith("do: grant the right to list them, or wait until the API server can")
    assert "Pod/web-0-worker" not in diff.out and "web-0-worker" in engine("diff", "-v").out


def test_a_preview_names_what_may_not_be_listed_once(box: Box, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(json.dumps(changed()))
    assert engine("sync", "-f", file).code == Exit.DONE
    box.deny(verb="list")

    shown = engine("diff", "-f", file)

    assert shown.code == Exit.INCOMPLETE
    assert (shown.out + shown.err).count("could not be listed completely (") == 1
    assert "could not be listed completely" not in shown.err


def test_what_may_not_be_read_is_named_with_its_whole_remedy(box: Box, engine: Engine) -> None:
    box.deny(verb="get", resource="leases")

    (line,) = [line for line in engine("preflight").out.splitlines() if "whether Grove's operator runs is not known" in line]

    assert line.endswith("engine manifests rbac prints the roles that allow it")
