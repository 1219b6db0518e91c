"""The examples for CI: they are YAML, and every command line in them is one that the engine takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from enginectl.actions.reporting import outputs_of
from enginectl.main import root_command
from tests.enginectl.calling import ROOT

FOLDER = ROOT / "examples" / "ci"
FILES = sorted(FOLDER.glob("*.yaml"))
END_OF_COMMAND = frozenset({"||", "&&", "|", ";", ">", ">>", "2>"})


def scripts(value: Any) -> Iterator[str]:
    """Every script in a workflow."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "run":
                yield inner
            elif key == "script":
                yield from inner
            else:
                yield from scripts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from scripts(inner)


def command_lines(script: str) -> Iterator[list[str]]:
    """The words of each call of `engine` in a script."""
    for line in script.replace("\\\n", " ").splitlines():
        if line.strip().startswith("engine "):
            words = shlex.split(line, comments=True)
            end = next((index for index, word in enumerate(words) if word in END_OF_COMMAND), len(words))
            yield words[1:end]


def lines_of(file: Path) -> list[list[str]]:
    return [words for script in scripts(yaml.load(file.read_text(), yaml.CSafeLoader)) for words in command_lines(script)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_command_line_is_one_that_the_engine_takes(file: Path) -> None:
    root = root_command()

    assert lines_of(file)
    for name, *words in lines_of(file):
        values = root.commands[name].make_context(name, list(words)).params
        outputs_of(values["format"], values.get("reports") or ())


def test_an_option_that_does_not_exist_is_found() -> None:
    root = root_command()

    with pytest.raises(typer.TyperException):
        root.commands["diff"].make_context("diff", ["--no-such-option"])


def test_calls_are_found_in_scripts() -> None:
    script = "code=0\nengine diff -f x \\\n  -o json > y || code=$?\n# engine nothing\nengine status\n"

    assert list(command_lines(script)) == [["diff", "-f", "x", "-o", "json"], ["status"]]


@pytest.mark.parametrize("file", [file for file in FILES if file.name.startswith("github")], ids=lambda file: file.name)
def test_nothing_that_others_can_choose_is_part_of_a_script(file: Path) -> None:
    workflow = yaml.load(file.read_text(), yaml.CSafeLoader)

    assert workflow["permissions"] == {}
    assert not any("${{" in script for script in scripts(workflow))


def test_the_page_names_every_file() -> None:
    text = (FOLDER / "README.md").read_text()

    assert set(re.findall(r"\]\(([\w-]+\.yaml)\)", text)) == {file.name for file in FILES}
