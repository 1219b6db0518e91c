"""ContainerCommand: the command and arguments of a container, and the shell script among them, if there is one."""

import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.resource import Body
from resources.base.fields import mappings
from resources.dynamo.backends.script import UnreadableScript, read_script
from resources.dynamo.backends.shell import quoted

SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})
_VALUED = frozenset({"--rcfile", "--init-file"})
"""Long options of shells whose value is the next word."""
_PYTHON = re.compile(r"(?:.*/)?python\d*(?:\.\d+)*", re.DOTALL)
_POSITIONAL = re.compile(r"\$[@*#0-9]|\$\{[#!]?[@*#0-9]")
_BARE_WORD = re.compile(r"(?:[\w@%+=:,./-]|\$\([A-Za-z_]\w*\))+", re.ASCII)


class ContainerCommand(Struct, frozen=True):
    """What a container starts."""

    words: tuple[str, ...]
    """The command, then the arguments."""
    boundary: int
    """How many of the words are the command."""
    is_shell: bool = False
    """Whether it starts a shell with `-c`, possibly through a launcher such as `tini --`."""
    script: int | None = None
    """The index of that shell's script; None without a shell, or if the script is missing."""

    @property
    def text(self) -> str:
        """The script of its shell; empty if there is none."""
        return "" if self.script is None else self.words[self.script]

    @property
    def starts_python(self) -> bool:
        """Whether its first word is a Python interpreter, by its name or by a path."""
        return bool(self.words) and _PYTHON.fullmatch(self.words[0]) is not None

    def with_script(self, text: str) -> "ContainerCommand":
        """The same command with another script."""
        return replace(self, words=tuple(text if index == self.script else word for index, word in enumerate(self.words)))

    def applied_to(self, container: Body) -> dict[str, Any]:
        """The container with this command."""
        fields = {"command": list(self.words[: self.boundary]), "args": list(self.words[self.boundary :])}
        unset = {field for field, words in fields.items() if not words}
        return {field: value for field, value in {**container, **fields}.items() if field not in unset}


def command_of(container: Body) -> ContainerCommand:
    """The command of a container. Its shell is searched up to the first Python interpreter."""
    command, args = tuple(container.get("command") or ()), tuple(container.get("args") or ())
    words = command + args
    for index, word in enumerate(words):
        if _PYTHON.fullmatch(word):
            break
        if word.rpartition("/")[2] in SHELLS and (script := _script_index(words, index + 1)):
            return ContainerCommand(words, len(command), True, script if script < len(words) else None)
    return ContainerCommand(words, len(command))


def with_joined_arguments(container: Body) -> Body:
    """The container with the arguments of its shell joined into one script.

    For a shell, arguments that follow the script are no part of it: `/bin/sh -c` runs only `python3` of `["python3", "-m", "x"]`. They are
    quoted and appended, unless the script uses them itself (`$1`, `$@`) or ends in something else than a command. Nothing changes where the
    script is part of `command`.
    """
    command = command_of(container)
    if command.script is None or not command.boundary <= command.script < len(command.words) - 1 or _POSITIONAL.search(command.text):
        return container
    first, rest = command.text, command.words[command.script + 1 :]
    if not _ends_in_command(first):
        return container
    is_word = _BARE_WORD.fullmatch(first) is not None
    tail = quoted((first, *rest) if is_word else rest, mappings(container.get("env")))
    script = tail.text if is_word else f"{first.rstrip()} {tail.text}"
    joined = replace(command, words=(*command.words[: command.script], script))
    return {**joined.applied_to(container), "env": list(tail.envs)}


def _ends_in_command(script: str) -> bool:
    """Whether a word behind the script is an argument of its last command: not of a comment, a redirection or a new command."""
    try:
        commands = read_script(f"{script.rstrip()} word").commands
    except UnreadableScript:
        return False
    return bool(commands) and len(commands[-1]) > 1 and commands[-1][-1].text == "word" and not commands[-1][-1].is_redirection


def is_python(text: str) -> bool:
    """Whether a word of a shell line names a Python interpreter."""
    return re.search(r"python[0-9.]*\Z", text) is not None and not re.search(r"\s", text)


def _script_index(words: tuple[str, ...], position: int) -> int:
    """The index of the script among the words of a shell whose options begin at `position`; 0 if no option asks for a script."""
    takes_script = False
    while position < len(words):
        word = words[position]
        if word == "--":
            position += 1
            break
        if word.startswith("--"):
            position += 2 if word in _VALUED else 1
        elif len(word) > 1 and word[0] in "-+":
            takes_script |= word[0] == "-" and "c" in word
            position += 1 + word.count("o") + word.count("O")
        else:
            break
    return position if takes_script else 0
