"""Script: a user's shell script read far enough to know its simple commands and where each of their words ends.

Words keep their quotes in the script; substitutions, parameters and here-documents are opaque. Nothing is expanded.
"""

import re

from msgspec import Struct
from msgspec.structs import replace

_REDIRECTION = re.compile(r"<<<|<<-|<<|<&|<>|>&|>>|>\||<(?!\()|>(?!\()")
_BLANKS = " \t"
_SEPARATORS = ";&|()\n"
_ENDS = frozenset(_BLANKS + _SEPARATORS + "<>")
_DEEPEST = 40

_NOT_A_PROGRAM = frozenset(
    "! { } [[ . : alias bg break case cd command continue coproc declare do done elif else esac eval exec exit export fi for function"
    " getopts hash if local read readonly return select set shift shopt source then time trap typeset ulimit umask unalias unset until"
    " wait while".split()
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


class UnreadableScript(ValueError):
    """A script whose quotes or parentheses are not closed, or are nested too deeply."""


class ShellWord(Struct, frozen=True):
    """One word of a simple command."""

    start: int
    end: int
    """The offset behind its last character, quotes included."""
    text: str
    """The word without its quotes; substitutions as they are written."""
    is_redirection: bool = False
    """Whether it is the target or the number of a redirection and no argument."""


class ShellScript(Struct, frozen=True):
    """The simple commands of a script, in order; the tests and bodies of compound commands are among them."""

    commands: tuple[tuple[ShellWord, ...], ...]
    has_operators: bool
    """Whether it has more than one simple command: separators, groups, several lines."""

    @property
    def is_program_call(self) -> bool:
        """Whether it does no more than start a program with arguments: no redirection, assignment, builtin or second command."""
        if self.has_operators or len(self.commands) != 1:
            return False
        words = self.commands[0]
        first = words[0].text
        return first not in _NOT_A_PROGRAM and not _ASSIGNMENT.match(first) and not any(word.is_redirection for word in words)


def read_script(text: str) -> ShellScript:
    """The commands of a script. Raises `UnreadableScript`."""
    commands: list[tuple[ShellWord, ...]] = []
    words: list[ShellWord] = []
    documents: list[tuple[str, bool]] = []
    redirection = ""
    has_operators = False
    position = 0
    while position < len(text):
        character = text[position]
        if character in _BLANKS:
            position += 1
        elif text.startswith("\\\n", position):
            position += 2
        elif character == "#":
            position = _end_of_line(text, position)
        elif operator := _REDIRECTION.match(text, position):
            if words and words[-1].end == position and words[-1].text.isdigit():
                words[-1] = replace(words[-1], is_redirection=True)
            redirection, position = operator.group(), operator.end()
        elif character in _SEPARATORS:
            has_operators = True
            commands.append(tuple(words))
            words = []
            position += 1
            if character == "\n":
                position, documents = _behind_documents(text, position, documents), []
        else:
            end, word = _word(text, position)
            words.append(ShellWord(position, end, word, bool(redirection)))
            if redirection in ("<<", "<<-"):
                documents.append((word, redirection == "<<-"))
            redirection, position = "", end
    return ShellScript(tuple(command for command in (*commands, tuple(words)) if command), has_operators)


def has_commands(text: str) -> bool:
    """Whether a script has any line besides comments and empty ones."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())


def has_operators(text: str) -> bool:
    """Whether a script is more than one simple command, or cannot be read."""
    try:
        return read_script(text).has_operators
    except UnreadableScript:
        return True


def _behind_documents(text: str, position: int, documents: list[tuple[str, bool]]) -> int:
    """The offset behind the here-documents that begin on the previous line."""
    for delimiter, is_indented in documents:
        while position < len(text):
            end = _end_of_line(text, position)
            line = text[position:end]
            position = min(end + 1, len(text))
            if (line.lstrip("\t") if is_indented else line) == delimiter:
                break
    return position


def _end_of_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def _word(text: str, position: int) -> tuple[int, str]:
    """The offset behind the word that begins at `position`, and its text without quotes."""
    pieces: list[str] = []
    while position < len(text):
        character = text[position]
        is_process = character in "<>" and text.startswith("(", position + 1)
        if character in _ENDS and not is_process:
            break
        start = position
        if character == "\\":
            position = min(position + 2, len(text))
            pieces.append(text[start + 1 : position].removesuffix("\n"))
        elif character == "'":
            position = _behind(text, "'", position + 1)
            pieces.append(text[start + 1 : position - 1])
        elif character == '"':
            position = _behind_double_quotes(text, position + 1, 0)
            pieces.append(re.sub(r'\\(\n|[$`"\\])', lambda match: match[1].strip("\n"), text[start + 1 : position - 1]))
        elif opaque := _behind_opaque(text, position, 0):
            position = opaque
            pieces.append(text[start:position])
        else:
            position += 1
            pieces.append(character)
    return position, "".join(pieces)


def _behind_opaque(text: str, position: int, depth: int, in_quotes: bool = False) -> int:
    """The offset behind the substitution or parameter that begins at `position`; 0 if none begins."""
    if depth > _DEEPEST:
        raise UnreadableScript("nested too deeply")
    match text[position : position + 2]:
        case "$(":
            return _behind_bracket(text, position + 2, ")", depth + 1)
        case "${":
            return _behind_bracket(text, position + 2, "}", depth + 1, in_quotes)
        case "<(" | ">(" if not in_quotes:
            return _behind_bracket(text, position + 2, ")", depth + 1)
        case "$'" if not in_quotes:
            return _behind(text, "'", position + 2, escapes=True)
        case pair if pair.startswith("`"):
            return _behind(text, "`", position + 1, escapes=True)
    return 0


def _behind_bracket(text: str, position: int, closing: str, depth: int, in_quotes: bool = False) -> int:
    """The offset behind the bracket that closes what `position` is in. Within double quotes, `'` is an ordinary character."""
    nested = 0
    while position < len(text):
        character = text[position]
        if character == closing and not nested:
            return position + 1
        if character == "\\":
            position += 2
        elif character == "'" and not in_quotes:
            position = _behind(text, "'", position + 1)
        elif character == '"':
            position = _behind_double_quotes(text, position + 1, depth)
        elif opaque := _behind_opaque(text, position, depth, in_quotes):
            position = opaque
        else:
            nested += (character == "(") - (character == ")") if closing == ")" else 0
            position += 1
    raise UnreadableScript(f"no closing {closing}")


def _behind_double_quotes(text: str, position: int, depth: int) -> int:
    while position < len(text):
        if text[position] == '"':
            return position + 1
        opaque = _behind_opaque(text, position, depth, in_quotes=True)
        position = opaque or position + (2 if text[position] == "\\" else 1)
    raise UnreadableScript('no closing "')


def _behind(text: str, closing: str, position: int, escapes: bool = False) -> int:
    while position < len(text):
        if text[position] == closing:
            return position + 1
        position += 2 if escapes and text[position] == "\\" else 1
    raise UnreadableScript(f"no closing {closing}")
