"""Sources of diagrams: the operations of a workload in a report, and the graph of its desired objects."""

from collections.abc import Hashable, Mapping
from typing import Final

from engine.graph import Graph
from engine.ids import ResourceId
from engine.operation import WriteStatus
from engine.report.diagram.model import EACH, Before, Diagram, Node, Relation, diagram
from engine.report.model import Report, RootReport
from engine.resource import Drop, Hold, Resource

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
