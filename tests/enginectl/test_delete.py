"""`engine delete`: workloads go with everything they have, after they were shown and somebody has agreed."""

import os
import pty
import re
import signal
import subprocess
from pathlib import Path

import pytest
import yaml

from engine.report.printable import DONE
from engine.verb import Verb
from enginectl.base.exit_codes import Exit
from resources.base.kinds import DYNAMO_GRAPH, POD, PODCLIQUESET
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine, command, environment
from tests.stories.graphs import graph
from tests.waiting import PATIENCE


@pytest.fixture
def synced(box: Box, engine: Engine, tmp_path: Path) -> Box:
    """Two sets with one pod each, settled."""
    write(tmp_path, "one", "two")
    assert engine("sync", "-f", tmp_path / "manifests.yaml").code == Exit.DONE
    return box


def write(folder: Path, *names: str) -> Path:
    """Manifests of sets with one pod."""
    manifests = [podcliqueset(name, clique("worker", 1)) for name in names]
    for manifest in manifests:
        manifest["metadata"]["labels"] = {"name": manifest["metadata"]["name"], "team": "x"}
    (folder / "manifests.yaml").write_text(yaml.safe_dump_all(manifests))
    return folder / "manifests.yaml"


@pytest.mark.parametrize("word", ["two", "pcs/two", "podcliqueset/two", "PodCliqueSet/two", "podcliquesets.grove.io/two"])
def test_a_set_is_named_as_for_kubectl_and_goes_with_everything_it_has(synced: Box, engine: Engine, word: str) -> None:
    answer = engine("delete", word, "--yes")

    assert (answer.code, answer.last) == (Exit.DONE, "exit 0: done")
    assert synced.names(PODCLIQUESET) == ["one"]
    assert all(name.startswith("one-") for name in synced.names(POD))
    assert "delete PodCliqueSet/two   SetDeleted: " in answer.out and "asked for by engine delete" in answer.out


def test_a_dry_run_shows_everything_and_deletes_nothing(synced: Box, engine: Engine) -> None:
    before = synced.revisions()

    answer = engine("delete", "one", "two", "--dry-run")

    assert (answer.code, synced.revisions()) == (Exit.DONE, before)
    assert answer.out.count("stage 1") == 2 and "1 pod removed" in answer.out


def in_past_tense(text: str) -> str:
    """What is to be done, as it is counted once it is done."""
    return re.sub(r"to (\w+)", lambda match: DONE[Verb(match[1])], text)


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("delete", "one"), 1),
        (("delete", "one", "two"), 2),
        (("delete", "dgd/chat"), 1),
        (("sync", "-f", "{folder}/next", "--prune", "--applyset", "team"), 3),
    ],
    ids=["set", "sets", "graph", "prune"],
)
def test_the_last_line_counts_everything_that_goes_as_the_command_counts_it_afterwards(
    synced: Box, engine: Engine, tmp_path: Path, words: tuple[str, ...], first: int
) -> None:
    """`first`: with how many operations it begins."""
    (tmp_path / "graph.yaml").write_text(yaml.safe_dump(graph()))
    for name in ("all", "next"):
        (tmp_path / name).mkdir()
    write(tmp_path / "all", "one", "two")
    write(tmp_path / "next", "one")
    assert engine("sync", "-f", tmp_path / "graph.yaml").code == Exit.DONE
    assert engine("sync", "-f", tmp_path / "all", "--prune", "--applyset", "team").code == Exit.DONE
    words = tuple(word.format(folder=tmp_path) for word in words)

    preview = engine(*words, "--dry-run")
    summary = engine(*words, "--dry-run", "-o", "json").document["summary"]
    done = engine(*words, "--yes")

    (planned,) = re.findall(r"Plan: ([^;.]*)", preview.out)
    (applied,) = re.findall(r"Applied: ([^.]*)", done.out)
    assert in_past_tense(planned) == applied
    assert int(re.findall(r"(\d+) to delete", planned)[0]) > 5 and summary["changes"] <= first


def test_others_are_left_alone_even_if_they_have_changes(synced: Box, engine: Engine) -> None:
    synced.scale("one", 2)

    shown = engine("delete", "two", "--dry-run", "-o", "json")
    assert [root["root"]["name"] for root in shown.document["roots"] if root["operations"]] == ["two"]

    assert engine("delete", "two", "--yes").code == Exit.DONE
    assert len(synced.names(POD)) == 1


