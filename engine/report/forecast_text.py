"""The forecast of a report as text: for each root the stages that follow, the lowest ready counts, and the totals."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from engine.duration import spell
from engine.forecast.cluster_model import Level
from engine.forecast.forecast import End, Forecast
from engine.ids import ResourceId
from engine.operation import Operation, WriteStatus
from engine.plan import Wait
from engine.report.alike import TOKEN
from engine.report.meaning import general_advice
from engine.report.model import RootReport
from engine.report.printable import TO_DO, Line, clipped, counted, printable, totals
from engine.verb import Verb

DISTINCTIVE: Final = frozenset({Verb.CREATE, Verb.REPLACE, Verb.RELEASE, Verb.DELETE})
"""The verbs that distinguish passes. A pass without any of them joins the one before it."""
LONGEST_PERIOD: Final = 4
"""The most passes that a repeated period consists of."""

Signature = tuple[tuple[tuple[str, str], int], ...]
"""How many operations of each verb and kind a pass has."""
STAGES: Final = 8
"""The most stages that are shown of one root; with `verbose` every pass is one."""
LEVELS: Final = 6
"""The most ready counts that are shown of one root."""
LEFT: Final = 3
"""The most objects that are named of what is left at the end."""
DOUBTS: Final = 5
"""The most remarks that are shown about pods that may not fit."""
NAME, REASON, SENTENCE = 80, 200, 400
"""The most characters of a name, of a reason, and of a remark."""
PODS, GPUS = "pods ", "GPUs "
"""How the effects on pods begin, and those on their GPUs."""
LONG: Final = timedelta(minutes=1)
"""A stage that begins later than this after the first pass says when it begins, and so does the last pass."""
REST: Final = "a sync waits no longer than its --timeout, and what is left then is done by the next one, or by engine run"
"""What becomes of passes that begin late. The time that pods take to start and to end comes on top."""
ENDS: Final[Mapping[End, str]] = {
    End.SETTLED: "settled",
    End.STUCK: "STUCK: the remaining steps need manual action",
    End.REPEATS: "REPEATS: the same follows again and again, it is never settled",
    End.UNFINISHED: "at least: more follows than was computed",
}


class Stage(Struct, frozen=True, eq=False):
    """A period of passes, and how often it repeats."""

    after: timedelta
    """The simulated time from the first pass to the beginning of the stage."""
    passes: tuple[tuple[Operation, ...], ...]
    """The passes of all repetitions, in order; only operations of the verbs in `DISTINCTIVE`."""
    period: int
    """How many of the passes one repetition has."""

    @property
    def times(self) -> int:
        """How often the period happens."""
        return len(self.passes) // self.period


class _FollowingPass(Struct, frozen=True, eq=False):
    after: timedelta
    operations: tuple[Operation, ...]

    @property
    def signature(self) -> Signature:
        counts = Counter((str(operation.verb), operation.id.kind) for operation in self.operations)
        return tuple(sorted(counts.items()))


def stages_of(forecast: Forecast, root: ResourceId, listed: Iterable[Operation] = (), *, every_pass: bool = False) -> tuple[Stage, ...]:
    """The stages of one root that follow what is `listed` already: the operations of its first plan.

    The plan of a root that does not exist yet has everything, although only the root itself is created in the first pass.
    With `every_pass`, passes that repeat are stages of their own.
    """
    remaining = Counter(map(_pattern, listed))
    passes: list[_FollowingPass] = []
    for each in forecast.passes:
        news: list[Operation] = []
        for operation in each.operations.get(root, ()):
            if remaining[pattern := _pattern(operation)]:
                remaining[pattern] -= 1
            elif operation.verb in DISTINCTIVE:
                news.append(operation)
        if news:
            passes.append(_FollowingPass(each.after, tuple(news)))
    if every_pass:
        return tuple(Stage(each.after, (each.operations,), 1) for each in passes)
    return tuple(_folded(passes, [each.signature for each in passes]))


def _folded(passes: Sequence[_FollowingPass], signatures: Sequence[Signature]) -> Iterator[Stage]:
    """The passes as stages: the repetition that covers most passes is one, and so on with those before and after it."""
    begin, period, times = _longest_repetition(signatures)
    if times == 1:
        yield from (Stage(each.after, (each.operations,), 1) for each in passes)
        return
    end = begin + period * times
    yield from _folded(passes[:begin], signatures[:begin])
    yield Stage(passes[begin].after, tuple(each.operations for each in passes[begin:end]), period)
    yield from _folded(passes[end:], signatures[end:])


def _longest_repetition(signatures: Sequence[Signature]) -> tuple[int, int, int]:
    """Where the repetition begins that covers the most passes, the length of its period (the shortest), and how often that happens.

    Once, if nothing repeats.
    """
    best = (0, 1, 1)
    for period in range(1, LONGEST_PERIOD + 1):
        alike = 0
        for at in range(len(signatures) - period):
            alike = alike + 1 if signatures[at] == signatures[at + period] else 0
            times = alike // period + 1
            if times > 1 and alike % period == 0 and period * times > best[1] * best[2]:
                best = (at + 1 - alike, period, times)
    return best


def _pattern(operation: Operation) -> tuple[Verb, ResourceId]:
    """An operation without the end of the name: names of the pods of a new root change when it gets its uid."""
    return operation.verb, operation.id._replace(name=TOKEN.sub("-*", operation.id.name))


def has_effect(forecast: Forecast, root: RootReport) -> bool:
    """Whether something happens to the root, or is left of it, after its next pass or in it."""
    id = root.root
    return forecast.has_operations(id) or id in forecast.effects or forecast.end_of(id) is not End.SETTLED


def forecast_lines(forecast: Forecast, root: RootReport, *, verbose: bool = False) -> Iterator[Line]:
    """The whole effect on one root: the stages that follow its next pass, the fewest that are ready, the totals, and what is left.

    None if nothing follows its next pass, and no pod is touched.
    """
    id, effects = root.root, forecast.effects.get(root.root)
    stages = stages_of(forecast, id, (step.operation for step in root.steps), every_pass=verbose)
    if not stages and effects is None and forecast.end_of(id) is End.SETTLED:
        return
    shown = stages if verbose else stages[:STAGES]
    for number, stage in enumerate(shown, start=1):
        yield Line(f"  stage {number:<2} {stage_text(stage)}")
    if len(shown) < len(stages):
        yield Line(f"           … {len(stages) - len(shown)} more stages; -v shows every pass", "faint")
    yield from level_lines(effects.levels if effects else ())
    yield Line(f"  total    {totals_text(forecast, id)}")
    yield from left_lines(forecast, root)


def level_lines(levels: Sequence[Level]) -> Iterator[Line]:
    """The fewest ready members on the way, the worst first."""
    for level in levels[:LEVELS]:
        below = " BELOW" if level.falls_below else ""
        counts = f"{level.lowest} of {level.before} {level.unit} ready (min {level.minimum}){below}"
        yield Line(f"  lowest   {level.id.kind}/{clipped(level.id.name, NAME)}: {counts}", "bad" if level.falls_below else "")
    if len(levels) > LEVELS:
        yield Line(f"           … {len(levels) - LEVELS} more objects have fewer ready pods for a time", "faint")


def stage_text(stage: Stage) -> str:
    """One stage: how often, and the operations of each of its passes."""
    passes = [stage.passes[number :: stage.period] for number in range(stage.period)]
    texts = [pass_text([operation for operations in alike for operation in operations], stage.times) for alike in passes]
    when = f"after {duration_text(stage.after)}: " if stage.after > LONG else ""
    times = f"{stage.times} times: " if stage.times > 1 else ""
    return f"{when}{times}{'; then '.join(texts)}"


def pass_text(operations: Iterable[Operation], times: int) -> str:
    """The operations of one pass (or of `times` passes that are alike) by verb and kind; an object that is alone is named."""
    kinds: dict[Verb, dict[str, list[str]]] = {}
    for operation in operations:
        kinds.setdefault(operation.verb, {}).setdefault(operation.id.kind, []).append(operation.id.name)
    return ", ".join(f"{verb} {', '.join(kind_text(kind, names, times) for kind, names in each.items())}" for verb, each in kinds.items())


def kind_text(kind: str, names: Sequence[str], times: int) -> str:
    """`3 Pods`, or `Pod/name` for a single one."""
    return f"{kind}/{clipped(names[0], NAME)}" if len(names) == 1 else counted(len(names) // times, kind)


def totals_text(forecast: Forecast, root: ResourceId) -> str:
    """What happens to pods and domains, all operations by verb, how it ends and after how many passes."""
    effects = forecast.effects.get(root)
    operations = operations_text(forecast.operations_of(root))
    times = [each.after for each in forecast.passes if any(map(_is_write, each.operations.get(root, ())))]
    last = f", the last one after {duration_text(times[-1])}" if times and times[-1] > LONG else ""
    end = ENDS.get(forecast.end_of(root), str(forecast.end_of(root))) + (f", {counted(len(times), 'pass')}{last}" if times else "")
    return "; ".join(filter(None, (counts_text(effects.counts if effects else {}), operations, end)))


def counts_text(counts: Mapping[str, int]) -> str:
    """Effects with their counts: `3 pods restarted (8 GPUs), 1 domain replaced`."""
    gpus = {what.removeprefix(GPUS): count for what, count in counts.items() if what.startswith(GPUS)}
    texts = []
    for what, count in counts.items():
        with_gpus = gpus.get(what.removeprefix(PODS)) if what.startswith(PODS) else None
        if not what.startswith(GPUS) or f"{PODS}{what.removeprefix(GPUS)}" not in counts:
            texts.append(f"{count} {what if count != 1 else singular(what)}{f' ({gpu_text(with_gpus)})' if with_gpus else ''}")
    return ", ".join(texts)


def gpu_text(count: int) -> str:
    """`1 GPU`, `8 GPUs`."""
    return counted(count, "GPU")


def singular(what: str) -> str:
    """`pods restarted` as `pod restarted`."""
    noun, _, rest = what.partition(" ")
    return f"{noun.removesuffix('s')} {rest}"


def operations_text(operations: Iterable[Operation]) -> str:
    """The number of operations by verb, without statuses: `14 to create, 4 to release`."""
    return totals(Counter[Verb](operation.verb for operation in operations), TO_DO)


def left_lines(forecast: Forecast, root: RootReport) -> Iterator[Line]:
    """What is left of a root that gets stuck, unless its report names it already, and what has to be done about it."""
    plan = forecast.plans.get(root.root)
    if forecast.end_of(root.root) is not End.STUCK or plan is None:
        return
    reported = set(map(_left_text, (*root.later, *root.pending)))
    left = [text for text in dict.fromkeys(map(_left_text, (*plan.later, *plan.pending))) if text not in reported]
    for text in left[:LEFT]:
        yield Line(f"  left     {text}", "blocked")
    if len(left) > LEFT:
        yield Line(f"           … {len(left) - LEFT} more objects are left", "faint")
    if text := general_advice((*plan.deferred, *plan.pending), forecast, root.root):
        yield Line(f"  do       {printable(text)}", "blocked")


def _left_text(wait: Wait) -> str:
    """What is left, and why; the same for pods whose names are not known yet."""
    code = f"{wait.reason}: " if wait.reason else ""
    return f"{wait.id.kind}/{clipped(wait.id.name, NAME)}: {code}{clipped(wait.why, REASON)}"


def conclusion(forecast: Forecast) -> Iterator[Line]:
    """What the forecast assumes, and how long it takes, if anything follows the first pass or is done to pods; and which may not fit."""
    following = (operation for each in forecast.passes if each.after for listed in each.operations.values() for operation in listed)
    has_more = any(operation.verb in DISTINCTIVE for operation in following)
    if has_more:
        yield from duration_lines(forecast)
    if has_more or (forecast.effects and any(map(_is_write, forecast.operations()))):
        yield from assumption_lines(forecast)
    yield from room_lines(forecast)


def total_text(forecast: Forecast, *, always_effects: bool = False) -> str:
    """The operations of all passes and, of several roots, what they mean together: `4 to release, 14 to delete; 3 pods removed`.

    Empty if nothing is written, and nothing goes. `always_effects`: also of a single one.
    """
    operations = operations_text(forecast.operations())
    collected = f"{forecast.collected} deleted by Kubernetes" if forecast.collected else ""
    if not (operations or collected):
        return ""
    at_least = "" if forecast.is_finished and not forecast.repeating else "at least "
    effects = sum((Counter(each.counts) for each in forecast.effects.values()), Counter[str]())
    roots = {root for each in forecast.passes for root in each.operations}
    counts = ", ".join(filter(None, (operations, collected)))
    return "; ".join(filter(None, (f"{at_least}{counts}", counts_text(effects) if always_effects or len(roots) > 1 else "")))


def duration_lines(forecast: Forecast) -> Iterator[Line]:
    """How long after the first pass the last one begins, if that is long, and what a sync does about it."""
    last = max((each.after for each in forecast.passes if any(map(_is_write, each.all_operations()))), default=timedelta())
    if last > LONG:
        yield Line(f"The last pass begins {duration_text(last)} after the first, or later: {REST}.", "faint")


def duration_text(duration: timedelta) -> str:
    """A duration, to the second: `4h0m0s`."""
    return spell(timedelta(seconds=round(duration.total_seconds())))


def _is_write(operation: Operation) -> bool:
    return not isinstance(operation, WriteStatus)


def assumption_lines(forecast: Forecast) -> Iterator[Line]:
    """What the forecast assumes about the cluster, in one line; none if it assumes nothing."""
    if forecast.assumptions:
        yield Line(f"This assumes that {'; '.join(sorted(forecast.assumptions))}.", "faint")


def room_lines(forecast: Forecast) -> Iterator[Line]:
    """Which pods may have no room on the nodes, and why that is not known."""
    for doubt in forecast.doubts[:DOUBTS]:
        yield Line(f"May not fit: {clipped(doubt, SENTENCE)}.", "blocked")
    if len(forecast.doubts) > DOUBTS:
        yield Line(f"           … {len(forecast.doubts) - DOUBTS} more may not fit", "faint")
    if forecast.unchecked:
        yield Line(f"Room on the nodes is not checked: {clipped(forecast.unchecked, SENTENCE)}.", "faint")
