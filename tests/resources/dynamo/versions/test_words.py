"""Words: every text about a graph calls its services components where the graph is written as v1beta1."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from resources.dynamo.versions.paths import in_beta

RESOURCES = Path(__file__).parents[4] / "resources"
FILES = [
    *(file for file in sorted((RESOURCES / "dynamo").rglob("*.py")) if file.name != "paths.py"),
    *sorted((RESOURCES / "admission").glob("graph_*.py")),
    *sorted((RESOURCES / "blueprints").glob("*graph*.py")),
]
NOUN = re.compile(r"(?<![{.\[])\bservices?\b(?![}.\]])")


def texts(file: Path) -> Iterator[str]:
    """The texts of several words in a file; what is filled in is an X. Docstrings are none."""
    tree = ast.parse(file.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not {id(node)} & (docstrings | parts):
            yield node.value


def test_no_text_about_a_component_calls_it_a_service() -> None:
    said = {in_beta(text) for file in FILES for text in texts(file) if len(text.split()) > 1}

    assert len(said) > 100
    assert sorted(text for text in said if NOUN.search(text)) == []
