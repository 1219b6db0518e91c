"""What commands say of a set that Grove v0.1.0-alpha.12 or later manages, and how they take it over."""

import json
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.takeover.epochs import FIRST, POD_GANG_MAP, definition, leftover_map

EPOCH_GANG = f"web-0-{FIRST}"
MOVED = {"metadata": {"labels": {"grove.io/podgang": EPOCH_GANG}}}
WAY_OUT = "stop its operator, then allow the take-over with sync --take-over"


def manifest(folder: Path, name: str = "web") -> Path:
    """The file of a set with two pods."""
    spec = {"containers": [{"name": "main", "image": "example/web:1"}]}
    template = {"cliques": [{"name": "worker", "spec": {"replicas": 2, "podSpec": spec}}]}
    body = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": name, "namespace": "default"}}
    file = folder / f"{name}.json"
    file.write_text(json.dumps({**body, "spec": {"replicas": 1, "template": template}}))
    return file


@pytest.fixture
def renamed(box: Box, engine: Engine, tmp_path: Path) -> Box:
    """A cluster in which the PodGang of a set is named after an epoch."""
    assert engine("sync", "-f", manifest(tmp_path)).code == Exit.DONE
    client = box.cluster.client("user")
    box.portal.call(client.create, kinds.CRD, "", definition())
    (gang,) = box.all(kinds.PODGANG)
    left = leftover_map(box.all(kinds.PODCLIQUESET)[0])
    box.create(POD_GANG_MAP, left)
    labels = {**gang["metadata"]["labels"], "grove.io/epoch": str(FIRST), "grove.io/podgang-role": "Anchor"}
    kind = {"apiVersion": kinds.PODGANG.api_version, "kind": kinds.PODGANG.name}
    box.create(kinds.PODGANG, {**kind, "metadata": {**left["metadata"], "name": EPOCH_GANG, "labels": labels}, "spec": gang["spec"]})
    for kind_ in (kinds.PODCLIQUE, kinds.POD):
        for name in box.names(kind_):
            box.change(kind_, name, MOVED)
    box.delete(kinds.PODGANG, "web-0")
    return box


def test_every_command_says_why_nothing_is_done_and_what_to_do(renamed: Box, engine: Engine, tmp_path: Path) -> None:
    before = renamed.revisions()
    diff, sync, status, why = engine("diff"), engine("sync"), engine("status"), engine("why", "pcs/web")
    of_gang = engine("why", f"podgang/{EPOCH_GANG}")

    reason = "Grove v0.1.0-alpha.12 or later manages PodCliqueSet default/web, which stays as it is: PodGangMap default/web-0 exists"
    assert (diff.code, sync.code) == (Exit.DENIED, Exit.DENIED)
    assert f"denied by podgang-epochs: {reason}; {WAY_OUT}" in diff.out
    assert all(reason in answer.out + answer.err and WAY_OUT in answer.out + answer.err for answer in (sync, status, why, of_gang))
    assert "denied" in status.out and "obsolete" not in of_gang.out
    assert [root["operations"] for root in engine("diff", "-o", "json").document["roots"]] == [[]]
    assert renamed.revisions() == before


def test_other_workloads_of_the_same_command_go_on(renamed: Box, engine: Engine, tmp_path: Path) -> None:
    manifest(tmp_path, "other")
    answer = engine("sync", "-f", tmp_path)

    assert answer.code == Exit.DENIED
    assert {name.partition("-")[0] for name in renamed.names(kinds.POD)} == {"web", "other"}


def test_the_option_previews_saves_and_does_the_take_over(renamed: Box, engine: Engine, tmp_path: Path) -> None:
    pods, plan = {pod["metadata"]["uid"] for pod in renamed.all(kinds.POD)}, tmp_path / "plan"
    preview = engine("diff", "--take-over", "--out", plan)
    applied = engine("sync", "--plan", plan)

    assert preview.code == Exit.DONE, preview
    assert "+ create PodGang/web-0" in preview.out and "stage 2  delete PodGangMap/web-0" in preview.out
    assert applied.code == Exit.DONE, applied
    assert {pod["metadata"]["uid"] for pod in renamed.all(kinds.POD)} == pods
    assert (renamed.names(POD_GANG_MAP), renamed.names(kinds.PODGANG)) == ([], ["web-0"])
    assert engine("diff").out.startswith("No changes")


def test_the_annotation_in_a_manifest_allows_it_as_well(renamed: Box, engine: Engine, tmp_path: Path) -> None:
    file = manifest(tmp_path)
    body = json.loads(file.read_text())
    body["metadata"]["annotations"] = {"engine.grove.io/take-over": "true"}
    file.write_text(json.dumps(body))

    assert engine("sync", "-f", file).code == Exit.DONE
    assert renamed.names(POD_GANG_MAP) == []


def test_what_is_pruned_waits_for_a_set_that_is_left_alone(renamed: Box, engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    other = manifest(folder, "other")
    manifest(folder)
    assert engine("sync", "-f", folder, "--applyset", "mine", "--prune", "--take-over").code == Exit.DONE
    renamed.change(kinds.PODGANG, "web-0", {"metadata": {"labels": {"grove.io/epoch": str(FIRST)}}})
    other.unlink()

    assert engine("sync", "-f", folder, "--applyset", "mine", "--prune").code == Exit.DENIED
    assert [set_["metadata"].get("deletionTimestamp") for set_ in renamed.all(kinds.PODCLIQUESET)] == [None, None]
