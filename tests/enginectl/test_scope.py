"""The scope of commands: what `-f`, `--target`, `--selector` and `--exclude` leave alone, on a cluster."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.resource import Body
from enginectl.base.exit_codes import Exit
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUE, PODCLIQUESET, SERVICE
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, CommandResult, Engine
from tests.mnnvl.sets import named
from tests.stories.pods import running

GRAPH = ROOT / "examples" / "06-dynamo" / "single.yaml"


def file(folder: Path, *bodies: Body) -> Path:
    """A file with these manifests, called after the first one."""
    path = folder / f"{bodies[0]['metadata']['name']}.yaml"
    path.write_text(yaml.safe_dump_all([dict(body) for body in bodies]))
    return path


def plain(name: str, **labels: str) -> dict[str, Any]:
    """A set of one pod with these labels."""
    body = podcliqueset(name, clique("main", pod_spec=running(0)))
    return {**body, "metadata": {**body["metadata"], "labels": labels}}


def roots(answer: CommandResult) -> list[str]:
    """The names of the workloads in a report."""
    return sorted(root["root"]["name"] for root in answer.document["roots"])


def others(answer: CommandResult) -> list[str]:
    """The names of the workloads that a report only counts."""
    return [root["name"] for root in answer.document["others"]]


def revisions_of(box: Box, set_name: str) -> dict[str, str]:
    """The revisions of a set and of the objects whose names begin with its name."""
    return {key: revision for key, revision in box.revisions().items() if key.partition("/")[2].startswith(set_name)}


def test_a_file_is_applied_and_another_set_of_the_namespace_and_its_part_in_a_shared_domain_are_left_alone(
    box: Box, engine: Engine, tmp_path: Path
) -> None:
    a, b = file(tmp_path, named("rack", "a")), file(tmp_path, named("rack", "b"))
    assert engine("sync", "-f", b).code == Exit.DONE
    box.delete(SERVICE, "b-0")
    before = revisions_of(box, "b")

    preview = engine("diff", "-f", a, "-o", "json")
    done = engine("sync", "-f", a)

    assert (roots(preview), others(preview), done.code) == (["a"], ["b"], Exit.DONE)
    assert "1 other workload has changes; --target '*' shows it" in done.out
    assert (revisions_of(box, "b"), box.names(SERVICE)) == (before, ["a-0"])
    (domain,) = box.all(COMPUTE_DOMAIN)
    assert [owner["name"] for owner in domain["metadata"]["ownerReferences"]] == ["b", "a"]

    everything = engine("diff", "-f", a, "--target", "*", "-o", "json")
    assert (roots(everything), others(everything)) == (["a", "b"], [])
    assert engine("sync", "--target", "pcs/b").code == Exit.DONE
    assert box.names(SERVICE) == ["a-0", "b-0"]


@pytest.fixture
def three(box: Box) -> Box:
    """A cluster with three new sets, two of them of one team."""
    for body in (plain("web", team="front"), plain("api", team="back"), plain("job", team="back")):
        box.create(PODCLIQUESET, body)
    return box


def test_targets_selectors_and_exclusions_select_workloads_of_the_cluster(three: Box, engine: Engine) -> None:
    def shown(*words: str) -> list[str]:
        return roots(engine("diff", "-o", "json", "--next", *words))

    assert shown() == ["api", "job", "web"]
    assert shown("--target", "web") == shown("--target", "pcs/default/w*") == shown("-l", "team notin (back)") == ["web"]
    assert shown("--target", "web", "--target", "api") == ["api", "web"]
    assert shown("-l", "team=back", "--exclude", "job") == ["api"]
    assert shown("--target", "*", "--exclude", "PodCliqueSet/job") == ["api", "web"]

    assert engine("sync", "-l", "team=front").code == Exit.DONE
    status = engine("status", "-l", "team", "--exclude", "job", "-o", "json")
    assert [workload["root"]["name"] for workload in status.document["workloads"]] == ["api", "web"]
    assert {body["metadata"]["labels"]["app.kubernetes.io/part-of"] for body in three.all(PODCLIQUE)} == {"web"}


def test_with_files_targets_choose_among_their_workloads(three: Box, engine: Engine, tmp_path: Path) -> None:
    files = file(tmp_path, plain("one", team="back"), plain("two"))

    chosen = engine("diff", "-f", files, "-o", "json", "--next", "-l", "team")
    wide = engine("diff", "-f", files, "-o", "json", "--next", "--target", "*", "-l", "team=back")
    wrong = engine("diff", "-f", files, "--target", "api")

    assert (roots(chosen), others(chosen)) == (["one"], ["api", "job", "web"])
    assert roots(wide) == ["api", "job", "one"]
    assert wrong.code == Exit.USAGE
    assert "no workload among the manifests has this name; there are PodCliqueSet/default/" in wrong.err


def test_what_matches_nothing_is_a_usage_error_that_names_what_exists_and_nothing_is_written(three: Box, engine: Engine) -> None:
    before = three.revisions()

    for command in ("diff", "sync"):
        for words, message in (
            (("--target", "wbe"), "--target wbe: no workload in default has this name; there are PodCliqueSet/default/web, "),
            (("--exclude", "wbe"), "--exclude wbe: no workload in default has this name; there are PodCliqueSet/default/web, "),
            (("-l", "team=none"), "-l team=none: no workload in default has such labels; there are PodCliqueSet/default/api, "),
            (("--target", "web", "-l", "team=back"), "no workload in default matches all of these options together; there are "),
            (
                ("--target", "pcs/nowhere/web"),
                "--target PodCliqueSet/nowhere/web: no workload in nowhere has this name; there are no workloads",
            ),
        ):
            answer = engine(command, *words)
            assert (answer.code, answer.messages[0][: len(message) + 8]) == (Exit.USAGE, f"engine: {message}")
    assert three.revisions() == before


def test_a_set_of_a_graph_belongs_to_the_graph(box: Box, engine: Engine) -> None:
    assert engine("sync", "-f", GRAPH, "--no-wait").code == Exit.DONE
    (graph,) = box.names(DYNAMO_GRAPH)

    both = engine("diff", "--target", f"dgd/{graph}", "-o", "json", "--next")
    inner = engine("diff", "--target", f"pcs/{graph}")

    assert {root["root"]["kind"] for root in both.document["roots"]} == {"DynamoGraphDeployment", "PodCliqueSet"}
    assert inner.code == Exit.USAGE
    assert f"is a part of DynamoGraphDeployment/default/{graph}: name that one" in inner.err
