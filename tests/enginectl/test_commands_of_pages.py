"""Every command of ours in a block of a page is a valid command line, also where no test runs it, and names files that exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from enginectl.base.usage import named_command
from enginectl.main import root_command
from tests.enginectl.calling import ROOT
from tests.test_docs import PAGES

FENCED: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INDENTED: Final = re.compile(r"^ {4,}(?:engine|kubectl grove) .*(?:\\\n.*)*", re.MULTILINE)
"""A command in an indented block, with the lines on which it goes on."""
SHIPPED: Final = re.compile(r"(?<![\w/.-])(?:examples|deploy|docs)/[\w./-]*\w")
"""A file of the project in a command, also of one that is not ours: `docker build -f deploy/Dockerfile`."""
CONTINUED: Final = re.compile(r"\\\n\s*")
OURS: Final = re.compile(r"(?:^|[|&;(]|\bdo|\bthen|\bif)\s*(?:engine|kubectl grove)(?= [a-z-])")
ENDS: Final = frozenset("|&;<>()")
"""What ends a command in a shell."""
OPTIONAL: Final = frozenset({"…", "[…]"})
"""What stands for options that a user adds."""


def blocks(page: Path) -> list[str]:
    """The commands of a page, by block."""
    text = page.read_text()
    return [block for _, language, block in FENCED.findall(text) if language in ("", "sh")] + INDENTED.findall(FENCED.sub("", text))


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of ours in the blocks of a page."""
    for line in (line.strip() for block in blocks(page) for line in CONTINUED.sub(" ", block).splitlines()):
        for found in OURS.finditer(line.partition(" #")[0]):
            yield list(words_of(line[found.end() :]))


def words_of(text: str) -> Iterator[str]:
    """The words of a command, to its end."""
    lexer = shlex.shlex(re.split(r"\s\d?>", text)[0], posix=True, punctuation_chars="".join(ENDS))
    lexer.whitespace_split = True
    for word in lexer:
        if ENDS.issuperset(word):
            return
        if word not in OPTIONAL:
            yield word


SHOWN: Final = {page.relative_to(ROOT).as_posix(): found for page in PAGES if (found := list(commands(page)))}


@pytest.mark.parametrize("page", SHOWN)
def test_the_commands_of_a_page_are_valid(page: str) -> None:
    root = root_command()
    engine = root.context_class(root, info_name="engine", **root.context_settings)
    for words in SHOWN[page]:
        while words[0] in ("--config", "--kubeconfig", "-n"):
            words = words[2:]
        path, named = named_command(root, words)
        assert path != "engine" or words[0].startswith("-"), words
        named.make_context(path, words[len(path.split()) - 1 :], parent=engine)


def test_the_files_of_the_project_that_commands_name_exist() -> None:
    named = {(page, name) for page in PAGES for block in blocks(page) for name in SHIPPED.findall(block)}

    assert len(named) > 30
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


def test_commands_are_found() -> None:
    assert len(SHOWN) > 20 and sum(map(len, SHOWN.values())) > 120
