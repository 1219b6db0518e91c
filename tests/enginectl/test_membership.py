"""The command line and annotations of live sets that differ from what their objects record (N25)."""

from pathlib import Path

import orjson
import pytest

from enginectl.base.exit_codes import Exit
from providers.fabrics.nvidia.names import AUTO
from resources.base import kinds
from tests.enginectl import test_requirements as fitness
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.mnnvl.sets import auto

FAULT = "annotation grove.io/auto-mnnvl cannot be removed after PodCliqueSet creation; it has no effect: it stays as recorded"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with automatic domains."""
    return Path(fitness.configured(tmp_path, auto=True))


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """The manifest of a set with automatic domains."""
    path = tmp_path / "set.json"
    path.write_bytes(orjson.dumps(auto(1)))
    return path


@pytest.fixture
def edited(box: Box, engine: Engine, config: Path, manifest: Path) -> Box:
    """A cluster in which somebody has removed the annotation of the running set."""
    engine("sync", "-f", manifest, "--no-wait", "--config", config)
    box.change(kinds.PODCLIQUESET, "demo", {"metadata": {"annotations": {AUTO: None}}})
    return box


def test_diff_and_status_report_the_annotation_that_has_no_effect(edited: Box, engine: Engine, config: Path) -> None:
    diff = engine("diff", "--config", config)
    status = engine("status", "-o", "json", "--config", config)

    assert (diff.code, FAULT in diff.out) == (Exit.FAILED, True)
    (workload,) = status.document["workloads"]
    assert workload["state"] == "faulty" and FAULT in workload["problems"][0]
    assert [domain["object"]["name"] for domain in workload["domains"]] == ["demo-0"]


def test_status_shows_the_annotation_once(edited: Box, engine: Engine, config: Path) -> None:
    assert engine("status", "--config", config).out.count(FAULT) == 1


def test_a_quiet_sync_writes_to_stderr_which_annotation_has_no_effect(edited: Box, engine: Engine, config: Path) -> None:
    answer = engine("sync", "-q", "--config", config)

    assert (answer.code, answer.out) == (Exit.FAILED, "")
    assert answer.err.startswith("engine: PodCliqueSet/default/demo: metadata.annotations") and answer.err.count(FAULT) == 1


def test_a_manifest_that_puts_the_annotation_back_is_accepted(edited: Box, engine: Engine, config: Path, manifest: Path) -> None:
    assert engine("diff", "-f", manifest, "--config", config).code == Exit.DONE
    assert engine("sync", "-f", manifest, "--no-wait", "--config", config).code == Exit.DONE

    (stored,) = edited.all(kinds.PODCLIQUESET)
    assert stored["metadata"]["annotations"][AUTO] == "enabled"
    assert engine("diff", "--config", config).code == Exit.DONE


def test_a_manifest_with_another_value_is_refused(edited: Box, engine: Engine, config: Path, manifest: Path) -> None:
    manifest.write_text(manifest.read_text().replace('"enabled"', '"disabled"'))
    answer = engine("diff", "-f", manifest, "--config", config)

    assert answer.code == Exit.FAILED
    assert 'is immutable and cannot be changed from "enabled" to "disabled"' in answer.out + answer.err
