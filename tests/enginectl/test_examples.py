"""Every example does what its README says: the commands in it are run, line by line, on a cluster in memory."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.ids import Kind
from enginectl.exits import Exit
from resources.kinds import POD, PODCLIQUESET, SCALING_GROUP
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine

EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/README.md"))
KINDS: dict[str, Kind] = {"pcs": PODCLIQUESET, "pcsg": SCALING_GROUP}


def commands(readme: Path) -> Iterator[list[str]]:
    """The commands of a README, in order, each as its words."""
    for block in re.findall(r"^```\n(.*?)^```", readme.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            for command in line.split("#")[0].split("&&"):
                if command.strip():
                    yield shlex.split(command)


def kubectl(box: Box, words: list[str]) -> None:
    """What kubectl does with these words, as far as the examples go."""
    match words:
        case ["scale", kind, name, "--replicas", number]:
            box.change(KINDS[kind], name, {"spec": {"replicas": int(number)}})
        case ["delete", kind, name, "--wait=false"]:
            box.delete(KINDS[kind], name)
        case ["get", *_]:
            pass
        case _:
            pytest.fail(f"the examples want kubectl {words}")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_command_of_the_readme_works(example: Path, box: Box, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert engine("sync", "-f", example).code == Exit.DONE

    for words in commands(example / "README.md"):
        if words[0] == "kubectl":
            kubectl(box, words[1:])
        else:
            assert words[0] == "engine"
            answer = engine(*words[1:])
            assert answer.code == Exit.DONE, (words, answer)

    assert engine("diff", "--detailed-exitcode").out == "No operations.\nexit 0: done\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_comes_up_settles_and_leaves_nothing_behind(example: Path, box: Box, engine: Engine) -> None:
    (planned,) = engine("diff", "-f", example, "-o", "json").document["roots"]
    up, again = engine("sync", "-f", example), engine("sync", "-f", example)
    pods = box.names(POD)
    box.delete(PODCLIQUESET, planned["root"]["name"])
    down = engine("sync")

    assert up.code == again.code == down.code == Exit.DONE
    assert again.out == "Done: nothing, all is as desired.\nexit 0: done\n"
    assert len(pods) == sum(one["object"]["kind"] == "Pod" for one in planned["operations"])
    assert box.revisions() == {}


def test_every_example_is_small_enough_to_read_standing_up() -> None:
    for example in EXAMPLES:
        for file in example.iterdir():
            assert len(file.read_text().splitlines()) <= 60, file
