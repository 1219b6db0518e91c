"""HTML drawing: the operations of a root in the order in which they are done, as SVG: a box for operations that are alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.plan import Wait
from engine.report.alike import blurred, spread
from engine.report.html.elements import Markup, element
from engine.report.model import RootReport, Step
from engine.report.printable import clipped
from engine.report.text import MARKS
from engine.verb import Verb

MAX_BOXES: Final = 40
"""Roots with more groups of operations than this have no drawing: nobody could read it."""
WIDTH, HEIGHT, GAP_X, GAP_Y, TOP = 216, 44, 48, 14, 28
"""Pixels: the size of a box, the gaps between boxes, and the room above them for the numbers of the steps."""
MAX_NAME: Final = 27
"""Characters of a name that fit into a box."""

Group = tuple[str, int, str, str, str]
"""What operations in one box have in common: word, step, group and kind of the object, name without numbers."""


@dataclass(frozen=True, slots=True)
class Box:
    """Operations of one step that are alike, or objects that wait."""

    word: str
    """The verb, `later` or `blocked`."""
    kind: str
    names: tuple[str, ...]
    column: int

    @property
    def title(self) -> str:
        """`+ create Pod ×48`."""
        number = f" ×{len(self.names)}" if len(self.names) > 1 else ""
        return f"{MARKS[self.word]} {self.word} {self.kind}{number}"


def drawing(root: RootReport, number: int) -> Markup | None:
    """The drawing: a column for each step, without statuses, which only report.

    None if everything is done in one step, or if there are too many boxes to read.
    `number` makes ids unique within a document.
    """
    drawn = [step for step in root.steps if step.operation.verb is not Verb.STATUS]
    steps = _step_numbers(drawn)
    group_of = {step.operation.key: _group(step, steps[step.operation.key]) for step in drawn}
    if len(set(group_of.values())) > MAX_BOXES:
        return None
    boxes = _boxes(drawn, group_of)
    waiting = _waiting((*root.later, *root.blocked), 1 + max(steps.values(), default=-1), {wait.id for wait in root.blocked})
    columns = {box.column for box in (*boxes.values(), *waiting)}
    if len(columns) < 2 or len(boxes) + len(waiting) > MAX_BOXES:
        return None
    places = _places((*boxes.values(), *waiting))
    edges = _edges(drawn, group_of)
    return _svg(places, [(boxes[before], boxes[after]) for before, after in sorted(edges)], number, has_later=bool(waiting))


def _step_numbers(steps: Iterable[Step]) -> dict[str, int]:
    """Key of an operation -> the number of operations that come before it on its longest way from the beginning."""
    before = {step.operation.key: step.operation.after for step in steps}
    numbers: dict[str, int] = {}
    for start in before:
        stack = [start]
        while stack:
            key = stack[-1]
            missing = [each for each in before[key] if each in before and each not in numbers]
            if missing:
                stack += missing
                continue
            stack.pop()
            numbers[key] = 1 + max((numbers[each] for each in before[key] if each in before), default=-1)
    return numbers


def _group(step: Step, number: int) -> Group:
    id = step.operation.id
    return str(step.operation.verb), number, id.group, id.kind, blurred(id.name)


def _boxes(steps: Iterable[Step], group_of: Mapping[str, Group]) -> dict[Group, Box]:
    names: dict[Group, list[str]] = {}
    for step in steps:
        names.setdefault(group_of[step.operation.key], []).append(step.operation.id.name)
    return {group: Box(group[0], group[3], tuple(each), group[1]) for group, each in names.items()}


def _waiting(waits: Iterable[Wait], column: int, blocked: set[object]) -> list[Box]:
    """The objects that are deferred, in a last column."""
    names: dict[tuple[str, str, str], list[str]] = {}
    for wait in waits:
        word = "blocked" if wait.id in blocked else "later"
        names.setdefault((word, wait.id.kind, blurred(wait.id.name)), []).append(wait.id.name)
    return [Box(word, kind, tuple(each), column) for (word, kind, _), each in names.items()]


def _edges(steps: Iterable[Step], group_of: Mapping[str, Group]) -> set[tuple[Group, Group]]:
    """Pairs of groups of which the first comes before the second, without those that follow from others."""
    before: dict[Group, set[Group]] = {}
    for step in steps:
        group = group_of[step.operation.key]
        before.setdefault(group, set()).update(group_of[key] for key in step.operation.after if key in group_of)
    all_before: dict[Group, set[Group]] = {}
    for group in sorted(before, key=lambda each: each[1]):  # A group comes after groups of smaller numbers only.
        all_before[group] = before[group].union(*(all_before[each] for each in before[group]))
    return {
        (earlier, group)
        for group, direct in before.items()
        for earlier in direct
        if not any(earlier in all_before[other] for other in direct if other != earlier)
    }


def _places(boxes: Sequence[Box]) -> dict[Box, tuple[int, int]]:
    """Box -> the position of its upper left corner."""
    rows: dict[int, int] = {}
    places: dict[Box, tuple[int, int]] = {}
    for box in boxes:
        row = rows.get(box.column, 0)
        rows[box.column] = row + 1
        places[box] = (_left(box.column), TOP + row * (HEIGHT + GAP_Y))
    return places


def _left(column: int) -> int:
    return GAP_X // 2 + column * (WIDTH + GAP_X)


def _svg(places: Mapping[Box, tuple[int, int]], edges: Iterable[tuple[Box, Box]], number: int, *, has_later: bool) -> Markup:
    last = max(box.column for box in places)
    width = GAP_X + (last + 1) * (WIDTH + GAP_X) - GAP_X
    height = max(y for _, y in places.values()) + HEIGHT + GAP_Y
    marker = element("path", d="M0 0L8 4L0 8z")
    heads = [
        element("text", "not now" if has_later and column == last else f"step {column + 1}", class_="column", x=_left(column), y=18)
        for column in range(last + 1)
    ]
    return element(
        "svg",
        element("title", "The operations in the order in which they are done; the tables below list all of them", id=f"drawing-{number}"),
        element("marker", marker, id=f"arrow-{number}", markerWidth=8, markerHeight=8, refX=8, refY=4, orient="auto"),
        heads,
        [_edge(places[before], places[after], number) for before, after in edges],
        [_box(box, place) for box, place in places.items()],
        role="img",
        aria_labelledby=f"drawing-{number}",
        width=width,
        height=height,
        viewBox=f"0 0 {width} {height}",
    )


def _edge(before: tuple[int, int], after: tuple[int, int], number: int) -> Markup:
    start, end = (before[0] + WIDTH, before[1] + HEIGHT // 2), (after[0], after[1] + HEIGHT // 2)
    bend = GAP_X // 2
    path = f"M{start[0]} {start[1]}C{start[0] + bend} {start[1]} {end[0] - bend} {end[1]} {end[0]} {end[1]}"
    return element("path", d=path, class_="edge", marker_end=f"url(#arrow-{number})")


def _box(box: Box, place: tuple[int, int]) -> Markup:
    x, y = place
    name = spread(box.names)
    return element(
        "g",
        element("title", f"{box.title}: {name}"),
        element("rect", x=x, y=y, width=WIDTH, height=HEIGHT, rx=4),
        element("text", clipped(box.title, MAX_NAME), x=x + 8, y=y + 18),
        element("text", clipped(name, MAX_NAME), x=x + 8, y=y + 35),
        class_=box.word,
    )
