"""The page of promises: numbered without a gap, each with tests that exist, or with the limit that the product tells."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/behaviour/seeds.md"
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
PROMISES = 117


def rows() -> list[tuple[int, str, str]]:
    """Number, promise, and what shows it."""
    return [(int(number), promise, shown) for number, promise, shown in ROW.findall(PAGE.read_text())]


@cache
def functions_of(file: str) -> frozenset[str]:
    """The names of the functions in a file."""
    path = ROOT / file
    nodes = ast.walk(ast.parse(path.read_text())) if path.exists() else ()
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_promises_are_numbered_and_each_has_a_test_or_a_limit() -> None:
    assert [number for number, _, _ in rows()] == list(range(1, PROMISES + 1))
    assert [promise for _, promise, shown in rows() if not (NAMED.search(shown) or shown.startswith("limit: "))] == []


def test_every_test_that_shows_a_promise_exists() -> None:
    named = [(file, name) for _, _, shown in rows() for file, name in NAMED.findall(shown)]

    assert [f"{file}::{name}" for file, name in named if name not in functions_of(file)] == []
