"""Faults as Markdown: the comment about manifests that cannot be planned, which replaces the one about their plan."""

from engine.report.markdown.document import KEPT, LISTED
from engine.report.markdown.inert import code, prose
from engine.report.markdown.overview import blocker_line, marker
from engine.report.review import SMALLEST
from engine.report.severity import Impediment, ImpedimentKind


def markdown_of_faults(text: str, *, title: str = "", limit: int = SMALLEST) -> str:
    """The comment, in at most `limit` bytes of UTF-8: a heading, and the lines of the text of the error as a fault each.

    Raises `ValueError` for an unsuitable title.
    """
    lines = text.splitlines()
    where = f" in {code(title)}" if title else ""
    top = f"{marker(title)}\n### engine: {len(lines)} fault{'' if len(lines) == 1 else 's'}, nothing was planned{where}"
    blocks, room = [top], limit - len(top.encode()) - 100
    for line in lines[:LISTED]:
        block = blocker_line(Impediment(ImpedimentKind.FAULT, line))
        room -= len(block.encode()) + 2
        if room < 0 and len(blocks) > KEPT:
            break
        blocks.append(block)
    left_out = len(lines) - len(blocks) + 1
    if left_out:
        blocks.append(f"<sub>{prose(f'Left out: {left_out} faults; standard error has them.')}</sub>")
    return "\n\n".join(blocks) + "\n"