def test_manifests_and_labels_name_workloads(synced: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("delete", "-l", "team=x,name in (one,three)", "--yes").code == Exit.DONE
    assert synced.names(PODCLIQUESET) == ["two"]

    missing = engine("delete", "-f", tmp_path / "manifests.yaml", "--yes")
    assert (missing.code, synced.names(PODCLIQUESET)) == (Exit.FAILED, ["two"])
    assert engine("delete", "-f", tmp_path / "manifests.yaml", "--yes", "--ignore-not-found").code == Exit.DONE
    assert synced.names(PODCLIQUESET) == []


def test_what_does_not_exist_is_an_error_that_names_what_does(synced: Box, engine: Engine) -> None:
    missing, ignored = engine("delete", "tow", "--yes"), engine("delete", "tow", "--yes", "--ignore-not-found")
    unlabelled = engine("delete", "-l", "team=y", "--yes")

    assert missing.code == Exit.FAILED
    assert "tow does not exist; there are PodCliqueSet/default/two, PodCliqueSet/default/one" in missing.err
    assert (ignored.code, synced.names(PODCLIQUESET)) == (Exit.DONE, ["one", "two"])
    assert (unlabelled.code, "no workload has the labels team=y" in unlabelled.err) == (Exit.FAILED, True)


@pytest.mark.parametrize("words", [("one",), ("pcs/one",), ("-l", "team=y")])
def test_a_namespace_that_does_not_exist_is_named(synced: Box, engine: Engine, words: tuple[str, ...]) -> None:
    answer, ignored = (engine("delete", *words, "-n", "nope", "--yes", *more) for more in ((), ("--ignore-not-found",)))

    assert (answer.code, ignored.code) == (Exit.FAILED, Exit.DONE)
    assert " in nope: the namespace does not exist" in answer.err


def test_a_protected_set_is_refused_until_its_annotation_is_removed(synced: Box, engine: Engine) -> None:
    synced.change(PODCLIQUESET, "two", {"metadata": {"annotations": {"engine.grove.io/protect": "true"}}})

    refused, shown = engine("delete", "one", "two", "--yes"), engine("delete", "two", "--dry-run")
    assert (refused.code, shown.code, synced.names(PODCLIQUESET)) == (Exit.DENIED, Exit.DENIED, ["one", "two"])
    assert "denied by protected: PodCliqueSet/default/two is protected" in refused.err

    synced.change(PODCLIQUESET, "two", {"metadata": {"annotations": {"engine.grove.io/protect": None}}})
    assert engine("delete", "two", "--yes").code == Exit.DONE


def test_a_set_of_a_graph_goes_with_its_graph_only(box: Box, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "graph.yaml").write_text(yaml.safe_dump(graph()))
    assert engine("sync", "-f", tmp_path / "graph.yaml").code == Exit.DONE

    refused = engine("delete", "pcs/chat", "--yes")
    assert refused.code == Exit.DENIED
    assert "denied by owned: PodCliqueSet/default/chat belongs to DynamoGraphDeployment chat" in refused.err

    assert engine("delete", "chat", "--yes").code == Exit.DONE
    assert box.names(DYNAMO_GRAPH) == [] and box.names(PODCLIQUESET) == [] and box.names(POD) == []


def test_without_waiting_the_deletion_has_begun(full_box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", write(tmp_path, "one"), "--no-wait").code == Exit.DONE

    answer = engine("delete", "one", "--yes", "--no-wait", "-o", "json")

    assert answer.code == Exit.DONE
    assert ("delete", "PodCliqueSet") in {(one["verb"], one["object"]["kind"]) for one in answer.document["results"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "name the workloads to delete"),
        (("one",), "there is no terminal to ask on: confirm with --yes"),
        (("one", "-o", "json"), "-o json asks no questions"),
        (("pods/one", "--yes"), "pods is none of ClusterTopologyBinding, DynamoGraphDeployment, PodCliqueSet"),
        (("One\x1b", "--yes"), "not a valid name"),
        (("sets/web.yaml", "--yes"), "sets/web.yaml: not a name; name manifests with -f sets/web.yaml"),
        (("one", "-A", "--yes"), "leave out -A"),
        (("-l", "a=b=c", "--yes"), "--selector: a=b=c is no requirement of a label"),
    ],
)
def test_what_cannot_be_understood_is_a_usage_error(box: Box, engine: Engine, words: tuple[str, ...], message: str) -> None:
    answer = engine("delete", *words, *(() if words else ("--yes",)))

    assert (answer.code, message in answer.err) == (Exit.USAGE, True), answer.err


@pytest.mark.parametrize(("reply", "code", "left"), [("n", Exit.FAILED, ["one", "two"]), ("y", Exit.DONE, ["one"])])
def test_on_a_terminal_it_shows_what_goes_and_asks(synced: Box, reply: str, code: Exit, left: list[str]) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{reply}\n".encode())
    with subprocess.Popen(
        command("delete", "two"),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(KUBECONFIG=str(synced.kubeconfig), TERM="dumb"),
    ) as process:
        try:
            out, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    os.close(theirs)
    asked = os.read(ours, 100_000).decode()
    os.close(ours)

    assert "Delete this workload? [y/N]" in asked
    assert "1 pod removed" in out.decode()
    assert (process.returncode, synced.names(PODCLIQUESET)) == (code, left)


def test_a_signal_during_the_question_ends_the_command_and_nothing_is_deleted(synced: Box) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command("delete", "two"),
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment(KUBECONFIG=str(synced.kubeconfig), TERM="dumb"),
    ) as process:
        asked = ""
        while "[y/N]" not in asked:
            asked += os.read(ours, 1000).decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE) == Exit.INTERRUPTED
    os.close(theirs)
    os.close(ours)

    assert synced.names(PODCLIQUESET) == ["one", "two"]
