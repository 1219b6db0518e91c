"""A diagram as values: boxes in columns, arrows from what comes first; objects that are alike share a box."""

from collections.abc import Hashable, Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from engine.ids import ResourceId
from engine.report.alike import blurred, spread
from engine.report.text import MARKS

EACH: Final = 24
"""Up to this number, objects have a box each; beyond it, objects that are alike share one."""
MOST: Final = 80
"""If there are more boxes than this although alike objects share one, all objects of a kind in a column do."""


class Relation(StrEnum):
    """Why one object comes before another."""

    OWNER = "owner"
    """It owns the other."""
    AFTER = "after"
    """It is created, or otherwise written, first."""


class Node(Struct, frozen=True):
    """An object, or an operation on it."""

    id: ResourceId
    word: str = ""
    """What happens to it: a verb, `later` or `blocked`; empty if nothing does."""


class Box(Struct, frozen=True):
    """Objects of one column that are alike."""

    word: str
    kind: str
    names: tuple[str, ...]
    column: int

    @property
    def number(self) -> str:
        """` ×48`, or empty for a single object."""
        return f" ×{len(self.names)}" if len(self.names) > 1 else ""

    @property
    def title(self) -> str:
        """`+ create Pod ×48`."""
        return f"{f'{MARKS[self.word]} {self.word} ' if self.word else ''}{self.kind}{self.number}"

    @property
    def name(self) -> str:
        """One name for all of them."""
        return spread(self.names) if len({blurred(name) for name in self.names}) == 1 else f"{self.names[0]}, …"


class Diagram(Struct, frozen=True):
    """Boxes, and the arrows between them."""

    name: str
    boxes: tuple[Box, ...]
    arrows: Mapping[tuple[Box, Box], Relation]
    """Pairs of boxes of which the first comes before the second."""


Before = Mapping[Hashable, Mapping[Hashable, Relation]]
"""Key of a node -> keys of the nodes that come before it."""


class Pattern(NamedTuple):
    """What objects in one box have in common."""

    column: int
    word: str
    group: str
    kind: str
    name: str


def diagram(name: str, nodes: Mapping[Hashable, Node], before: Before, *, each: int = EACH) -> Diagram:
    """The diagram of these nodes: alike ones share a box if there are more than `each`.

    An arrow that follows from others is left out, unless it leads from an owner.
    """
    columns = columns_of(before)
    by_name = {key: _pattern(node, columns[key], node.id.name) for key, node in nodes.items()}
    by_likeness = {key: _pattern(node, columns[key], blurred(node.id.name)) for key, node in nodes.items()}
    by_kind = {key: _pattern(node, columns[key], "") for key, node in nodes.items()}
    fewest = by_likeness if len(set(by_likeness.values())) <= MOST else by_kind
    groups = by_name if len(nodes) <= each else fewest
    boxes = _boxes(nodes, groups)
    arrows = {(boxes[first], boxes[second]): relation for (first, second), relation in sorted(_arrows(before, groups).items())}
    return Diagram(name, tuple(boxes.values()), arrows)


def columns_of(before: Before) -> dict[Hashable, int]:
    """Key -> the number of keys that come before it on its longest way from the beginning."""
    columns: dict[Hashable, int] = {}
    for start in before:
        stack = [start]
        while stack:
            key = stack[-1]
            missing = [first for first in before[key] if first in before and first not in columns]
            if missing:
                stack += missing
                continue
            stack.pop()
            columns[key] = 1 + max((columns[first] for first in before[key] if first in before), default=-1)
    return columns


def _pattern(node: Node, column: int, name: str) -> Pattern:
    return Pattern(column, node.word, node.id.group, node.id.kind, name)


def _boxes(nodes: Mapping[Hashable, Node], groups: Mapping[Hashable, Pattern]) -> dict[Pattern, Box]:
    members: dict[Pattern, list[Node]] = {}
    for key, node in nodes.items():
        members.setdefault(groups[key], []).append(node)
    return {
        pattern: Box(alike[0].word, alike[0].id.kind, tuple(node.id.name for node in alike), pattern.column)
        for pattern, alike in members.items()
    }


def _arrows(before: Before, groups: Mapping[Hashable, Pattern]) -> dict[tuple[Pattern, Pattern], Relation]:
    """Pairs of groups of which the first comes before the second, with the reason."""
    direct: dict[Pattern, dict[Pattern, Relation]] = {}
    for key, firsts in before.items():
        into = direct.setdefault(groups[key], {})
        for first, relation in firsts.items():
            if first in groups and into.get(groups[first]) is not Relation.OWNER:
                into[groups[first]] = relation
    every = _all_before(direct)
    return {
        (first, group): relation
        for group, firsts in direct.items()
        for first, relation in firsts.items()
        if relation is Relation.OWNER or not any(first in every[other] for other in firsts if other != first)
    }


def _all_before(direct: Mapping[Pattern, Iterable[Pattern]]) -> dict[Pattern, set[Pattern]]:
    """Group -> every group that comes before it. A group comes after groups of smaller columns only."""
    every: dict[Pattern, set[Pattern]] = {}
    for group in sorted(direct, key=lambda pattern: pattern.column):
        every[group] = set(direct[group]).union(*(every[first] for first in direct[group]))
    return every
