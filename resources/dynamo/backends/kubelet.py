"""Kubelet: how a kubelet reads `command` and `args`: `$(NAME)` is the value of a variable, `$$` a dollar sign.

A reference to a variable that the container does not have stays as it is written.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

_SYNTAX = re.compile(r"\$[$(]")
_AMBIGUOUS = re.compile(r"\$(?=[$(]|[^\x00-\x7f])")


class VariableReference(Struct, frozen=True):
    """`$(NAME)` in a text."""

    name: str

    def __str__(self) -> str:
        return f"$({self.name})"


def parts(text: str) -> Iterator[str | VariableReference]:
    """The literal texts and the references of a text, in order. Literal texts are as the kubelet delivers them."""
    position = search = 0
    last_parenthesis = text.rfind(")")
    while match := _SYNTAX.search(text, search):
        is_reference = match.group() == "$("
        if is_reference and last_parenthesis < match.end():
            search = match.end()
            continue
        if match.start() > position:
            yield text[position : match.start()]
        end = text.index(")", match.end()) if is_reference else 0
        yield VariableReference(text[match.end() : end]) if is_reference else "$"
        position = search = end + 1 if is_reference else match.end()
    if position < len(text):
        yield text[position:]


def references(text: str) -> list[str]:
    """The names of the variables that a text refers to."""
    return [part.name for part in parts(text) if isinstance(part, VariableReference)]


def escaped(text: str) -> str:
    """The text as it must be written so that a kubelet delivers it unchanged.

    A dollar sign is doubled before another one, a parenthesis and a character beyond ASCII, which a kubelet would split into its bytes.
    """
    return _AMBIGUOUS.sub("$$", text)
