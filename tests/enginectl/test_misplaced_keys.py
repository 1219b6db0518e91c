"""Keys for domains that have no effect: where users of the command line are told."""

from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

SET = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: demo, namespace: default}
spec:
  replicas: 4
  template:
    cliques:
    - name: worker
      annotations: {KEY: rack}
      spec:
        podSpec: {containers: [{name: w, image: "x:1"}]}
"""
MISSPELLED = "nvidia.com/computeDomain"
WARNING = f"spec.template.cliques[0].annotations[{MISSPELLED}] has no effect: the annotation is nvidia.com/computedomain"
NAMED = "nvidia.com/computedomain"
READ = f"annotation {NAMED} has no effect there: it is read from spec.template.cliques[].annotations of the PodCliqueSet"


def written(folder: Path, key: str) -> Path:
    """A set whose clique has this annotation."""
    file = folder / "demo.yaml"
    file.write_text(SET.replace("KEY", key))
    return file


@pytest.mark.parametrize("command", [("diff", "--against", "empty"), ("render",)])
def test_commands_that_read_a_file_warn_about_a_misspelled_key(engine: Engine, tmp_path: Path, command: tuple[str, ...]) -> None:
    file = written(tmp_path, MISSPELLED)
    answer = engine(*command, "-f", file)

    assert answer.code == Exit.DONE
    assert f"warning: {file}:10: {WARNING}" in answer.err.splitlines()


def test_status_has_the_warnings_about_a_stored_set(box: Box, engine: Engine, tmp_path: Path) -> None:
    synced = engine("sync", "-f", written(tmp_path, MISSPELLED), "--timeout", "30m")

    assert WARNING in synced.err
    assert f"  note: {WARNING}" in engine("status", "demo").out.splitlines()


def test_status_and_why_name_podcliques_that_somebody_has_annotated(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, "example.com/team"), "--timeout", "30m").code == Exit.DONE
    before = engine("status", "demo").out, engine("why", "podclique/demo-0-worker").out
    for name in box.names(kinds.PODCLIQUE):
        box.change(kinds.PODCLIQUE, name, {"metadata": {"annotations": {NAMED: "rack"}}})
    status, why = engine("status", "demo"), engine("why", "podclique/demo-0-worker")

    assert not any("note:" in text for text in before)
    assert f"  note: PodCliques demo-0-worker, demo-1-worker, demo-2-worker and 1 more: {READ}" in status.out.splitlines()
    assert f"  note: PodClique demo-0-worker: {READ}" in why.out.splitlines()
    assert engine("why", "podclique/demo-0-worker", "-o", "json").document["notes"] == [f"PodClique demo-0-worker: {READ}"]


def test_annotations_that_podcliques_have_from_the_template_are_not_noted(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, NAMED), "--no-wait").code == Exit.DONE

    assert "note:" not in engine("why", "podclique/demo-0-worker").out
    assert "no effect" not in engine("status", "demo").out
