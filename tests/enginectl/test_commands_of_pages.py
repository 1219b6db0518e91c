"""Every command in a block of a page is a valid command line, also where no test runs it, and names files that exist.

Those of ours by their own parser; those of kubectl, helm, docker and kind, also within the text, by the flags that those programs have.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from enginectl.base.usage import named_command
from enginectl.main import root_command
from tests.enginectl.calling import ROOT
from tests.enginectl.other_programs import ASSETS, Unknown, check, help_of, program, recorded
from tests.test_docs import PAGES

FENCED: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INDENTED: Final = re.compile(r"^ {4,}(?:engine|kubectl|helm|docker|kind) .*(?:\\\n.*)*", re.MULTILINE)
"""A command in an indented block, with the lines on which it goes on."""
SHIPPED: Final = re.compile(r"(?<![\w/.-])(?:examples|deploy|docs)/[\w./-]*\w")
"""A file of the project in a command, also of one that is not ours: `docker build -f deploy/Dockerfile`."""
CONTINUED: Final = re.compile(r"\\\n\s*")
BEGINNING: Final = r"(?:^|[|&;(]|\bdo|\bthen|\bif)\s*"
OURS: Final = re.compile(rf"{BEGINNING}(?:engine|kubectl grove)(?= [a-z-])")
OTHERS: Final = re.compile(rf"{BEGINNING}(kubectl|helm|docker|kind)(?! grove| krew)(?= [a-z-])")
"""A command of another program. krew is a plugin."""
IN_TEXT: Final = re.compile(r"`((?:kubectl|helm|docker|kind) (?!--)[^`]+)`")
"""A command in a sentence, perhaps over two lines; not a flag alone, as in `helm --wait`."""
ENDS: Final = frozenset("|&;<>()")
"""What ends a command in a shell."""
OPTIONAL: Final = frozenset({"…", "[…]"})
"""What stands for options that a user adds."""


def blocks(page: Path) -> list[str]:
    """The commands of a page, by block."""
    text = page.read_text()
    return [block for _, language, block in FENCED.findall(text) if language in ("", "sh", "bash")] + INDENTED.findall(FENCED.sub("", text))


def lines(page: Path) -> Iterator[str]:
    """The lines of the blocks of a page, without comments; those that go on are joined."""
    for block in blocks(page):
        yield from (line.strip().partition(" #")[0] for line in CONTINUED.sub(" ", block).splitlines())


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command of ours in the blocks of a page."""
    for line in lines(page):
        yield from (list(words_of(line[found.end() :])) for found in OURS.finditer(line))


def commands_of_others(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Each command of another program on a page: the program and the words."""
    in_text = (re.sub(r"\s+", " ", text) for text in IN_TEXT.findall(FENCED.sub("", page.read_text())))
    for line in (*lines(page), *in_text):
        yield from ((found[1], list(words_of(line[found.end() :]))) for found in OTHERS.finditer(line))


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


OF_OTHERS: Final = sorted({(name, *words) for page in PAGES for name, words in commands_of_others(page)})


@pytest.mark.parametrize("called", OF_OTHERS, ids=" ".join)
def test_the_commands_of_other_programs_and_their_flags_are_as_recorded(called: tuple[str, ...]) -> None:
    check(called[0], called[1:], recorded()[called[0]])


@pytest.mark.e2e
@pytest.mark.parametrize("name", ASSETS)
def test_the_commands_of_other_programs_and_their_flags_exist(name: str) -> None:
    if program(name) is None:
        pytest.skip(f"{ASSETS[name]} names no folder with {name}")
    record = recorded()[name]
    real = help_of(name, sorted({check(name, words, record) for used, *words in OF_OTHERS if used == name}))

    assert [check(name, words, real) for used, *words in OF_OTHERS if used == name]


@pytest.mark.parametrize("words", ["nonsense", "apply --server-sides -f x", "-n x scale --to 3 deployment/x", "create secret x"])
def test_a_command_or_a_flag_that_is_not_there_is_found(words: str) -> None:
    with pytest.raises(Unknown):
        check("kubectl", words.split(), recorded()["kubectl"])


def test_the_files_of_the_project_that_commands_name_exist() -> None:
    named = {(page, name) for page in PAGES for block in blocks(page) for name in SHIPPED.findall(block)}

    assert len(named) > 30
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


def test_commands_are_found() -> None:
    assert len(SHOWN) > 20 and sum(map(len, SHOWN.values())) > 120
    assert len(OF_OTHERS) > 80 and {name for name, *_ in OF_OTHERS} == recorded().keys()
