"""Flags: options added to the command that starts a framework, in a shell script or in plain words."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from engine.resource import Body
from resources.base.fields import mappings
from resources.dynamo.backends.command import ContainerCommand, command_of, is_python, with_joined_arguments
from resources.dynamo.backends.parallelism import is_server
from resources.dynamo.backends.script import ShellWord, UnreadableScript, read_script
from resources.dynamo.backends.shell import quoted


class Flag(Struct, frozen=True):
    """One option for one node."""

    name: str
    value: str = ""
    """Its value as a part of a shell line; empty for a switch."""
    word: str | None = None
    """Its value as a word that the kubelet expands: None if it is the same, empty if only a shell can compute it."""


class DistributedFlags(Struct, frozen=True):
    """Options for one node."""

    in_shell: str
    """As a part of a shell line."""
    as_words: tuple[str, ...] = ()
    """As words that the kubelet expands; empty if only a shell can compute them."""


def distributed_flags(flags: Iterable[Flag]) -> DistributedFlags:
    """The options in their order."""
    flags = tuple(flags)
    in_shell = " ".join(f"{flag.name} {flag.value}" if flag.value else flag.name for flag in flags)
    if any(flag.word == "" for flag in flags):
        return DistributedFlags(in_shell)
    words = ((flag.name, flag.value if flag.word is None else flag.word) for flag in flags)
    return DistributedFlags(in_shell, tuple(word for pair in words for word in pair if word))


def with_flags(container: Body, framework: str, flags: DistributedFlags, *, at_module: bool = False) -> Body | None:
    """The container whose command starts the framework with the flags; None if no command that starts it is recognised.

    A shell keeps its script, with the flags in it. A plain command gets them as further words or, if a shell must compute them, becomes
    `sh -c "exec <the command, quoted> <flags>"`. With `at_module` the flags follow the module itself, and a program that is named after
    the framework is recognised as well.
    """
    container = with_joined_arguments(container)
    command = command_of(container)
    if command.is_shell:
        script = script_with_flags(command.text, framework, flags.in_shell, at_module=at_module)
        return None if script is None else command.with_script(script).applied_to(container)
    is_program = at_module and is_server(command.words, framework)
    if not (command.starts_python or is_program or _starts(command, framework)):
        return None
    if flags.as_words:
        return {**container, "args": [*command.words[command.boundary :], *flags.as_words]}
    return _executed_by_shell(container, command, flags.in_shell)


def script_with_flags(script: str, framework: str, flags: str, *, at_module: bool = False) -> str | None:
    """The script with the flags in each command that starts the framework; None if there is none or the script cannot be read.

    They follow the last argument that names the framework, unless another argument follows it that belongs to it: then the one before.
    With `at_module` they follow the module, or all arguments of a program that is named after the framework.
    """
    word_before = _word_before_module_flags if at_module else _word_before_flags
    try:
        commands = read_script(script).commands
    except UnreadableScript:
        return None
    ends = [word.end for command in commands if (word := word_before(command, framework)) is not None]
    for end in reversed(ends):
        separator = " " if script[end : end + 1] in ("<", ">") else ""
        script = f"{script[:end]} {flags}{separator}{script[end:]}"
    return script if ends else None


def _word_before_flags(command: Sequence[ShellWord], framework: str) -> ShellWord | None:
    arguments = [word for word in command if not word.is_redirection]
    interpreter = next((index for index, word in enumerate(arguments) if is_python(word.text)), len(arguments))
    named = [index for index in range(interpreter + 1, len(arguments)) if framework in arguments[index].text]
    complete = [index for index in named if not _is_open_option(arguments[index]) and _ends_value(arguments, index)]
    chosen = complete[-1:] or [index for index in named if not _is_open_option(arguments[index])][:1]
    return arguments[chosen[0]] if chosen else None


def _word_before_module_flags(command: Sequence[ShellWord], framework: str) -> ShellWord | None:
    """The module that a Python interpreter starts, else its script, else the last argument of the framework's own program."""
    arguments = [word for word in command if not word.is_redirection]
    texts = [word.text for word in arguments]
    interpreter = next((index for index, text in enumerate(texts) if is_python(text)), len(texts))
    named = [index for index in range(interpreter + 1, len(texts)) if framework in texts[index] and not texts[index].startswith("-")]
    modules = [index for index in named if texts[index - 1] == "-m"]
    if chosen := (modules or named)[:1]:
        return arguments[chosen[0]]
    return arguments[-1] if is_server(texts, framework) else None


def _is_open_option(word: ShellWord) -> bool:
    """Whether a word is an option that may have its value in the next word."""
    return word.text.startswith("-") and "=" not in word.text


def _ends_value(arguments: Sequence[ShellWord], index: int) -> bool:
    """Whether no further value follows that could belong to the same option."""
    return index + 1 == len(arguments) or arguments[index + 1].text.startswith("-")


def _starts(command: ContainerCommand, framework: str) -> bool:
    """Whether a launcher starts the framework: a Python interpreter among its words, and behind it the framework."""
    interpreter = next((index for index, word in enumerate(command.words) if is_python(word)), len(command.words))
    return any(framework in word for word in command.words[interpreter + 1 :])


def _executed_by_shell(container: Body, command: ContainerCommand, flags: str) -> dict[str, Any]:
    line = quoted(command.words, mappings(container.get("env")))
    return {**container, "command": ["sh", "-c"], "args": [f"exec {line.text} {flags}"], "env": list(line.envs)}
