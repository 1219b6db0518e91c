"""Every rule has a test that is named after it and that can fail: R1–R59, N1–N35, T1–T18, C1–C12."""

import ast
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PLACES = (TESTS / "mnnvl", TESTS / "stories")
LAST = {"R": 59, "N": 35, "T": 18, "C": 12}
NUMBER = re.compile(r"(?<![A-Za-z0-9])([RNTC])(\d+)(?![A-Za-z0-9])")
ABOUT_RULES = re.compile(r"\bdef test_[RNTC]\d")
CHECKS = frozenset({"assert_invariants", "ran_without_harm"})
"""Functions that assert on behalf of a test."""

Test = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def named() -> Sequence[Test]:
    """The tests that say which rules they are about. Files without any are not parsed."""
    texts = (file.read_text() for place in PLACES for file in sorted(place.glob("test_*.py")))
    trees = (ast.parse(text) for text in texts if ABOUT_RULES.search(text))
    functions = (node for tree in trees for node in ast.walk(tree) if isinstance(node, Test))
    return [one for one in functions if one.name.startswith("test_") and _numbers(one)]


def _numbers(test: Test) -> list[tuple[str, int]]:
    found = []
    for word in test.name.removeprefix("test_").split("_"):
        match = NUMBER.fullmatch(word)
        if match is None:
            break
        found.append((match[1], int(match[2])))
    return found


@pytest.mark.parametrize("letter", sorted(LAST))
def test_every_rule_has_a_test_of_its_name(letter: str) -> None:
    numbers = {number for test in named() for found, number in _numbers(test) if found == letter}

    assert numbers == set(range(1, LAST[letter] + 1))


def test_each_of_them_can_fail() -> None:
    assert [test.name for test in named() if not any(map(_judges, ast.walk(test)))] == []


def _judges(node: ast.AST) -> bool:
    """An assertion about something that was computed: it speaks of names, and is no comparison of constants."""
    if isinstance(node, ast.Assert):
        inside = list(ast.walk(node.test))
        is_computed = any(isinstance(one, ast.Name) for one in inside)
        return is_computed and any(isinstance(one, ast.Compare | ast.Call | ast.Attribute | ast.UnaryOp) for one in inside)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CHECKS


def test_no_such_test_is_skipped_or_expected_to_fail() -> None:
    marks = [ast.unparse(decorator) for test in named() for decorator in test.decorator_list]

    assert [mark for mark in marks if "skip" in mark or "xfail" in mark] == []
