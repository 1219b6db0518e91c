"""Forecasts on the command line: exit code 9, how far they look, and every pass of them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from enginectl.base.exit_codes import Exit
from resources.base import kinds, labels
from resources.base.fields import manifest
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine

FIRST = ROOT / "examples" / "01-first-gang"


def test_a_set_that_cannot_settle_exits_with_9(box: Box, engine: Engine) -> None:
    box.create(kinds.SERVICE, manifest(kinds.SERVICE, "default", "first-0", labels.default("first"), spec={"clusterIP": "None"}))

    answers = [engine(*words, "-f", FIRST) for words in (("diff",), ("diff", "--detailed-exitcode"), ("sync", "--dry-run"))]

    assert {answer.code for answer in answers} == {Exit.STUCK}
    assert {answer.last for answer in answers} == {"exit 9: would not settle"}
    assert "STUCK: the remaining steps need manual action" in answers[0].out and "Service/first-0" in answers[0].out


@pytest.mark.parametrize("options", [(), ("--next",)], ids=["whole", "next"])
def test_what_is_blocked_exits_with_9_whether_the_end_is_shown_or_not(box: Box, engine: Engine, options: Sequence[str]) -> None:
    box.create(kinds.SERVICE, manifest(kinds.SERVICE, "default", "first-0", labels.default("first"), spec={"clusterIP": "None"}))

    for words in ((), ("--detailed-exitcode",), ("-o", "json")):
        answer = engine("diff", "-f", FIRST, *options, *words)
        assert answer.code == Exit.STUCK


def test_a_set_that_merely_waits_for_a_pod_exits_with_0(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, podcliqueset("demo", clique("a", 2, minAvailable=1)))).code == Exit.DONE
    pod = box.names(kinds.POD)[0]
    box.change(kinds.POD, pod, {"metadata": {"annotations": {"sandbox.grove.io/fail": "crash"}}})
    box.wait_for(kinds.POD, is_crashing, pod)

    answer = engine("diff", "-o", "json")

    assert answer.code == Exit.DONE
    assert [root["forecast"]["end"] for root in answer.document["roots"]] == ["stuck"]


def test_a_forecast_simulates_as_many_passes_as_it_is_told_to(engine: Engine, tmp_path: Path) -> None:
    file = written(tmp_path, podcliqueset("demo", clique("a", 2)))

    short, whole = (engine("diff", "-f", file, "--against", "empty", *words) for words in (("--forecast-passes", "1"), ()))

    assert "at least: more follows than was computed" in short.out
    assert "; settled, " in whole.out
    assert engine("diff", "-f", file, "--forecast-passes", "0").code == Exit.USAGE


def test_every_pass_is_shown_with_v(box: Box, engine: Engine, tmp_path: Path) -> None:
    def set_of(version: int) -> Path:
        spec = {"containers": [{"name": "main", "image": f"nginx:1.2{version}"}]}
        return written(tmp_path, podcliqueset("demo", clique("a", 4, minAvailable=3, pod_spec=spec), groups=()))

    assert engine("sync", "-f", set_of(7)).code == Exit.DONE

    brief, verbose = (engine("diff", "-f", set_of(8), *words) for words in ((), ("-v",)))

    assert stages(brief.out) == 2 and stages(verbose.out) == 7
    assert "4 pods restarted" in brief.out and "4 pods restarted" in verbose.out


def test_a_forecast_from_a_snapshot_is_that_of_the_cluster(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, podcliqueset("demo", clique("a", 2), clique("b"), replicas=2))).code == Exit.DONE
    snapshot = tmp_path / "snapshot.yaml"
    assert engine("snapshot", "--out", snapshot).code == Exit.DONE
    spec = {"containers": [{"name": "main", "image": "nginx:1.28"}]}
    file = written(tmp_path, podcliqueset("demo", clique("a", 2, pod_spec=spec), clique("b", pod_spec=spec), replicas=3))

    live, offline = (engine("diff", "-f", file, *words, "-o", "json").document for words in ((), ("--against", snapshot)))

    assert set(live["forecast"].pop("assumptions")) ^ set(offline["forecast"].pop("assumptions")) == {"ROOM", "CAPACITY"}
    assert live["forecast"] == offline["forecast"] and live["forecast"]["complete"]
    assert [root["forecast"] for root in live["roots"]] == [root["forecast"] for root in offline["roots"]]


def is_crashing(pod: dict[str, Any]) -> bool:
    """Whether a container of a pod waits for its next start."""
    return any(each["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff" for each in pod["status"].get("containerStatuses", ()))


def stages(text: str) -> int:
    """The number of stages that a report shows."""
    return sum(line.startswith("  stage ") for line in text.splitlines())


def written(folder: Path, body: dict[str, Any], name: str = "set.yaml") -> Path:
    """A file with this manifest."""
    file = folder / name
    file.write_text(yaml.safe_dump(body))
    return file


def test_a_pod_that_goes_at_once_leaves_its_name_to_the_next_one_as_the_forecast_says(box: Box, engine: Engine, tmp_path: Path) -> None:
    def set_of(version: int) -> Path:
        spec = {"containers": [{"name": "main", "image": f"nginx:1.2{version}"}], "terminationGracePeriodSeconds": 0}
        return written(tmp_path, podcliqueset("demo", clique("a", 4, pod_spec=spec)))

    assert engine("sync", "-f", set_of(7)).code == Exit.DONE

    shown, done = engine("diff", "-f", set_of(8), "-o", "json"), engine("sync", "-f", set_of(8), "-o", "json")

    applied = Counter(each["verb"] for each in done.document["results"] if each["verb"] != "status")
    assert shown.document["forecast"]["operations"] == {**dict.fromkeys(shown.document["forecast"]["operations"], 0), **applied}
    assert applied["patch"] == 2  # The set and the PodClique: the PodGang still names the same pods.


def test_two_sets_of_one_file_that_need_one_name_restart_nothing_and_one_is_refused_by_it(engine: Engine, tmp_path: Path) -> None:
    for name, set_, clique_ in (("one.yaml", "a", "0-b"), ("two.yaml", "a-0", "b")):
        written(tmp_path, podcliqueset(set_, clique(clique_)), name)

    answer = engine("diff", "-f", tmp_path, "--against", "empty")

    assert answer.code == Exit.STUCK and "1 pod added; " in answer.out and "restarted" not in answer.out, answer.out
    assert "NameConflict: PodClique default/a-0-0-b already exists but is not controlled by PodCliqueSet default/a-0" in answer.out
