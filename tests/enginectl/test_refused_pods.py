"""Pods that a cluster would refuse, e.g. by Pod Security: `diff`, `sync --dry-run` and `sync` say so of a set that is new or scaled out."""

from pathlib import Path

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from grove_sandbox.http.faults import InjectedFault
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

MESSAGE = 'pods "web" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
REFUSED = InjectedFault("answer", "create", "pods", times=10**6, code=403, message=MESSAGE)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A set of two cliques, three pods each."""
    path = tmp_path / "web.yaml"
    path.write_text(yaml.safe_dump(podcliqueset("web", clique("front", 3), clique("back", 3))))
    return path


def test_a_preview_and_a_sync_say_alike_that_the_pods_of_a_new_set_are_refused(engine: Engine, box: Box, file: Path) -> None:
    box.inject(REFUSED)

    words = ("diff",), ("sync", "--dry-run"), ("sync", "--timeout", "20s")
    answers = [engine(*each, "-f", file) for each in words]

    assert [answer.code for answer in answers] == [Exit.STUCK] * 3
    for answer in answers:
        assert MESSAGE in answer.out
    assert not box.all(kinds.POD)
    for shown in answers[:2]:
        assert "total    9 to create; STUCK" in shown.out
        assert shown.out.count("refuses pods like it") == 1, shown.out  # One line for all six, though the names are not known.
    assert "Applied: 9 created" in answers[2].out


def test_a_scale_out_whose_pods_are_refused_is_stuck_before_it_is_applied(engine: Engine, box: Box, file: Path) -> None:
    assert engine("sync", "-f", file).code == Exit.DONE
    box.inject(REFUSED)
    file.write_text(file.read_text().replace("replicas: 1\n", "replicas: 2\n"))

    shown = engine("diff", "-f", file)

    assert (shown.code, MESSAGE in shown.out) == (Exit.STUCK, True), shown.out


def test_a_reader_is_told_that_the_pods_of_a_new_set_were_not_tried(engine: Engine, box: Box, file: Path) -> None:
    box.deny(verb="create", resource="pods")

    shown = engine("diff", "-f", file)

    assert shown.code == Exit.DONE
    assert "the API server was not asked whether it accepts" in shown.err


def test_pods_that_are_accepted_after_all_are_created_by_the_next_sync(engine: Engine, box: Box, file: Path) -> None:
    box.inject(REFUSED)
    assert engine("sync", "-f", file, "--timeout", "20s").code == Exit.STUCK
    box.portal.call(box.cluster.faults.clear)

    assert engine("sync", "-f", file).code == Exit.DONE
    assert len(box.all(kinds.POD)) == 6


def test_a_lost_pod_of_a_previous_template_is_created_although_the_new_one_is_refused(engine: Engine, box: Box, file: Path) -> None:
    group = {"name": "g", "cliqueNames": ["front"], "replicas": 2, "minAvailable": 1}
    file.write_text(yaml.safe_dump(podcliqueset("web", clique("front", 2), groups=(group,))))
    assert engine("sync", "-f", file).code == Exit.DONE
    box.inject(REFUSED)
    file.write_text(file.read_text().replace("image: ", "image: new-"))
    assert engine("sync", "-f", file, "--timeout", "20s").code == Exit.STUCK

    box.delete_alone(kinds.POD, next(name for name in box.names(kinds.POD) if "-g-1-" in name))
    shown = engine("diff", "-f", file)

    assert "create Pod/web-0-g-1-front-" in shown.out and "the API server refuses pods like it" not in shown.out, shown.out


def test_pods_that_the_server_was_not_asked_about_in_time_are_named(
    engine: Engine, box: Box, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.runtime.verdicts.BEGINNING", 0.0)

    shown = engine("diff", "-f", file)

    assert shown.code == Exit.DONE
    assert "was not asked whether it accepts new pods of clique back, clique front" in shown.out, shown.out
