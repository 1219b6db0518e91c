"""The commands and flags of programs that pages use and that are not ours, as their `--help` says.

python -m tests.enginectl.other_programs      records them anew, with kubectl in KUBEBUILDER_ASSETS and helm in HELM_ASSETS

docker and kind are recorded by hand, from docker 28.2 and the documentation of kind 0.30: tests have no daemon, and neither is built here.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

RECORD: Final = Path(__file__).with_suffix(".json")
ASSETS: Final = {"kubectl": "KUBEBUILDER_ASSETS", "helm": "HELM_ASSETS"}
"""Program -> the variable that names its folder."""
GLOBAL: Final = {"kubectl": ("options",), "helm": ("--help",)}
"""Program -> the words with which it tells the flags of all its commands."""
ENVIRONMENT: Final = {"HOME": "/nonexistent", "KUBECTL_APPLYSET": "true"}
"""With it kubectl has `apply --applyset`."""
FLAG: Final = re.compile(r"^ +(?:(-\w), )?(--[\w-]+)(=(?!true|false)| (?! ))?", re.MULTILINE)
"""A flag in a help text: its short form, its name, and what shows that it takes a value."""

Flags = Mapping[str, bool]
"""Flag -> whether it takes a value."""
Commands = Mapping[str, Flags]
"""The words of a command, empty for all commands of the program -> its flags."""


class Unknown(Exception):
    """A command or a flag that the program has not; the text says which."""


def recorded() -> dict[str, dict[str, dict[str, bool]]]:
    """Program -> its commands, as recorded."""
    commands: dict[str, dict[str, dict[str, bool]]] = json.loads(RECORD.read_text())
    return commands


def program(name: str) -> str | None:
    """The path of a program; None if it is not there."""
    return shutil.which(name, path=os.environ.get(ASSETS[name], "/nonexistent"))


def flags_in(text: str) -> dict[str, bool]:
    """The flags in a help text."""
    return {flag: bool(value) for short, long, value in FLAG.findall(text) for flag in (short, long) if flag}


def help_of(name: str, paths: Sequence[str]) -> dict[str, dict[str, bool]]:
    """What a program says of itself and of these commands. Raises `Unknown` for one that it has not."""
    path = program(name)
    assert path is not None

    def said(*words: str) -> str:
        answer = subprocess.run([path, *words], capture_output=True, text=True, check=False, env=ENVIRONMENT)
        if answer.returncode or (words[-1] == "--help" and f"{name} {' '.join(words[:-1])}".strip() not in answer.stdout):
            raise Unknown(f"{name} {' '.join(words)}: {answer.stderr}")
        return answer.stdout

    own = flags_in(said(*GLOBAL[name]))
    return {"": own} | {each: dict(flags_in(said(*each.split(), "--help")).items() - own.items()) for each in paths if each}


def check(name: str, words: Sequence[str], commands: Commands) -> str:
    """The command that these words call, e.g. `create token`. Raises `Unknown` if the program has not it or one of its flags."""
    path, given = "", list[str]()
    rest: Iterator[str] = iter(words)
    are_arguments = False
    for word in rest:
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            flag, _, value = word.partition("=")
            given.append(flag)
            if not value and {**commands.get(path, {}), **commands[""]}.get(flag):
                next(rest, "")
        elif not are_arguments and any(f"{each} ".startswith(f"{path} {word} ".lstrip()) for each in commands):
            path = f"{path} {word}".strip()
        else:
            are_arguments = True
    if not path or path not in commands:
        raise Unknown(f"{name} {' '.join(words)}: no such command is recorded")
    if missing := set(given) - commands[path].keys() - commands[""].keys():
        raise Unknown(f"{name} {path}: {', '.join(sorted(missing))}")
    return path


if __name__ == "__main__":
    record = recorded()
    for name in ASSETS:
        record[name] = help_of(name, sorted(record[name]))
    RECORD.write_text(f"{json.dumps(record, indent=None, sort_keys=True)}\n".replace("}, ", "},\n"))
