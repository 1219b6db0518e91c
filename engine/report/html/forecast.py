"""The forecast of one root as HTML: the stages that follow, the fewest ready members, the totals."""

from collections.abc import Iterator

from engine.forecast.forecast import End, Forecast
from engine.report.forecast_text import LEFT, LEVELS, STAGES, conclusion, stage_text, stages_of, total_text, totals_text
from engine.report.html.elements import Markup, code, element, table
from engine.report.meaning import general_advice
from engine.report.model import RootReport


def forecast_section(forecast: Forecast | None, root: RootReport) -> Iterator[Markup]:
    """What follows the operations of the next pass; nothing if nothing does."""
    if forecast is None:
        return
    effects = forecast.effects.get(root.root)
    stages = stages_of(forecast, root.root, (step.operation for step in root.steps))
    if not stages and effects is None:
        return
    yield element("h3", "What follows")
    if stages:
        yield element("ol", [element("li", stage_text(stage)) for stage in stages[:STAGES]])
    if len(stages) > STAGES:
        yield element("p", f"{len(stages) - STAGES} more stages; -o json has them all.", class_="faint")
    if effects and effects.levels:
        rows = [
            (
                code(f"{level.id.kind}/{level.id.name}"),
                f"{level.lowest} of {level.before} {level.unit}",
                level.minimum,
                element("span", "below its minimum", class_="bad") if level.falls_below else "",
            )
            for level in effects.levels[:LEVELS]
        ]
        yield table("The fewest ready members on the way", ("Object", "Lowest", "minAvailable", ""), rows)
        if len(effects.levels) > LEVELS:
            yield element("p", f"{len(effects.levels) - LEVELS} more objects have fewer ready members for a time.", class_="faint")
    yield element("p", element("strong", "In all: "), totals_text(forecast, root.root), ".")
    plan = forecast.plans.get(root.root)
    if forecast.end_of(root.root) is End.STUCK and plan is not None:
        for wait in (*plan.blocked, *plan.later, *plan.pending)[:LEFT]:
            yield element("p", element("strong", "left: "), code(f"{wait.id.kind}/{wait.id.name}"), f": {wait.why}", class_="alert")
        if text := general_advice((*plan.deferred, *plan.pending), forecast, root.root):
            yield element("p", element("strong", "do: "), text, class_="alert")


def forecast_conclusion(forecast: Forecast | None) -> Iterator[Markup]:
    """The totals of all passes, and what the forecast assumes."""
    if forecast is not None:
        if total := total_text(forecast):
            yield element("p", element("strong", "In all: "), total, ".")
    yield from assumptions(forecast)


def assumptions(forecast: Forecast | None) -> Iterator[Markup]:
    """What the forecast assumes, and what was not checked."""
    if forecast is not None:
        yield from (element("p", line.text, class_=line.tone if line.tone == "faint" else None) for line in conclusion(forecast))
