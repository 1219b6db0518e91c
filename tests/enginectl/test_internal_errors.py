"""A defect of the engine while planning: every command that plans names it, exits with 1, and shows its traceback only with -v."""

from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from resources.base.kinds import PODCLIQUE
from resources.cluster_model.cluster import ModelledCluster
from resources.registry import BLUEPRINTS
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine

FIRST = ROOT / "examples" / "01-first-gang"


@pytest.fixture
def broken(box: Box, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Box:
    """A settled cluster whose sets can no longer be planned."""
    assert engine("sync", "-f", FIRST).code == Exit.DONE

    def desire(*_: Any) -> None:
        raise RuntimeError("the moon fell\x1b[2J down")

    monkeypatch.setattr(type(BLUEPRINTS[0]), "desire", desire)
    return box


@pytest.mark.parametrize("words", [("diff",), ("sync", "--timeout", "10s"), ("status",), ("why", "pclq/first-0-leader")])
def test_an_internal_error_is_named_and_its_traceback_shown_only_with_v(broken: Box, engine: Engine, words: tuple[str, ...]) -> None:
    before = broken.revisions()
    answer, verbose = engine(*words), engine(*words, "-v", traceback=True)

    assert (answer.code, verbose.code) == (Exit.FAILED, Exit.FAILED)
    assert "internal error: RuntimeError: the moon fell\\x1b[2J down" in answer.out
    assert "default/first" in answer.out + answer.err
    assert "Traceback" in verbose.err and "\x1b" not in answer.out + answer.err + verbose.out + verbose.err
    assert broken.revisions() == before


def test_a_workload_with_an_internal_error_is_not_called_settled(broken: Box, engine: Engine) -> None:
    (workload,) = engine("status", "-o", "json").document["workloads"]

    assert workload["state"] == "faulty"
    assert [problem.split(":")[0] for problem in workload["problems"]] == ["internal error"]


def test_an_object_of_a_root_with_an_internal_error_is_not_called_obsolete(broken: Box, engine: Engine) -> None:
    answer = engine("why", f"{PODCLIQUE.name}/first-0-leader")

    assert "obsolete" not in answer.out and "it is not known what is desired: internal error" in answer.out


def test_an_internal_error_does_not_stop_the_preview_of_a_snapshot(broken: Box, engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    assert engine("snapshot", "--out", file).code == Exit.DONE

    (root,) = engine("diff", "--against", file, "-o", "json").document["roots"]

    assert (root["operations"], root["error"].startswith("internal error: RuntimeError")) == ([], True)


def test_an_internal_error_in_the_forecast_leaves_the_preview(box: Box, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the moon fell\x1b[2J down")

    monkeypatch.setattr(ModelledCluster, "answer", broken)

    answer, document = engine("diff", "-f", FIRST), engine("diff", "-f", FIRST, "-o", "json").document

    assert answer.code == Exit.DONE
    assert "internal error (there is no forecast of what follows the next pass): RuntimeError: the moon fell\\x1b[2J down" in answer.err
    assert "Plan: " in answer.out and "  total" not in answer.out
    assert document["roots"][0]["operations"]
