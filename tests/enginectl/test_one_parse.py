"""One parse: a command reads each revision of a set or a graph once, from the file to the forecast and the last pass."""

from pathlib import Path

import pytest

from engine import planner
from resources.install.webhooks import DEFAULT_SET, VALIDATE_SET, Webhook
from tests.counting import HASHING, READING_GRAPHS, counted, read, read_graph
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.serving.test_admission import answer_of, judge_of, reviewed
from tests.resources.admission.requests import whole

SET = ROOT / "examples" / "01-first-gang" / "gang.yaml"
PODS = 2
"""The pod specs of `SET`."""


GRAPHS = {"single": (2, 2), "vllm": (2, 3), "trtllm": (2, 3)}
"""The examples of graphs, with the numbers of their services and of the pod specs of their sets."""
OFFLINE = [("diff", "--against", "empty"), ("render",)]


def file_of(graph: str) -> Path:
    """The example of that name."""
    return ROOT / "examples" / "06-dynamo" / f"{graph}.yaml"


def edited(folder: Path, old: str, new: str, file: Path = SET) -> Path:
    """The file with another text in one place."""
    text = file.read_text()
    assert old in text
    result = folder / "edited.yaml"
    result.write_text(text.replace(old, new))
    return result


@pytest.mark.parametrize("words", [("diff", "--against", "empty"), ("render",), ("diff", "--base", SET)], ids=lambda words: words[-1])
def test_a_manifest_is_read_once_without_a_cluster(engine: Engine, words: tuple[str, ...]) -> None:
    with counted() as counts:
        result = engine(*words, "-f", SET)

    assert (result.code, counts) == (0, read(1 + ("--base" in words), PODS))


@pytest.mark.parametrize("words", OFFLINE, ids=lambda words: words[0])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_and_its_set_are_read_once_without_a_cluster(engine: Engine, name: str, words: tuple[str, ...]) -> None:
    with counted(READING_GRAPHS) as counts:
        assert engine(*words, "-f", file_of(name)).code == 0

    assert counts == read_graph(*GRAPHS[name])


@pytest.mark.parametrize("name", ["single", "vllm"])
def test_a_graph_and_its_set_are_read_once_with_their_forecast_and_while_they_are_applied(engine: Engine, box: Box, name: str) -> None:
    commands = [("diff", "-f"), ("sync", "-y", "-f"), ("diff", "-f"), ("diff",), ("status",)]
    results = []
    for words in commands:
        with counted(READING_GRAPHS) as counts:
            assert engine(*words, *([file_of(name)] if words[-1] == "-f" else [])).code == 0
        results.append(counts)

    assert results == [read_graph(*GRAPHS[name])] * len(commands)


@pytest.mark.parametrize(
    ("old", "new", "edits_pods"), [("[--model, Qwen/Qwen3-0.6B]", "[--model, other]", True), ("replicas: 2", "replicas: 3", False)]
)
def test_an_edited_graph_is_read_once_beside_the_stored_one(
    engine: Engine, box: Box, tmp_path: Path, old: str, new: str, edits_pods: bool
) -> None:
    assert engine("sync", "-y", "-f", file_of("single")).code == 0
    file = edited(tmp_path, old, new, file_of("single"))
    results = []
    for words in (("diff", "-f", file), ("diff", "-f", file, "--out", tmp_path / "plan"), ("sync", "-y", "-f", file)):
        with counted(READING_GRAPHS) as counts:
            assert engine(*words).code == 0
        results.append(counts)

    expected = read_graph(*GRAPHS["single"], stored=1)
    expected["hashed"] += 3 * edits_pods  # The edited clique: with its scheduler in the other spelling, and both in the former form.
    assert results == [expected] * 3


@pytest.mark.parametrize("words", [*OFFLINE, ("diff",), ("sync", "-y"), ("diff", "--out", "plan")], ids=lambda words: words[0])
def test_the_pods_of_a_set_are_hashed_once_for_each_revision(
    engine: Engine, box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    with counted(HASHING) as counts:
        assert engine(*words, "-f", SET).code == 0

    assert counts == {"hashed": PODS}


def test_a_manifest_is_read_once_with_its_forecast_and_while_it_is_applied(engine: Engine, box: Box) -> None:
    with counted() as previewed:
        assert engine("diff", "-f", SET).code == 0
    with counted() as applied:
        assert engine("sync", "-y", "-f", SET).code == 0
    with counted() as unchanged:
        assert engine("diff", "-f", SET).code == 0
    with counted() as stored:
        assert engine("diff").code == 0

    assert [previewed, applied, unchanged, stored] == [read(1, PODS)] * 4


@pytest.mark.parametrize(
    ("old", "new"), [("alpine", "alpine3"), ("replicas: 2", "replicas: 3"), ("      - name: main", "      - name: more")]
)
def test_an_edited_manifest_is_read_once_beside_the_stored_set(engine: Engine, box: Box, tmp_path: Path, old: str, new: str) -> None:
    assert engine("sync", "-y", "-f", SET).code == 0
    file = edited(tmp_path, old, new)

    with counted() as previewed:
        assert engine("diff", "-f", file).code == 0
    with counted() as saved:
        assert engine("diff", "-f", file, "--out", tmp_path / "plan").code == 0
    with counted() as applied:
        assert engine("sync", "-y", "-f", file).code == 0

    assert [previewed, saved, applied] == [read(1, PODS, stored=1)] * 3


def test_what_has_not_changed_since_the_preview_of_a_sync_is_not_planned_again(engine: Engine, box: Box) -> None:
    assert engine("sync", "-y", "-f", SET).code == 0
    counted_parts = {}
    for words in (("diff",), ("sync", "-y", "--policy", ROOT / "examples" / "policies")):
        with counted({"parts": planner._Planning._plan}) as counts:
            assert engine(*words).code == 0
        counted_parts[words[0]] = counts["parts"]

    assert counted_parts["sync"] == counted_parts["diff"] > 0


@pytest.mark.anyio
@pytest.mark.parametrize("webhook", [DEFAULT_SET, VALIDATE_SET])
async def test_a_review_reads_the_new_object_once_and_parses_the_stored_one(webhook: Webhook) -> None:
    pods = len(whole()["spec"]["template"]["cliques"])
    other = whole()
    other["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = "other"
    reviews = (reviewed(whole()), read(1, pods)), (reviewed(other, whole()), read(1, pods, stored=1)), (reviewed(whole(), whole()), SAME)

    for review, expected in reviews:
        with counted() as counts:
            answer = await answer_of(judge_of(), webhook, review)
        assert (answer.status, counts) == (200, expected)


SAME = {"parsed": len(whole()["spec"]["template"]["cliques"]), "judged": 1}
"""What is read of an object that has not changed: its pod specs were admitted before."""
