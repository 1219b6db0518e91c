"""A diagram as values: boxes in columns, arrows from what comes first; made from a report, or from the graph of desired objects."""

from collections.abc import Hashable, Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from engine.graph import Graph
from engine.ids import ResourceId
from engine.operation import WriteStatus
from engine.report.alike import blurred, spread
from engine.report.model import Report, RootReport
from engine.report.text import MARKS
from engine.resource import Drop, Hold, Resource

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


NO_NAMES: Final[Mapping[ResourceId, str]] = {}


def of_root(root: RootReport, *, each: int = EACH) -> Diagram:
    """The operations of a root in the order in which they are done, without statuses, which only report; then what waits."""
    operations = {
        (step.operation.verb, step.operation.id): step.operation for step in root.steps if not isinstance(step.operation, WriteStatus)
    }
    by_key: dict[str, list[Hashable]] = {}
    for key, operation in operations.items():
        by_key.setdefault(operation.key, []).append(key)  # Names that are not known yet look alike.
    nodes: dict[Hashable, Node] = {key: Node(operation.id, str(operation.verb)) for key, operation in operations.items()}
    before: dict[Hashable, dict[Hashable, Relation]] = {
        key: {first: Relation.AFTER for text in sorted(operation.after) for first in by_key.get(text, ())}
        for key, operation in operations.items()
    }
    for word, waits in (("later", root.later), ("blocked", root.blocked)):
        for wait in waits:
            nodes[(word, wait.id)] = Node(wait.id, word)
            before[(word, wait.id)] = {}
    return diagram(str(root.root), nodes, before, each=each)


def of_report(report: Report) -> list[Diagram]:
    """A diagram for each root with operations or with something that waits."""
    drawn = (of_root(root) for root in report.roots)
    return [diagram for diagram in drawn if diagram.boxes]


def of_graph(root: ResourceId, graph: Graph, names: Mapping[ResourceId, str] = NO_NAMES) -> Diagram:
    """The desired objects of a root: arrows lead from owners, and from what is created first. `names`: how some of them are shown."""
    wanted = {id: resource for id, resource in graph.resources.items() if not isinstance(resource, Drop)}
    nodes: dict[Hashable, Node] = {id: Node(id._replace(name=names.get(id, id.name)), _word(resource)) for id, resource in wanted.items()}
    before: Before = {id: _before(resource) for id, resource in wanted.items()}
    return diagram(str(root), nodes, {id: {first: why for first, why in firsts.items() if first in nodes} for id, firsts in before.items()})


def _word(resource: Resource) -> str:
    """`later` or `blocked` for an object that is held back."""
    return ("blocked" if resource.blocked else "later") if isinstance(resource, Hold) else ""


def _before(resource: Resource) -> dict[Hashable, Relation]:
    after: dict[Hashable, Relation] = dict.fromkeys(sorted(resource.after), Relation.AFTER)
    return after | {owner.id: Relation.OWNER for owner in resource.owners}
