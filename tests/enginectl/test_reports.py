"""Documents for reviews: several formats from one look, files that are written as a whole, bounded Markdown."""

import json
import os
import re
import threading
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from tests.builders import clique, podcliqueset
from tests.engine.report.test_html import Document
from tests.enginectl.calling import ROOT, Engine

SET = ROOT / "examples" / "03-scaling-group"
OFFLINE = ("--against", "empty", "-f", SET)


def test_one_look_gives_every_document(engine: Engine, tmp_path: Path) -> None:
    page, comment, data, lines = (tmp_path / name for name in ("plan.html", "plan.md", "plan.json", "plan.txt"))

    answer = engine(
        "diff",
        *OFFLINE,
        "--report",
        f"html={page}",
        "--report",
        f"markdown={comment}",
        "--report",
        f"json={data}",
        "--report",
        f"text={lines}",
    )

    assert (answer.code, answer.errors) == (Exit.DONE, "")
    assert page.read_text().endswith("</html>\n")
    assert comment.read_text().startswith("<!-- engine:diff -->\n### engine: 28 changes\n")
    assert json.loads(data.read_text())["summary"]["create"] == 24
    assert answer.out == f"{lines.read_text()}exit 0: done\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.html", "plan.json", "plan.md", "plan.txt"]


def test_the_page_of_an_update_leads_with_its_cost_and_draws_the_whole_of_it_folded_by_replica(engine: Engine, tmp_path: Path) -> None:
    for name, image, replicas in (("old", "m:1", 50), ("new", "m:2", 48)):
        container = {"name": "main", "image": image, "resources": {"limits": {"nvidia.com/gpu": 4}}}
        cliques = [clique(each, 2, minAvailable=2, pod_spec={"containers": [container]}) for each in ("a", "b")]
        (tmp_path / f"{name}.json").write_text(json.dumps(podcliqueset("serving", *cliques, replicas=replicas)))

    answer = engine("diff", "--base", tmp_path / "old.json", "-f", tmp_path / "new.json", "-o", "html")
    document = Document(answer.out)
    lead, _, rest = document.text.partition("Next pass: ")

    assert answer.code == Exit.DONE
    assert "Restarted 192 pods restarted (768 GPUs)" in lead
    assert "Below minimum 96 objects for a time PodClique/serving-{0..47}-a ×48 : 1 of 2 pods ready, minimum 2" in lead
    assert "Deleted 8 pods removed (32 GPUs), 4 PodCliques, 2 PodGangs, 2 Services deleted" in lead
    assert "Takes 384 passes" in lead and "Left nothing" in lead
    drawn = rest[rest.index("What is done, in order") :]
    for expected in ("step 1", "step 2", "then", "190 times", "each time followed by", "+ create Pod ×", "- delete PodGang ×2"):
        assert expected in drawn[: drawn.index("The fewest ready members")]
    assert 8 < sum(tag == "rect" for tag, _ in document.tags) <= 40


def test_a_dry_run_of_sync_takes_the_same_options(box: object, engine: Engine, tmp_path: Path) -> None:
    answer = engine("sync", "--dry-run", "-f", SET, "-o", "markdown", "--title", "prod", "--report", f"json={tmp_path / 'plan.json'}")

    assert (answer.code, answer.out.splitlines()[0]) == (Exit.DONE, "<!-- engine:diff prod -->")
    assert json.loads((tmp_path / "plan.json").read_text())["summary"]["create"] == 24


@pytest.mark.parametrize("words", [("-o", "markdown"), ("--report", "json=x"), ("--summary", "x")])
def test_a_sync_that_writes_has_no_plan_to_show(engine: Engine, words: tuple[str, ...]) -> None:
    answer = engine("sync", "-f", SET, *words)

    assert answer.code == Exit.USAGE
    assert f"{words[0]}{' markdown' if words[0] == '-o' else ''} shows a plan: it needs --dry-run" in answer.err


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--report", "plan.html"), "--report takes FORMAT=FILE with one of the formats text, json, html, markdown"),
        (("--report", "pdf=plan"), "got pdf=plan"),
        (("--report", "html=-"), "--report html=-: -o html writes to standard output"),
        (("--report", "html=x", "--report", "json=x"), "--report: x is named twice"),
        (("--report", "html=missing/x"), "--report missing/x: there is no directory missing"),
        (("--summary", ""), "--summary needs the name of a file"),
        (("--summary", "missing/x"), "--summary missing/x: there is no directory missing"),
        (("--title", "a -->"), "--title takes letters"),
        (("--link", "javascript:alert(1)"), "--link takes an address"),
        (("--max-bytes", "100"), "--max-bytes"),
    ],
)
def test_what_cannot_be_written_is_a_usage_error(engine: Engine, words: tuple[str, ...], fault: str) -> None:
    answer = engine("diff", *OFFLINE, *words)

    assert answer.code == Exit.USAGE
    assert fault in answer.err


def test_a_summary_is_appended(engine: Engine, tmp_path: Path) -> None:
    summary = tmp_path / "summary"
    summary.write_text("before\n")

    engine("diff", *OFFLINE, "--summary", summary)
    answer = engine("diff", *OFFLINE, "--summary", summary, "--detailed-exitcode")

    assert answer.code == Exit.CHANGES
    assert summary.read_text().startswith("before\n<!-- engine:diff -->\n")
    assert summary.read_text().count("### engine: 28 changes") == 2


