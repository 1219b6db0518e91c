"""A frozen value is never changed after it has been made. What is derived from its fields alone may be a `cached_property`."""

import ast
import re
from collections.abc import Iterator, Sequence

import pytest

from tests.test_layout import SOURCES, Source

MUTATORS = frozenset({"add", "append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "sort", "update"})
"""Methods that change a dictionary, a list or a set."""


def changes_nothing_frozen(source: Source) -> Iterator[tuple[int, str]]:
    """The places that change a frozen value, or what it holds."""
    for node in source.nodes if source.layer else ():
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name) as function) if name.endswith(("__setattr__", "force_setattr")):
                yield node.lineno, f"calls {ast.unparse(function)}()"
            case ast.ClassDef() if is_frozen(node):
                yield from changes_of_self(node)


def is_frozen(node: ast.ClassDef) -> bool:
    """Whether a class is a frozen Struct or data class."""
    decorators = (keyword for each in node.decorator_list if isinstance(each, ast.Call) for keyword in each.keywords)
    return any(keyword.arg == "frozen" and ast.unparse(keyword.value) == "True" for keyword in (*node.keywords, *decorators))


def changes_of_self(node: ast.ClassDef) -> Iterator[tuple[int, str]]:
    """The places in which methods of the class change its fields, or what these hold."""
    for inner in ast.walk(node):
        for changed in changed_by(inner):
            if re.match(r"self[.[]", text := ast.unparse(changed)):
                yield changed.lineno, f"changes {text}"


def changed_by(node: ast.AST) -> Sequence[ast.expr]:
    """What a statement or a call changes."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return targets
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return [target]
        case ast.Call(func=ast.Attribute(value=ast.Attribute() as value, attr=method)) if method in MUTATORS:
            return [value]
    return ()


def test_nothing_frozen_is_changed() -> None:
    assert [f"{source.path}:{line}: {what}" for source in SOURCES for line, what in changes_nothing_frozen(source)] == []


@pytest.mark.parametrize(
    "text",
    [
        "def fill(part):\n    object.__setattr__(part, 'known', 1)",
        "from msgspec.structs import force_setattr\nforce_setattr(part, 'known', 1)",
        "class Part(Struct, frozen=True):\n    def f(self): self.known['a'] = 1",
        "@dataclass(frozen=True)\nclass Part:\n    def f(self): self.known.append(1)",
    ],
)
def test_a_change_is_found(text: str) -> None:
    assert len(list(changes_nothing_frozen(Source("engine/graph.py", text)))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "class Part(Struct, frozen=True):\n    def f(self):\n        known = {}\n        known['a'] = self.key",
        "class Part(Struct):\n    def f(self): self.known = 1",
        "class Memo:\n    def remember(self, key, value): self.results[key] = value",
    ],
)
def test_what_is_no_change_of_a_frozen_value_passes(text: str) -> None:
    assert list(changes_nothing_frozen(Source("engine/graph.py", text))) == []
