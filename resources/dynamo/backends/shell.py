"""Shell: words of a command quoted for a shell line, so that each arrives as the kubelet would have delivered it without the shell.

The value of a reference `$(NAME)` is not put into the line, where a shell would read it: the line has `"$NAME"`. Where a shell could not
know the variable by that name, the container gets another one, `DYN_ARG_<NAME>` with the value `$(NAME)`.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from engine.resource import Body
from resources.base.fields import mapping
from resources.dynamo.backends.kubelet import VariableReference, escaped, parts, references

SHELL = ("/bin/sh", "-c")

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*")
"""What Kubernetes allows as the name of a variable."""
_SHELLS_OWN = frozenset(
    "_ IFS PWD OLDPWD PPID OPTIND OPTARG OPTERR LINENO UID EUID GROUPS RANDOM SECONDS SRANDOM SHLVL SHELLOPTS POSIXLY_CORRECT"
    " EPOCHSECONDS EPOCHREALTIME DIRSTACK FUNCNAME HISTCMD PIPESTATUS PS1 PS2 PS4".split()
)
"""Variables that a shell sets itself when it starts."""
_ALIAS = "DYN_ARG_"


class QuotedWords(Struct, frozen=True):
    """Words as a part of a shell line."""

    text: str
    envs: tuple[Body, ...]
    """The variables that the container must have: those that it had, and those by which references arrive."""


def quoted(words: Sequence[str], envs: Sequence[Body]) -> QuotedWords:
    """The words of a command, each quoted for a shell and as it must be written for the kubelet; `envs` are the container's variables."""
    variables, extended = _shell_variables([name for word in words for name in references(word)], envs)
    return QuotedWords(" ".join(_quoted_word(word, variables) for word in words), extended)


def _quoted_word(word: str, variables: Mapping[str, str]) -> str:
    pieces: list[str] = []
    for is_variable, group in groupby(parts(word), lambda part: isinstance(part, VariableReference) and part.name in variables):
        if is_variable:
            pieces += [f'"${variables[part.name]}"' for part in group if isinstance(part, VariableReference)]
        else:
            pieces.append(escaped(shlex.quote("".join(map(str, group)))))
    return "".join(pieces) or "''"


def _shell_variables(names: Sequence[str], envs: Sequence[Body]) -> tuple[dict[str, str], tuple[Body, ...]]:
    """For each name that can be a variable, the variable by which a shell knows its value; and the variables of the container."""
    declared = {str(env.get("name", "")): env for env in envs}
    variables: dict[str, str] = {}
    for name in names:
        if name in variables or (name not in declared and not _VARIABLE.fullmatch(name)):
            continue
        if name in declared and _arrives(declared[name]):
            variables[name] = name
        else:
            alias = _alias(name, declared)
            declared[alias] = {"name": alias, "value": f"$({name})"}
            variables[name] = alias
    return variables, tuple(declared.values())


def _arrives(env: Body) -> bool:
    """Whether a shell knows a variable by its name, and whether it always has a value."""
    name = str(env["name"])
    return _IDENTIFIER.fullmatch(name) is not None and name not in _SHELLS_OWN and not name.startswith("BASH") and not _is_optional(env)


def _is_optional(env: Body) -> bool:
    sources: Mapping[str, Any] = mapping(env.get("valueFrom"))
    return any(mapping(source).get("optional") for source in sources.values())


def _alias(name: str, declared: Mapping[str, Body]) -> str:
    """A name for the variable that passes on another; `_` is appended while something else has it."""
    alias = _ALIAS + re.sub(r"[^A-Za-z0-9_]", "_", name)
    while declared.get(alias, {"value": f"$({name})"}).get("value") != f"$({name})":
        alias += "_"
    return alias
