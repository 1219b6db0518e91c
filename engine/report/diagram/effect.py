"""The whole effect on one root as a diagram: the steps of its next pass, the stages that follow it, and what is left, a column each."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.forecast.forecast import End, Forecast
from engine.operation import Operation
from engine.plan import Wait
from engine.report.alike import blurred
from engine.report.diagram.model import Box, Diagram, of_root
from engine.report.forecast_text import LONG, Stage, duration_text, stages_of
from engine.report.model import RootReport, unreported

MAX_COLUMNS: Final = 12
"""Stages are drawn as long as they need no more columns than this."""
MAX_LIKENESSES: Final = 8
"""If a stage has more boxes in a column than this, all its objects of one kind share one."""
WAITING: Final = ("later", "blocked")
"""The words of what is not done in the next pass."""


class Effect(Struct, frozen=True, eq=False):
    """A diagram with what stands above its columns."""

    diagram: Diagram
    heads: tuple[str, ...]
    """One for each column."""
    left_out: int = 0
    """How many stages are not drawn."""


def of_effect(root: RootReport, forecast: Forecast | None) -> Effect:
    """The effect until everything is settled; without a forecast the next pass, and what waits. Objects that are alike share a box."""
    shown = root if forecast is None else replace(root, later=(), blocked=(*root.blocked, *_left(root, forecast)))
    next_pass = of_root(shown, each=0)
    boxes = [box for box in next_pass.boxes if box.word not in WAITING]
    steps = 1 + max((box.column for box in boxes), default=-1)
    heads = [f"step {number}" for number in range(1, steps + 1)]
    stages = stages_of(forecast, root.root, (step.operation for step in root.steps)) if forecast is not None else ()
    drawn = 0
    for stage in stages:
        if len(heads) - steps + stage.period > MAX_COLUMNS:
            break
        drawn += 1
        for number, head in enumerate(_heads(stage)):
            operations = [operation for each in stage.passes[number :: stage.period] for operation in each]
            boxes += _boxes(operations, len(heads))
            heads.append(head)
    if waiting := [box for box in next_pass.boxes if box.word in WAITING]:
        boxes += [replace(box, column=len(heads)) for box in waiting]
        heads.append("not now" if forecast is None else "not done")
    return Effect(Diagram(next_pass.name, tuple(boxes), next_pass.arrows), tuple(heads), len(stages) - drawn)


def _left(root: RootReport, forecast: Forecast) -> Iterator[Wait]:
    """What is left of a root that gets stuck, beside what is blocked already."""
    plan = forecast.plans.get(root.root)
    if plan is not None and forecast.end_of(root.root) is End.STUCK:
        yield from unreported((*plan.blocked, *plan.later, *plan.pending), root.blocked)


def _heads(stage: Stage) -> Iterator[str]:
    """What stands above the columns of a stage, one for each pass of a repetition."""
    when = f", after {duration_text(stage.after)}" if stage.after > LONG else ""
    yield f"then{f', {stage.times} times' if stage.times > 1 else ''}{when}"
    for _ in range(stage.period - 1):
        yield "each time followed by"


def _boxes(operations: Sequence[Operation], column: int) -> Iterable[Box]:
    """The operations of one column of a stage, alike ones in a box."""
    alike: dict[tuple[str, str, str, str], list[str]] = {}
    for operation in operations:
        id = operation.id
        alike.setdefault((str(operation.verb), id.group, id.kind, blurred(id.name)), []).append(id.name)
    if len(alike) > MAX_LIKENESSES:
        of_kind: dict[tuple[str, str, str, str], list[str]] = {}
        for (word, group, kind, _), names in alike.items():
            of_kind.setdefault((word, group, kind, ""), []).extend(names)
        alike = of_kind
    return [Box(word, kind, tuple(names), column) for (word, _, kind, _), names in alike.items()]
