"""The table of the chart's values in its README: every value with its default and the comment above it."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

LINE = re.compile(r"( *)([A-Za-z]\w*):")


def values_table(text: str) -> str:
    """The table for the text of `values.yaml`. A comment above a section stands in the row of its first value."""
    values = yaml.load(text, yaml.CSafeLoader)
    comments = dict(_comments(text))
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for path, default in leaves(values):
        rows.append(f"| `{path}` | {_default(default)} | {comments.get(path, '')} |")
    return "\n".join(rows) + "\n"


def _default(value: Any) -> str:
    text = json.dumps(value)
    return f"`{text}`" if len(text) < 80 else "[see values.yaml](values.yaml)"


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value and path not in ("resources", "podSecurityContext", "securityContext"):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path, value


def _comments(text: str) -> Iterator[tuple[str, str]]:
    """Path of a value -> the comment above it, or above the section that begins with it."""
    sections: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        if line.strip().startswith("#"):
            comment.append(line.strip().removeprefix("#").strip())
        elif not line.strip():
            comment = []
        elif match := LINE.match(line):
            depth = len(match.group(1)) // 2
            sections[depth:] = [match.group(2)]
            is_section = line.rstrip().endswith(":")
            path = ".".join(sections)
            if path in ("resources", "podSecurityContext", "securityContext") or not is_section:
                yield path, " ".join(comment)
                comment = []
