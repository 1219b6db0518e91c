"""The forecast of a report as text: for each root the stages that follow, the lowest ready counts, and the totals."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Final

from engine.duration import spell
from engine.forecast.forecast import End, Forecast
from engine.ids import ResourceId
from engine.operation import Operation
from engine.report.line import Line
from engine.report.model import RootReport
from engine.report.printable import clipped, printable
from engine.report.stages import DISTINCTIVE, Stage, stages_of
from engine.verb import Verb

STAGES: Final = 8
"""The most stages that are shown of one root; with `verbose` every pass is one."""
LEVELS: Final = 6
"""The most ready counts that are shown of one root."""
LEFT: Final = 3
"""The most objects that are named of what is left at the end."""
NAME, REASON = 80, 200
"""The most characters of a name and of a reason."""
LONG: Final = timedelta(minutes=1)
"""A stage that begins later than this after the first pass says when it begins."""
ENDS: Final[Mapping[End, str]] = {
    End.SETTLED: "then it is settled",
    End.STUCK: "then it is stuck: what is left needs somebody to act",
    End.REPEATS: "then the same follows again and again: it is never settled",
    End.UNFINISHED: "at least: more follows than was computed",
}


def forecast_lines(forecast: Forecast, root: RootReport, *, verbose: bool = False) -> Iterator[Line]:
    """The lines about one root; none if nothing follows what its report lists, and no pod is touched."""
    id = root.root
    stages, effects = stages_of(forecast, id, (step.operation for step in root.steps), every_pass=verbose), forecast.effects.get(id)
    if not stages and effects is None:
        return
    shown = stages if verbose else stages[:STAGES]
    for number, stage in enumerate(shown, start=1):
        yield Line(f"  then {number:<4} {stage_text(stage)}")
    if len(shown) < len(stages):
        yield Line(f"  … {len(stages) - len(shown)} more stages; -v shows every pass", "faint")
    levels = effects.levels if effects else ()
    for level in levels[:LEVELS]:
        below = ", BELOW its minimum" if level.falls_below else ""
        counts = f"{level.lowest} of {level.before} {level.unit} ready (minimum {level.minimum}){below}"
        yield Line(f"  lowest    {level.id.kind}/{clipped(level.id.name, NAME)}: {counts}", "bad" if level.falls_below else "")
    if len(levels) > LEVELS:
        yield Line(f"  … {len(levels) - LEVELS} more objects have fewer ready pods for a time", "faint")
    yield Line(f"  total     {totals_text(forecast, id)}")
    yield from left_lines(forecast, id)


def stage_text(stage: Stage) -> str:
    """One stage: how often, and the operations of each of its passes."""
    passes = [stage.passes[number :: stage.period] for number in range(stage.period)]
    texts = [pass_text([operation for operations in alike for operation in operations], stage.times) for alike in passes]
    when = f"after {spell(timedelta(seconds=round(stage.after.total_seconds())))}: " if stage.after > LONG else ""
    times = f"{stage.times} times: " if stage.times > 1 else ""
    return f"{when}{times}{', then '.join(texts)}"


def pass_text(operations: Iterable[Operation], times: int) -> str:
    """The operations of one pass (or of `times` passes that are alike) by verb and kind; an object that is alone is named."""
    groups: dict[tuple[Verb, str], list[Operation]] = {}
    for operation in operations:
        groups.setdefault((operation.verb, operation.id.kind), []).append(operation)
    return ", ".join(group_text(verb, kind, group, times) for (verb, kind), group in groups.items())


def group_text(verb: Verb, kind: str, operations: list[Operation], times: int) -> str:
    """`delete 3 Pod`, or `delete Pod/name` for a single one."""
    if len(operations) == 1:
        return f"{verb} {kind}/{clipped(operations[0].id.name, NAME)}"
    return f"{verb} {len(operations) // times} {kind}"


def totals_text(forecast: Forecast, root: ResourceId) -> str:
    """What happens to pods and domains, all operations by verb, and how it ends."""
    effects = forecast.effects.get(root)
    operations = operations_text(forecast.operations_of(root))
    return "; ".join(filter(None, (counts_text(effects.counts if effects else {}), operations, ENDS[forecast.end_of(root)])))


def counts_text(counts: Mapping[str, int]) -> str:
    """Effects with their counts: `1 pod restarted, 8 GPUs restarted`."""
    return ", ".join(f"{count} {what if count != 1 else singular(what)}" for what, count in counts.items())


def singular(what: str) -> str:
    """`pods restarted` as `pod restarted`."""
    noun, _, rest = what.partition(" ")
    return f"{noun.removesuffix('s')} {rest}"


def operations_text(operations: Iterable[Operation]) -> str:
    """The number of operations by verb, without statuses: `14 create, 4 release`."""
    counts = Counter[Verb](operation.verb for operation in operations)
    return ", ".join(f"{counts[verb]} {verb}" for verb in Verb if counts[verb] and verb is not Verb.STATUS)


def left_lines(forecast: Forecast, root: ResourceId) -> Iterator[Line]:
    """What is left of a root that gets stuck after its first pass."""
    if forecast.end_of(root) is End.STUCK and (plan := forecast.plans.get(root)) is not None:
        waits = (*plan.blocked, *plan.later, *plan.pending)
        for wait in waits[:LEFT]:
            yield Line(f"  left      {wait.id.kind}/{clipped(wait.id.name, NAME)}: {clipped(wait.why, REASON)}", "blocked")
        if len(waits) > LEFT:
            yield Line(f"  … {len(waits) - LEFT} more objects are left", "faint")


def conclusion(forecast: Forecast) -> Iterator[Line]:
    """All roots together, if anything follows the first pass; and what the forecast assumes."""
    following = (operation for each in forecast.passes if each.after for listed in each.operations.values() for operation in listed)
    if not any(operation.verb in DISTINCTIVE for operation in following):
        return
    at_least = "" if forecast.is_finished and not forecast.repeating else "at least "
    effects = Counter[str]()
    for each in forecast.effects.values():
        effects.update(each.counts)
    counts = counts_text(effects)
    yield Line(printable(f"In all: {at_least}{operations_text(forecast.operations())}{'; ' if counts else ''}{counts}."), "head")
    yield Line(f"This assumes that {'; '.join(sorted(forecast.assumptions))}.", "faint")
