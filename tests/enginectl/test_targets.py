"""What the words of `--target` mean, without a cluster; and files that have nothing to plan."""

import io
from pathlib import Path

import pytest

from engine.focus import RootTarget
from enginectl.base.exit_codes import Exit, UsageError
from enginectl.input import kustomize
from enginectl.input.targets import parse_target
from tests.enginectl.calling import ROOT, Engine

FIRST = ROOT / "examples" / "01-first-gang"
SHARING = ROOT / "examples" / "05-annotated-domain"


@pytest.mark.parametrize(
    ("word", "target"),
    [
        ("web", RootTarget(name="web")),
        ("pcs/web", RootTarget("PodCliqueSet", "", "web")),
        ("DGD/web", RootTarget("DynamoGraphDeployment", "", "web")),
        ("podcliquesets.grove.io/web", RootTarget("PodCliqueSet", "", "web")),
        ("prod/web", RootTarget("", "prod", "web")),
        ("pcs/prod/w*b", RootTarget("PodCliqueSet", "prod", "w*b")),
        ("ClusterTopologyBinding/racks", RootTarget("ClusterTopologyBinding", "", "racks")),
    ],
)
def test_a_word_names_a_kind_a_namespace_and_a_name(word: str, target: RootTarget) -> None:
    assert parse_target(word) == target == parse_target(str(target))


