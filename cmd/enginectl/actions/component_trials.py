"""Component trials: asks the API server whether it accepts the new Deployments and LeaderWorkerSets of graphs, and their pods."""

from engine.answer import TrialOutcome
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.plan import Wait
from engine.resource import Body
from engine.runtime.passes import Engine
from engine.runtime.verdicts import Verdicts
from resources.blueprints.component_trials import new_components, remarks_on
from resources.ports.configuration import Configuration
from resources.preview.facts import FirstPass, TrialResult


async def try_components(engine: Engine[Configuration], first: FirstPass, forecast: Forecast | None) -> TrialResult:
    """The server's answers about the components that this pass and its forecast create or scale out. Nothing is stored.

    Without a server it is empty.
    """
    following = [each.operations for each in forecast.passes] if forecast is not None else []
    passes = [{plan.root: plan.operations for plan in first.planned.plans}, *following]
    operations = ((root, each) for by_root in passes for root, listed in by_root.items() for each in listed)
    created, verdicts = new_components(first.world.roots, operations), Verdicts()
    verdicts.prepare(engine.provider)
    trials = {root: [trial for each in listed for trial in each.trials] for root, listed in created.items()}
    await verdicts.ask_about(engine.provider, engine.clock, trials)
    refused: dict[ResourceId, tuple[Wait, ...]] = {}
    notes: dict[ResourceId, tuple[str, ...]] = {}
    tried: list[tuple[ResourceId, Body, TrialOutcome]] = []
    for root, listed in created.items():
        known = verdicts.of(root)
        remarks = tuple(remarks_on(listed, known))
        tried += ((root, trial.create.manifest, known.outcome_of(trial.key)) for component in listed for trial in component.pods)
        refused[root] = tuple(each for each in remarks if isinstance(each, Wait))
        notes[root] = tuple(each for each in remarks if isinstance(each, str))
    answers = [verdict for root in created for verdict in verdicts.of(root).verdicts.values()]
    return TrialResult(refused, notes, any(answer.outcome is TrialOutcome.NOT_PERMITTED for answer in answers), tuple(tried))
