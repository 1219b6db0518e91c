"""Pod patterns: how a report shows the names of new pods that depend on a uid which does not exist yet.

It is that of their set, or that of the pod that had their index before.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from engine.forecast.forecast import Forecast
from engine.forecast.store import SYNTHETIC
from engine.ids import ResourceId
from engine.operation import Create, Creation, Operation, Patch, WriteStatus, operation_key
from engine.plan import Plan, Wait
from engine.report.model import Report, RootReport, Step
from engine.report.printable import PatternName
from engine.resource import Body
from engine.verb import Verb
from resources.base import kinds, labels
from resources.base.fields import mapping
from resources.base.names import POD_TOKEN_LENGTH

UNKNOWN: Final = "?" * POD_TOKEN_LENGTH

Names = Mapping[ResourceId, PatternName]
"""Pod -> its name as it is shown, of those whose real name is not known yet."""


def with_patterns(report: Report) -> Report:
    """The report with a pattern such as `web-0-front-?????` for each name that is not known yet; the same if there is none."""
    names: dict[ResourceId, PatternName] = {}
    for id, pattern in _patterns(report):
        names.setdefault(id, pattern)  # The first one, that of the create, has the number of the pod.
    if not names:
        return report
    renaming = _Renaming(names)
    roots = tuple(renaming.root(root) for root in report.roots)
    return replace(report, roots=roots, forecast=renaming.forecast(report.forecast) if report.forecast is not None else None)


def _patterns(report: Report) -> Iterator[tuple[ResourceId, PatternName]]:
    """The pods of roots that do not exist yet, and those that replace pods which do not exist yet."""
    new = {root.root for root in report.roots if any(_creates(step.operation, root.root) for step in root.steps)}
    new |= {root.root for root in report.roots if any(map(is_imagined, root.steps))}
    for root in report.roots:
        if root.root in new:
            removed = (each.operation.id for each in root.steps if is_imagined(each) and _is_pod(each.operation.id))
            yield from ((id, _removed(id)) for id in removed)
            yield from (pattern for step in root.steps if (pattern := _pattern_of(step.operation)) is not None)
            yield from _of_waits((*root.later, *root.blocked, *root.pending))
    if report.forecast is None:
        return
    created: set[tuple[ResourceId, str, str, str]] = set()
    for root_id, operation in (
        (root, each) for step in report.forecast.passes for root, listed in step.operations.items() for each in listed
    ):
        if _creates(operation, root_id):
            new.add(root_id)
        if operation.expect.uid.startswith(SYNTHETIC) and root_id in new and _is_pod(operation.id):
            yield operation.id, _removed(operation.id)
        elif (pattern := _pattern_of(operation)) is not None:
            slot = (root_id, pattern[0].namespace, pattern[1].owner, pattern[1].number)
            if root_id in new or slot in created:
                yield pattern
            created.add(slot)
    for root_id, plan in report.forecast.plans.items():
        if root_id in new:
            yield from _of_waits((*plan.deferred, *plan.pending))


def is_imagined(step: Step) -> bool:
    """Whether an operation is on an object that only a forecast has made, as with `--base`: then its root is of a forecast as well."""
    return step.operation.expect.uid.startswith(SYNTHETIC)


def _is_pod(id: ResourceId) -> bool:
    return id.kind == kinds.POD.name and not id.group


def _removed(id: ResourceId) -> PatternName:
    """The pattern of a pod of which nothing but the name is known."""
    clique, _, _ = id.name.rpartition("-")
    return PatternName(f"{clique}-{UNKNOWN}", id.name, clique, "")


def _creates(operation: Operation, root: ResourceId) -> bool:
    return operation.id == root and isinstance(operation, Create)


def patterns_of(bodies: Mapping[ResourceId, Body]) -> dict[ResourceId, PatternName]:
    """The patterns of all pods among objects of sets that do not exist."""
    return {id: pattern for id, body in bodies.items() if (pattern := pattern_of(id, body)) is not None}


def bodies_with_patterns(bodies: Mapping[ResourceId, Body]) -> list[dict[str, Any]]:
    """The objects of sets that do not exist, with patterns for the names of their pods, in their order."""
    renaming = _Renaming(patterns_of(bodies))
    return [{**renaming.body(id, body)} for id, body in bodies.items()]


def _pattern_of(operation: Operation) -> tuple[ResourceId, PatternName] | None:
    """A pod that is created and its pattern; None for every other operation."""
    pattern = pattern_of(operation.id, operation.manifest) if isinstance(operation, Creation) else None
    return (operation.id, pattern) if pattern is not None else None


def pattern_of(id: ResourceId, body: Body) -> PatternName | None:
    """The pattern of a pod with the labels of its clique; None for every other object."""
    if id.kind != kinds.POD.name or id.group:
        return None
    own = mapping(mapping(body.get("metadata")).get("labels"))
    clique, index = own.get(labels.PODCLIQUE), own.get(labels.POD_INDEX)
    return PatternName(f"{clique}-{UNKNOWN}", id.name, clique, str(index)) if isinstance(clique, str) else None


def _of_waits(waits: Iterable[Wait]) -> Iterator[tuple[ResourceId, PatternName]]:
    """The pods that wait to be created."""
    for wait in waits:
        if _is_pod(wait.id):
            yield wait.id, _removed(wait.id)


class _Renaming:
    """Puts patterns in the place of names."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.texts = {id.name: name for id, name in names.items()}
        """Planned name -> pattern. A name of a pod is unique, as far as texts are concerned."""
        self.keys = {
            operation_key(verb, id): operation_key(verb, self.id(id)) for id in names for verb in (Verb.CREATE, Verb.REPLACE, Verb.DELETE)
        }

    def id(self, id: ResourceId) -> ResourceId:
        name = self.names.get(id)
        return id if name is None else id._replace(name=name)

    def root(self, root: RootReport) -> RootReport:
        steps = tuple(replace(step, operation=self.operation(step.operation)) for step in root.steps)
        waits = {field: tuple(map(self.wait, getattr(root, field))) for field in ("later", "blocked", "pending")}
        return replace(root, steps=steps, **waits)

    def wait(self, wait: Wait) -> Wait:
        return replace(wait, id=self.id(wait.id)) if wait.id in self.names else wait

    def operation(self, operation: Operation) -> Operation:
        after = frozenset(self.keys.get(key, key) for key in operation.after) if not self.keys.keys().isdisjoint(operation.after) else None
        changed = replace(operation, after=after) if after is not None else operation
        if operation.id.kind == kinds.PODGANG.name:
            changes = tuple(replace(change, old=self.value(change.old), new=self.value(change.new)) for change in operation.changes)
            changed = replace(changed, changes=changes) if changes else changed
        field = "manifest" if isinstance(operation, Creation) else "patch" if isinstance(operation, Patch | WriteStatus) else ""
        old = getattr(operation, field) if field else None
        body = self.body(operation.id, old) if old is not None else None
        if body is old and operation.id not in self.names:
            return changed
        return replace(changed, id=self.id(operation.id), **({field: body} if field else {}))

    def body(self, id: ResourceId, body: Body) -> Body:
        """The manifest or the patch of an object, with patterns."""
        if id.kind == kinds.PODGANG.name:
            return {key: self.value(value) for key, value in body.items()}
        metadata = mapping(body.get("metadata")) if id in self.names else {}
        return {**body, "metadata": {**metadata, "name": str(self.names[id])}} if metadata else body

    def value(self, value: Any) -> Any:
        """The value with patterns for names in it."""
        if isinstance(value, str):
            return str(self.texts.get(value, value))
        if isinstance(value, Mapping):
            return {key: self.value(each) for key, each in value.items()}
        return [self.value(each) for each in value] if isinstance(value, list | tuple) else value

    def forecast(self, forecast: Forecast) -> Forecast:
        passes = tuple(
            replace(each, operations={root: tuple(map(self.operation, listed)) for root, listed in each.operations.items()})
            for each in forecast.passes
        )
        return replace(forecast, passes=passes, plans={root: self.plan(plan) for root, plan in forecast.plans.items()})

    def plan(self, plan: Plan) -> Plan:
        if not any(wait.id in self.names for wait in (*plan.deferred, *plan.pending)):
            return plan
        return replace(plan, deferred=tuple(map(self.wait, plan.deferred)), pending=tuple(map(self.wait, plan.pending)))
