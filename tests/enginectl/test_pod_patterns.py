"""Names of new pods: a pattern where they depend on a uid that does not exist yet, in every format; the real name where it is known."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

NAME = re.compile(r"demo-0-(?:a|grp-[01]-b)-(?:[bcdfghjklmnpqrstvwxz2456789]{5}\b|\?{5})")
FORMATS = ("text", "json", "markdown", "html", "sarif", "mermaid", "dot")


def demo(pods: int = 2, image: str = "example/worker:1") -> dict[str, Any]:
    """A set with a clique of its own and one in a scaling group."""
    pod = {"containers": [{"name": "main", "image": image}]}
    cliques = (clique("a", pods, pod_spec=pod, minAvailable=1), clique("b", 2, pod_spec=pod))
    return podcliqueset("demo", *cliques, groups=(group("grp", "b", replicas=2),))


def written(folder: Path, body: dict[str, Any]) -> Path:
    """A file with the set."""
    file = folder / "set.json"
    file.write_text(json.dumps(body))
    return file


@pytest.mark.parametrize("format", FORMATS)
def test_a_set_that_does_not_exist_has_patterns_in_every_format(engine: Engine, tmp_path: Path, format: str) -> None:
    answer = engine("diff", "-f", written(tmp_path, demo()), "--against", "empty", "-o", format, "-v")

    assert answer.code == Exit.DONE
    assert all(name.endswith("-?????") for name in NAME.findall(answer.out)), NAME.findall(answer.out)


@pytest.mark.parametrize("format", FORMATS)
def test_pods_of_the_manifests_that_a_change_is_compared_with_have_patterns(engine: Engine, tmp_path: Path, format: str) -> None:
    (tmp_path / "old").mkdir()
    old, new = written(tmp_path / "old", demo()), written(tmp_path, demo(image="example/worker:2"))
    names = NAME.findall(engine("diff", "--base", old, "-f", new, "-o", format, "-v").out)

    assert all(name.endswith("-?????") for name in names), names


def test_scripts_find_the_clique_and_the_index_of_each_pod(engine: Engine, tmp_path: Path) -> None:
    document = engine("diff", "-f", written(tmp_path, demo()), "--against", "empty", "-o", "json").document
    pods = [each["object"] for each in document["roots"][0]["operations"] if each["object"]["kind"] == "Pod"]

    cliques = ("demo-0-a", "demo-0-grp-0-b", "demo-0-grp-1-b")
    assert sorted((pod["clique"], pod["index"]) for pod in pods) == [(clique, index) for clique in cliques for index in "01"]
    assert {pod["name"] for pod in pods} == {f"{clique}-?????" for clique in cliques}


def test_a_saved_plan_shows_patterns_and_can_be_applied(box: Box, engine: Engine, tmp_path: Path) -> None:
    file, plan = written(tmp_path, demo()), tmp_path / "plan.json"
    engine("diff", "-f", file, "--out", plan)
    shown = engine("show", plan, "-o", "json").document
    applied = engine("sync", "--plan", plan, "--timeout", "30m")

    names = [each["object"]["name"] for each in shown["roots"][0]["operations"] if each["object"]["kind"] == "Pod"]
    assert names and all(name.endswith("-?????") for name in names)
    assert applied.code == Exit.DONE, applied.out + applied.err
    assert len(box.names(kinds.POD)) == 6 and not any("?" in name for name in box.names(kinds.POD))


def test_pods_of_a_set_that_exists_have_the_names_that_they_will_have(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", written(tmp_path, demo()), "--yes", "--timeout", "30m").code == Exit.DONE
    before = set(box.names(kinds.POD))
    box.change(kinds.PODCLIQUE, "demo-0-a", {"spec": {"replicas": 3}})
    planned = engine("diff", "-o", "json").document["roots"][0]
    names = [each["object"]["name"] for each in planned["operations"] if each["verb"] == "create" and each["object"]["kind"] == "Pod"]
    engine("sync", "--yes", "--timeout", "30m")

    assert names and set(names) == set(box.names(kinds.POD)) - before


@pytest.mark.parametrize("command", [("render",), ("render", "-o", "json"), ("graph",), ("graph", "-o", "mermaid"), ("graph", "-o", "svg")])
def test_what_is_rendered_and_drawn_without_a_cluster_has_patterns(engine: Engine, tmp_path: Path, command: tuple[str, ...]) -> None:
    names = NAME.findall(engine(*command, "-f", written(tmp_path, demo())).out)

    assert all(name.endswith("-?????") for name in names) and names, names
