"""A diagram in the languages of Graphviz and of Mermaid, which GitHub and GitLab draw in Markdown."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from engine.report.diagram.model import Box, Diagram, Relation
from engine.report.printable import clipped

MERMAID_NAME: Final = 80
MAX_ARROWS: Final = 480
"""Maximum number of arrows: Mermaid draws no diagram with more than 500."""
MAX_CHARACTERS: Final = 45_000
"""Diagrams that would make the text longer are left out: Mermaid draws nothing that is longer than 50,000 characters."""
OTHER: Final = re.compile(r"[^\w ./:,+*×…(){}-]")
"""Characters that mean something to Mermaid or to HTML, which labels may contain. No object of Kubernetes has one in its name."""


def mermaid(diagrams: Sequence[Diagram]) -> str:
    """One flow chart with a subgraph for each diagram; a comment counts those that are left out."""
    lines, arrows, left_out = ["flowchart LR"], 0, 0
    for number, diagram in enumerate(diagrams):
        part = list(_subgraph(number, diagram))
        if arrows + len(diagram.arrows) > MAX_ARROWS or sum(map(len, (*lines, *part))) > MAX_CHARACTERS:
            left_out += 1
            continue
        lines += part
        arrows += len(diagram.arrows)
    used = {box.word for diagram in diagrams for box in diagram.boxes}
    lines += [f"  classDef {word} stroke:{colour},color:{colour}" for word, colour in COLOURS.items() if word in used]
    if left_out:
        lines.append(f'  more["{left_out} more workloads: too many to draw"]')
    return "\n".join([*lines, ""])


def _subgraph(number: int, diagram: Diagram) -> Iterator[str]:
    ids = {box: f"n{number}_{index}" for index, box in enumerate(diagram.boxes)}
    yield f"  subgraph s{number}[{label(diagram.name)}]"
    yield from (f"    {id}[{label(_title(box), box.name)}]{f':::{box.word}' if box.word in COLOURS else ''}" for box, id in ids.items())
    yield "  end"
    yield from (
        f"  {ids[first]} {'-.->' if relation is Relation.AFTER else '-->'} {ids[second]}"
        for (first, second), relation in diagram.arrows.items()
    )


def _title(box: Box) -> str:
    """The title without its mark: a label that begins with one would be read as a list."""
    return f"{f'{box.word} ' if box.word else ''}{box.kind}{box.number}"


def label(*lines: str) -> str:
    """Lines as one quoted text; what could mean something else is replaced by `?`."""
    return '"' + "<br/>".join(OTHER.sub("?", clipped(line, MERMAID_NAME)) for line in lines) + '"'


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
