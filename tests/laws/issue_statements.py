"""Statements of modules that make issues, and which of them were reached: a rule that no case breaks is compared with nothing."""

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from types import FrameType, ModuleType
from typing import Any

import pytest

from resources.schema import issues

Place = tuple[str, int]
"""The name of a module, and the line at which a statement begins."""
MAKERS = frozenset({"Issue", "duplicates"})


def statements_with_issues(modules: Iterable[ModuleType]) -> set[Place]:
    """The statements that make issues."""
    return {place for module in modules for lines, place in _statements(module) if lines}


def record_issues(monkeypatch: pytest.MonkeyPatch, modules: Iterable[ModuleType]) -> set[Place]:
    """The statements that make an issue from now on, while `monkeypatch` lasts."""
    by_line = {(module.__name__, line): place for module in modules for lines, place in _statements(module) for line in lines}
    reached: set[Place] = set()

    class Recorded(issues.Issue, frozen=True):
        """An issue that remembers who made it."""

        def __post_init__(self) -> None:
            frame: FrameType | None = sys._getframe(1)
            while frame and frame.f_globals["__name__"] == issues.__name__:
                frame = frame.f_back
            if frame and (place := by_line.get((frame.f_globals["__name__"], frame.f_lineno))):
                reached.add(place)

    for module in (issues, *modules):
        if hasattr(module, "Issue"):
            monkeypatch.setattr(module, "Issue", Recorded)
    return reached


def _statements(module: ModuleType) -> Iterator[tuple[range, Place]]:
    """The lines and the place of each innermost statement that calls one of `MAKERS`."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.stmt) and any(_makes(part) for part in _own_parts(node)):
            yield range(node.lineno, _end(node)), (module.__name__, node.lineno)


def _end(statement: ast.stmt) -> int:
    """The line behind a statement; behind its head, if other statements are in it."""
    body: list[ast.stmt] = getattr(statement, "body", [])
    return body[0].lineno if body else (statement.end_lineno or statement.lineno) + 1


def _own_parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of the statements in it."""
    pending: list[ast.AST] = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while pending:
        node = pending.pop()
        yield node
        pending += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def _makes(node: Any) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS
