"""Forecasting: what follows the first pass, for the report of a preview."""

from dataclasses import replace

from engine.forecast.forecast import Forecast
from engine.forecast.simulation import forecast
from engine.guard import Limits
from engine.intent import Intent
from engine.observed import World
from engine.plan import Plan
from engine.runtime.passes import Pass
from resources.forecast.cluster import ModelledCluster
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS


def forecast_of(result: Pass, intent: Intent, configuration: Configuration, limits: Limits) -> Forecast | None:
    """The forecast that begins with this pass; None if nothing is left to do or to wait for.

    None also if the pass as a whole is refused, or if something could not be listed completely: then most of what follows is not known.
    """
    if not any(map(is_moving, result.planned.plans)) or result.planned.objections or result.world.incomplete:
        return None
    world = concerned(result)
    return forecast(BLUEPRINTS, world, intent, result.now, configuration, ModelledCluster(configuration.fabrics), limits=limits)


def is_moving(plan: Plan) -> bool:
    """Whether a plan does something now or may do something later."""
    return bool(plan.operations or plan.deferred or plan.pending or plan.wake_at)


def concerned(result: Pass) -> World:
    """The world with the roots that may do something, and those that may depend on them: workloads of one namespace share domains."""
    world, namespaces = result.world, {plan.root.namespace for plan in result.planned.plans if is_moving(plan)}
    if "" in namespaces:
        return world
    return replace(world, roots=tuple(observed for observed in world.roots if observed.root.id.namespace in namespaces))
