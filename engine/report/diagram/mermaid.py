"""A diagram in the language of Mermaid, which GitHub and GitLab draw in Markdown."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from engine.report.diagram.dot import COLOURS
from engine.report.diagram.model import Box, Diagram, Relation
from engine.report.printable import clipped

MAX_NAME: Final = 80
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
    return '"' + "<br/>".join(OTHER.sub("?", clipped(line, MAX_NAME)) for line in lines) + '"'