def test_a_report_replaces_a_file_as_a_whole_and_writes_into_a_pipe(engine: Engine, tmp_path: Path) -> None:
    file, pipe, received = tmp_path / "plan.json", tmp_path / "pipe", list[str]()
    file.write_text("old")
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_text()))
    reader.start()

    engine("diff", *OFFLINE, "--report", f"json={tmp_path / 'link'}", "--report", f"markdown={pipe}")
    reader.join(10)

    assert json.loads(file.read_text())["kind"] == "Diff" and (tmp_path / "link").is_symlink()
    assert received[0].startswith("<!-- engine:diff -->") and pipe.is_fifo()


def test_values_of_the_environment_are_masked_in_documents_for_people(engine: Engine, tmp_path: Path) -> None:
    manifest = tmp_path / "set.yaml"
    manifest.write_text(
        (SET / "group.yaml").read_text().replace("name: main\n", "name: main\n                env: [{name: T, value: hunter2}]\n")
    )
    page, comment = tmp_path / "plan.html", tmp_path / "plan.md"
    words = ("diff", "--against", "empty", "-f", manifest, "--report", f"html={page}", "--report", f"markdown={comment}")

    engine(*words)
    masked = page.read_text() + comment.read_text()
    engine(*words, "--show-values")

    assert "hunter2" not in masked and "(masked)" in masked
    assert "hunter2" in page.read_text()


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("minAvailable: 1 # one", "minAvailable: 5 # one", 14, "minAvailable must not be greater than replicas"),
        ("roleName: frontend", "roleName: []", 12, "must be a string, got a list"),
        ("kind: PodCliqueSet", "kind: {", 5, "not YAML"),
    ],
)
def test_faults_of_manifests_are_findings_at_their_lines(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, line: int, message: str
) -> None:
    (source,) = SET.glob("*.yaml")
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "a.yaml").write_text(source.read_text().replace(old, new))
    monkeypatch.chdir(tmp_path)

    answer = engine("diff", "-f", tmp_path / "sets", "--against", "empty", "-o", "sarif", "--report", "sarif=out.sarif")

    (result,) = answer.document["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (answer.code, place["artifactLocation"]["uri"]) == (Exit.FAILED, "sets/a.yaml")
    assert place["region"]["startLine"] == line and message in result["message"]["text"]
    assert (tmp_path / "out.sarif").read_text() == answer.out


def test_faults_are_told_in_every_format_that_people_read(engine: Engine, tmp_path: Path) -> None:
    (source,) = SET.glob("*.yaml")
    text = source.read_text().replace("roleName: frontend", "roleName: []")
    hostile = 'kind: PodCliqueSet\napiVersion: grove.io/v1alpha1\nmetadata: {name: "<img src=x>|[a](b)\\x1b[31m"}\n'
    (tmp_path / "a.yaml").write_text(f"{text}\n---\n{hostile}---\n{text.replace('kind: PodCliqueSet', 'kind: PodCliqueSets')}")
    words = ("--report", f"html={tmp_path / 'plan.html'}", "--summary", tmp_path / "summary.md", "--title", "prod")

    answer = engine("diff", "-f", tmp_path / "a.yaml", "--against", "empty", "-o", "markdown", *words)

    assert answer.code == Exit.FAILED
    first, second, *lines = answer.out.splitlines()
    assert (first, second) == ("<!-- engine:diff prod -->", "### engine: 3 faults, nothing was planned in `prod`")
    page = (tmp_path / "plan.html").read_text()
    for fault in ("must be a string, got a list", "must be a valid name", "there is no kind PodCliqueSets"):
        assert any(fault.split()[0] in line for line in lines)
        assert fault in page and fault in answer.err
    assert (tmp_path / "summary.md").read_text() == answer.out
    assert "\x1b" not in answer.out + page and "<img" not in page
    assert all("<img" not in code_free(line) for line in lines)


def code_free(line: str) -> str:
    """The line without its code spans."""
    return re.sub(r"(`+).*?\1", "", line)


@pytest.mark.parametrize(("format", "first"), [("dot", "digraph engine {"), ("mermaid", "flowchart LR"), ("svg", "<svg xmlns=")])
def test_the_desired_graph_is_drawn_without_a_cluster_the_same_every_time(engine: Engine, format: str, first: str) -> None:
    answer = engine("graph", "-f", SET, "-o", format)

    assert (answer.code, answer.err) == (Exit.DONE, "")
    assert answer.out.startswith(first) and "serving-0-model-0-worker" in answer.out
    assert engine("graph", "-f", SET, "-o", format).out == answer.out


def test_a_graph_needs_manifests_and_tells_what_is_wrong_with_them(engine: Engine, tmp_path: Path) -> None:
    (source,) = SET.glob("*.yaml")
    (tmp_path / "a.yaml").write_text(source.read_text().replace("minAvailable: 1 # one", "minAvailable: 5 # one"))

    assert engine("graph").code == Exit.USAGE
    answer = engine("graph", "-f", tmp_path)

    assert (answer.code, answer.out.count("label")) == (Exit.FAILED, 0)
    assert "a.yaml:14: spec.template.cliques[0].spec.minAvailable" in answer.err


@pytest.mark.parametrize(("format", "first"), [("dot", "digraph engine {"), ("mermaid", "flowchart LR")])
def test_a_plan_is_drawn_with_what_happens(engine: Engine, format: str, first: str) -> None:
    answer = engine("diff", *OFFLINE, "-o", format)

    assert answer.out.startswith(first) and "create Pod" in answer.out