@pytest.mark.parametrize("word", ["", "/", "pcs/", "/web", "pods/default/web", "a/b/c/d", "pcs/a/b/c", "we b", "web\x1b[2J", "Web", "[a]"])
def test_what_is_no_target_is_a_usage_error(word: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_target(word)

    assert "\x1b" not in str(error.value)


def test_targets_choose_among_the_manifests_without_a_cluster(engine: Engine) -> None:
    answer = engine("diff", "-f", SHARING, "--against", "empty", "-o", "json", "--next", "--target", "decode")

    assert [root["root"]["name"] for root in answer.document["roots"]] == ["decode"]
    assert not any("encode" in note for root in answer.document["roots"] for note in root["notes"])


@pytest.mark.parametrize("command", [("diff", "--against", "empty"), ("render",)])
def test_files_without_a_workload_are_an_error(engine: Engine, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "a.yaml").write_text("# nothing\n---\n")
    (tmp_path / "b.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n")

    answer = engine(*command, "-f", tmp_path / "a.yaml", "-f", tmp_path / "b.yaml")

    assert answer.code == Exit.FAILED
    assert "no objects passed: there is no PodCliqueSet, ClusterTopologyBinding or DynamoGraphDeployment in " in answer.err
    assert f"{tmp_path}/a.yaml, {tmp_path}/b.yaml" in answer.err


def test_a_review_of_nothing_is_an_error(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "none.json").write_text("\n")

    answer = engine("review", "-f", tmp_path / "none.json")

    assert (answer.code, answer.err.splitlines()[0]) == (Exit.FAILED, f"engine: {tmp_path}/none.json: no AdmissionReview passed")


def program(folder: Path, name: str, script: str) -> None:
    """A program of that name."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def kustomization(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a kustomization and a manifest that is not to be read, and no program on the PATH but those of `tmp_path`."""
    folder = tmp_path / "overlay"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("resources: [../base]\n")
    (folder / "patch.yaml").write_text("spec: {}\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    return folder


@pytest.mark.parametrize("option", ["-k", "-f"])
@pytest.mark.parametrize(("name", "word"), [("kustomize", "build"), ("kubectl", "kustomize")])
def test_a_kustomization_is_built_by_the_program_that_there_is(
    engine: Engine, tmp_path: Path, kustomization: Path, option: str, name: str, word: str
) -> None:
    program(tmp_path, name, f'[ "$1 $2" = "{word} {kustomization}" ] && read line < {FIRST}/gang.yaml && exec /bin/cat {FIRST}/gang.yaml')

    answer = engine("diff", option, kustomization, "--against", "empty", "-o", "json", "--next")

    assert [root["root"]["name"] for root in answer.document["roots"]] == ["first"]


def test_a_build_that_fails_or_is_not_possible_says_why(engine: Engine, tmp_path: Path, kustomization: Path) -> None:
    missing = engine("render", "-k", kustomization)
    program(tmp_path, "kustomize", r"printf '# Warning: old field\nError: no such file\033[2J\n' >&2; exit 1")
    failed = engine("render", "-k", kustomization)
    program(tmp_path, "kustomize", "echo 'kind: [x'")
    broken = engine("render", "-k", kustomization)
    other = engine("render", "-k", tmp_path)
    its_file = engine("render", "-k", kustomization / "kustomization.yaml")

    assert (missing.code, failed.code, broken.code, other.code) == (Exit.USAGE, Exit.FAILED, Exit.FAILED, Exit.USAGE)
    assert f"neither kustomize nor kubectl is on the PATH: where one is, kustomize build {kustomization} | engine diff -f -" in missing.err
    assert f"{kustomization}: kustomize build failed: no such file\\x1b[2J" in failed.err
    assert f"{kustomization} (built by kustomize):2: not YAML" in broken.err
    assert f"{tmp_path}: no directory with a kustomization.yaml\n" in other.err
    assert its_file.code == Exit.USAGE and f"; name the directory: -k {kustomization}\n" in its_file.err


def test_a_build_that_does_not_end_is_ended(engine: Engine, tmp_path: Path, kustomization: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kustomize, "SECONDS", 0.2)
    program(tmp_path, "kustomize", "exec /bin/sleep 30")

    answer = engine("render", "-k", kustomization)

    assert (answer.code, answer.err.splitlines()[0]) == (
        Exit.FAILED,
        f"engine: {kustomization}: kustomize build did not end within 0.2 seconds",
    )


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("resources:\n- ok.yaml\n- https://example.com/a.yaml\n", "2: resources[1]: https://example.com/a.yaml"),
        ("Resources: ['git::ssh://git@example.com/x']\n", "0: Resources[0]: git::ssh://git@example.com/x"),
        ("resources: [github.com/someone/x?ref=main]\n", "0: resources[0]: github.com/someone/x?ref=main"),
        ("bases: ['git@example.com:someone/x']\n", "0: bases[0]: git@example.com:someone/x"),
        ("components: ['oci://example.com/x']\n", "0: components[0]: oci://example.com/x"),
        ("patches:\n- target: {kind: Pod}\n  path: http://example.com/p\n", "2: patches[0].path: http://example.com/p"),
        (
            "configMapGenerator: [{name: a, files: ['k=https://example.com/f']}]\n",
            "0: configMapGenerator[0].files[0]: https://example.com/f",
        ),
        ("openapi: {path: https://example.com/s.json}\n", "0: openapi.path: https://example.com/s.json"),
        ("helmCharts: [{name: web, repo: https://example.com}]\n", "0: helmCharts[0]: the chart web"),
        ("transformers:\n- |\n  kind: PatchTransformer\n  path: https://example.com/p\n", "1: transformers[0]: a URL in a plug-in"),
        ('resources: ["https://example.com/\\e[2J"]\n', "0: resources[0]: https://example.com/\\x1b[2J"),
    ],
)
def test_a_kustomization_uses_no_network_unless_it_is_enabled(
    engine: Engine, tmp_path: Path, kustomization: Path, text: str, entry: str
) -> None:
    """Also where another one includes it. Nothing is built before."""
    program(tmp_path, "kustomize", f"echo >> {tmp_path}/built; exec /bin/cat {FIRST}/gang.yaml")
    base = tmp_path / "base"
    base.mkdir()
    (base / "kustomization.yml").write_text(text)

    refused = [engine(*words, kustomization) for words in (("diff", "--against", "empty", "-f"), ("render", "-k"), ("graph", "-f"))]
    refused += [engine("delete", "--dry-run", "-n", "a", "-f", kustomization), engine("sync", "--dry-run", "-f", kustomization)]
    is_built = (tmp_path / "built").exists()
    allowed = engine("render", "-k", kustomization, "--enable-remote")

    line, _, what = entry.partition(": ")
    expected = (
        f"{kustomization}/../base/kustomization.yml:{int(line) + 1}: {what} is fetched over the network: allow it with --enable-remote"
    )
    assert [answer.code for answer in refused] == [Exit.FAILED] * 5
    assert [answer.err for answer in refused if expected not in answer.err] == []
    assert (is_built, allowed.code) == (False, Exit.DONE)


def test_what_a_kustomization_says_about_urls_is_no_fetch(engine: Engine, tmp_path: Path, kustomization: Path) -> None:
    """And what is fetched all the same, by a program that knows more fields, finds no network."""
    (kustomization / "kustomization.yaml").write_text(
        "resources: [patch.yaml]\nimages: [{name: a, newName: 'example.com:5000/a'}]\ncommonAnnotations: {at: 'https://example.com'}\n"
        "configMapGenerator: [{name: a, literals: ['at=https://example.com'], files: [k=patch.yaml]}]\n"
        "patches: [{patch: '- {op: add, path: /metadata/annotations/at, value: https://example.com}'}]\n"
    )
    program(tmp_path, "kustomize", f'[ "$HTTPS_PROXY" = http://127.0.0.1:9 ] && exec /bin/cat {FIRST}/gang.yaml')

    assert engine("render", "-k", kustomization).code == Exit.DONE


def test_standard_input_without_an_object_is_an_error(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))

    assert "in standard input" in engine("render", "-f", "-").err
