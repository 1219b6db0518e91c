"""The laws of plan policies: every field is always there, totals add up, and judging changes nothing else."""

from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from engine.forecast.simulation import forecast
from engine.guard import Limits
from engine.intent import NOTHING
from engine.memo import Memo
from engine.report.model import compose
from engine.tick import plan_all
from engine.verb import Verb
from providers.plan_policies.cel import CelExpressions
from resources.cluster_model.cluster import ModelledCluster
from resources.plan_policies.judge import judge
from resources.plan_policies.plan_data import PlanData, plan_data
from resources.registry import BLUEPRINTS
from resources.schema.plan_policy import API_VERSION, KIND, plan_policy
from tests.laws.test_forecast_laws import ROOT, Body, histories
from tests.laws.toy import Toy
from tests.resources.plan_policies.data import misfits

POLICY = plan_policy(
    {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "totals"},
        "spec": {
            "validations": [
                {
                    "name": "add-up",
                    "message": "they do not add up",
                    "expression": "plan.operations.filter(o, o.verb == 'delete').size() == plan.summary.deletes"
                    " && plan.sets.all(s, s.operations.all(o, o in plan.operations))",
                },
                {
                    "name": "lowest",
                    "scope": "Set",
                    "message": "they are not the lowest",
                    "expression": "(set.cliques + set.groups).all(m, m.lowest <= m.before && m.below == (m.lowest < m.minAvailable"
                    " && m.minAvailable <= m.before))",
                },
            ]
        },
    }
)


@given(history=histories())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_field_is_there_and_totals_add_up(history: list[Body]) -> None:
    toy = Toy()
    for number, manifest in enumerate(history):
        if number == 0:
            toy.put(manifest)
        else:
            toy.write(ROOT, {"spec": manifest["spec"], "metadata": {"generation": number + 1}})
        assert_law(toy)
        toy.settle(400)
    toy.delete(ROOT)
    assert_law(toy)


def assert_law(toy: Toy) -> None:
    """The data of the plan for this cluster is complete and agrees with the forecast, whatever judges it."""
    world = toy.world()
    plans = plan_all(BLUEPRINTS, world, toy.now, toy.configuration, Memo(), Limits()).plans
    following = forecast(BLUEPRINTS, world, NOTHING, toy.now, toy.configuration, ModelledCluster(toy.configuration.fabrics))
    report = replace(compose(plans, lambda root, child: ""), forecast=following)

    data = plan_data(report, world, toy.now)
    judgement = judge([POLICY], data, CelExpressions(), {})

    whole = data.plan_of(data.sets)
    counted = [operation for operation in following.operations() if operation.verb is not Verb.STATUS]
    assert misfits("Plan", whole) == []
    assert len(whole["operations"]) == len(counted)
    assert (judgement.violations, judgement.notes) == ((), ())
    assert same(data, plan_data(replace(report, judgement=judgement), world, toy.now))


def same(one: PlanData, other: PlanData) -> bool:
    """Whether two readings of a report are equal."""
    return [each.data for each in one.sets] == [each.data for each in other.sets]
