"""A diagram in the language of Graphviz."""

from collections.abc import Iterator, Sequence
from typing import Final

from engine.report.diagram.model import Box, Diagram, Relation
from engine.report.printable import clipped

MAX_NAME: Final = 120
COLOURS: Final = {
    "create": "#116329",
    "patch": "#7a4e00",
    "scale": "#7a4e00",
    "delete": "#a40e26",
    "replace": "#6639ba",
    "release": "#1b6a75",
    "later": "#7a4e00",
    "blocked": "#a40e26",
}
"""What happens to an object -> the colour of its box."""


def dot(diagrams: Sequence[Diagram]) -> str:
    """One directed graph with a cluster for each diagram."""
    lines = ["digraph engine {", "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];']
    for number, diagram in enumerate(diagrams):
        lines += _cluster(number, diagram)
    return "\n".join([*lines, "}", ""])


def _cluster(number: int, diagram: Diagram) -> Iterator[str]:
    ids = {box: f"n{number}_{index}" for index, box in enumerate(diagram.boxes)}
    yield f"  subgraph cluster_{number} {{"
    yield f"    label={quoted(diagram.name)};"
    yield from (f"    {id} [{_attributes(box)}];" for box, id in ids.items())
    yield from (
        f"    {ids[first]} -> {ids[second]}{' [style=dashed]' if relation is Relation.AFTER else ''};"
        for (first, second), relation in diagram.arrows.items()
    )
    yield "  }"


def _attributes(box: Box) -> str:
    colour = f', color="{COLOURS[box.word]}", fontcolor="{COLOURS[box.word]}"' if box.word in COLOURS else ""
    return f"label={quoted(box.title, box.name)}{colour}"


def quoted(*lines: str) -> str:
    """Lines as one quoted text, in which nothing has a meaning of its own."""
    return '"' + r"\n".join(clipped(line, MAX_NAME).replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'
