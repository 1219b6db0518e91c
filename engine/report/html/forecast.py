"""The forecast of one root as HTML: the stages that follow, the fewest ready members, the totals."""

from collections.abc import Iterator

from engine.forecast.forecast import End, Forecast
from engine.report.forecast_text import LEFT, LEVELS, STAGES, conclusion, has_effect, stage_text, stages_of, total_text, totals_text
from engine.report.html.decisions import levels_alike
from engine.report.html.elements import Markup, code, element, table
from engine.report.meaning import general_advice
from engine.report.model import RootReport


def forecast_lead(forecast: Forecast | None, root: RootReport) -> Iterator[Markup]:
    """What happens to a root in all passes; what is left at the end, and what has to be done about it. Nothing if nothing happens."""
    if forecast is None or not has_effect(forecast, root):
        return
    yield element("p", element("strong", "In all: "), totals_text(forecast, root.root), ".")
    plan = forecast.plans.get(root.root)
    if forecast.end_of(root.root) is End.STUCK and plan is not None:
        for wait in (*plan.blocked, *plan.later, *plan.pending)[:LEFT]:
            yield element("p", element("strong", "left: "), code(f"{wait.id.kind}/{wait.id.name}"), f": {wait.why}", class_="alert")
        if text := general_advice((*plan.deferred, *plan.pending), forecast, root.root):
            yield element("p", element("strong", "do: "), text, class_="alert")


def forecast_levels(forecast: Forecast | None, root: RootReport) -> Iterator[Markup]:
    """The members that lose readiness on the way, the worst first, alike ones in one row."""
    effects = forecast.effects.get(root.root) if forecast is not None else None
    if effects is None or not effects.levels:
        return
    groups = levels_alike(effects.levels)
    rows = [
        (
            code(name),
            f"{level.lowest} of {level.before} {level.unit}",
            level.minimum,
            element("span", "below its minimum", class_="bad") if level.falls_below else "",
        )
        for level, name in groups[:LEVELS]
    ]
    yield table("The fewest ready members on the way", ("Object", "Lowest", "minAvailable", ""), rows)
    if len(groups) > LEVELS:
        yield element("p", f"{len(groups) - LEVELS} more like these have fewer ready members for a time.", class_="faint")


def forecast_stages(forecast: Forecast | None, root: RootReport) -> Iterator[Markup]:
    """What follows the operations of the next pass; nothing if nothing does."""
    stages = stages_of(forecast, root.root, (step.operation for step in root.steps)) if forecast is not None else ()
    if stages:
        yield element("h3", "What follows")
        yield element("ol", [element("li", stage_text(stage)) for stage in stages[:STAGES]])
    if len(stages) > STAGES:
        yield element("p", f"{len(stages) - STAGES} more stages; -o json has them all.", class_="faint")


def forecast_total(forecast: Forecast | None) -> Iterator[Markup]:
    """The operations of all passes; nothing if none are forecast."""
    if forecast is not None and (total := total_text(forecast)):
        yield element("p", element("strong", "In all: "), total, ".")


def assumptions(forecast: Forecast | None) -> Iterator[Markup]:
    """What the forecast assumes, and what was not checked."""
    if forecast is not None:
        yield from (element("p", line.text, class_=line.tone if line.tone == "faint" else None) for line in conclusion(forecast))
