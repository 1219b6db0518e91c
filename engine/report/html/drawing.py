"""HTML drawing: a diagram as SVG, within a page or as a file of its own."""

from collections.abc import Mapping, Sequence
from typing import Final

from engine.forecast.forecast import Forecast
from engine.report.diagram.effect import of_effect
from engine.report.diagram.model import Box, Diagram, Relation
from engine.report.html.elements import Content, Markup, element
from engine.report.html.page import STYLE
from engine.report.model import RootReport
from engine.report.printable import clipped, clipped_within, counted

MAX_BOXES: Final = 40
"""Roots with more boxes than this have no drawing within a page: they could not be read."""
MAX_DIAGRAMS: Final = 100
"""Maximum number of diagrams in one file; a last line counts the others."""
WIDTH, HEIGHT, GAP_X, GAP_Y, TOP = 216, 44, 48, 14, 28
"""Pixels: the size of a box, the gaps between boxes, and the room above them for the numbers of the steps."""
HEAD: Final = 30
"""Pixels above each diagram of a file, for its name."""
MAX_NAME: Final = 27
"""Characters of a name that fit into a box."""
TITLE: Final = "What is done, in order, from left to right; objects that are alike share a box"

Places = Mapping[Box, tuple[int, int]]
"""Box -> the position of its upper left corner."""


def drawing(root: RootReport, forecast: Forecast | None, number: int) -> Content:
    """The effect on a root within a page: a column for each step of the next pass, and for each stage that follows.

    None if everything is done in one step, or if there are too many boxes to read.
    `number` makes ids unique within a document.
    """
    effect = of_effect(root, forecast)
    diagram = effect.diagram
    if len(effect.heads) < 2 or len(diagram.boxes) > MAX_BOXES:
        return None
    places = _places(diagram)
    width, height = _size(places)
    heads = [element("text", head, class_="column", x=_left(column), y=18) for column, head in enumerate(effect.heads)]
    drawn = element(
        "svg",
        element("title", TITLE, id=f"drawing-{number}"),
        *_content(diagram, places, number),
        heads,
        role="img",
        aria_labelledby=f"drawing-{number}",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
    )
    more = f"{counted(effect.left_out, 'more stage')} not drawn; -o json has all passes"
    return [
        element("div", drawn, class_="scroll", tabindex=0),
        element("p", more, class_="faint") if effect.left_out else None,
    ]


def svg(diagrams: Sequence[Diagram]) -> str:
    """A file of its own with all diagrams, one below the other. ASCII, without scripts; loads nothing."""
    parts: list[Content] = []
    width, top = 2 * GAP_X + WIDTH, 0
    for number, diagram in enumerate(diagrams[:MAX_DIAGRAMS]):
        places = _places(diagram)
        wide, high = _size(places)
        name = element("text", clipped(diagram.name, 200), class_="column", x=_left(0), y=20)
        content = element("g", *_content(diagram, places, number), transform=f"translate(0 {HEAD - TOP + 8})")
        parts.append(element("g", name, content, transform=f"translate(0 {top})"))
        width, top = max(width, wide), top + HEAD + high
    if len(diagrams) > MAX_DIAGRAMS:
        parts.append(
            element("text", f"{len(diagrams) - MAX_DIAGRAMS} more workloads: too many to draw", class_="column", x=_left(0), y=top + 20)
        )
        top += HEAD
    style = Markup(f"<style>{STYLE}</style>")
    whole = element(
        "svg", style, parts, xmlns="http://www.w3.org/2000/svg", width=width, height=max(top, HEAD), viewBox=f"0 0 {width} {max(top, HEAD)}"
    )
    return f"{whole.source}\n".encode("ascii", "xmlcharrefreplace").decode()


def _places(diagram: Diagram) -> Places:
    rows: dict[int, int] = {}
    places: dict[Box, tuple[int, int]] = {}
    for box in diagram.boxes:
        row = rows.get(box.column, 0)
        rows[box.column] = row + 1
        places[box] = (_left(box.column), TOP + row * (HEIGHT + GAP_Y))
    return places


def _size(places: Places) -> tuple[int, int]:
    """The width and height that all boxes need."""
    right = max((x for x, _ in places.values()), default=0) + WIDTH + GAP_X // 2
    return right, max((y for _, y in places.values()), default=0) + HEIGHT + GAP_Y


def _left(column: int) -> int:
    return GAP_X // 2 + column * (WIDTH + GAP_X)


def _content(diagram: Diagram, places: Places, number: int) -> list[Markup]:
    """The arrow heads, the arrows and the boxes. Beside arrows from owners, those of the order are dashed."""
    tip = element("path", d="M0 0L8 4L0 8z")
    marker = element("marker", tip, id=f"arrow-{number}", markerWidth=8, markerHeight=8, refX=8, refY=4, orient="auto")
    has_owners = Relation.OWNER in diagram.arrows.values()
    arrows = [
        _arrow(places[first], places[second], number, dashed=has_owners and relation is Relation.AFTER)
        for (first, second), relation in diagram.arrows.items()
    ]
    return [marker, *arrows, *(_box(box, place) for box, place in places.items())]


def _arrow(before: tuple[int, int], after: tuple[int, int], number: int, *, dashed: bool) -> Markup:
    start, end = (before[0] + WIDTH, before[1] + HEIGHT // 2), (after[0], after[1] + HEIGHT // 2)
    bend = GAP_X // 2
    path = f"M{start[0]} {start[1]}C{start[0] + bend} {start[1]} {end[0] - bend} {end[1]} {end[0]} {end[1]}"
    return element("path", d=path, class_="edge", marker_end=f"url(#arrow-{number})", stroke_dasharray="4 3" if dashed else None)


def _box(box: Box, place: tuple[int, int]) -> Markup:
    x, y = place
    return element(
        "g",
        element("title", f"{box.title}: {box.name}"),
        element("rect", x=x, y=y, width=WIDTH, height=HEIGHT, rx=4),
        element("text", clipped(box.title, MAX_NAME), x=x + 8, y=y + 18),
        element("text", clipped_within(box.name, MAX_NAME), x=x + 8, y=y + 35),
        class_=box.word or None,
    )
