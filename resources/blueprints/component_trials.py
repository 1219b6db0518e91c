"""ComponentTrials: whether the API server accepts the Deployments and LeaderWorkerSets that graphs get, and their pods.

Controllers find out that their pods are refused, after the objects are created: no call of the engine fails.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.answer import TrialOutcome, Trials
from engine.canonical import digest
from engine.ids import ResourceId
from engine.observed import Observed
from engine.operation import Create, Operation, Trial
from engine.plan import Wait
from engine.reason import Reason
from resources.blueprints.replacement_trials import is_component, trials_of_templates
from resources.blueprints.update_trials import UNTRIED
from resources.dynamo.objects.group_scheduler import GROUP_PATHS, LOSES_GROUPS
from resources.dynamo.objects.pod_template import COMPONENT
from resources.lifecycle.update_gate import notes_of

REFUSED: Final = "the API server refuses {}: {}"


class NewComponent(Struct, frozen=True):
    """A component to be created, or the first of several replicas that are alike, and its trials."""

    id: ResourceId
    service: str
    object: Trial
    pods: tuple[Trial, ...]
    """One for each of its templates that no running pod is replaced with: those were tried for the plan."""


def new_components(
    roots: Iterable[Observed], operations: Iterable[tuple[ResourceId, Operation]]
) -> Mapping[ResourceId, Sequence[NewComponent]]:
    """Root -> the components that these operations, each with its root, create."""
    known = {observed.root.id: observed.trials.verdicts for observed in roots}
    components: dict[ResourceId, dict[tuple[str, str], NewComponent]] = {}
    for root, create in operations:
        if isinstance(create, Create) and is_component(create.id):
            service = str(create.manifest["metadata"]["labels"].get(COMPONENT, create.id.name))
            of_root = components.setdefault(root, {})
            if (create.id.kind, service) not in of_root:
                of_root[create.id.kind, service] = _component(create, service, known.get(root, {}))
    return {root: tuple(of_root.values()) for root, of_root in components.items()}


def remarks_on(components: Sequence[NewComponent], known: Trials) -> Iterator[Wait | str]:
    """What the API server refuses of these components, or would not store, then what it did not say."""
    for component in components:
        tried = [(component.object.about, component.object), *((f"pods of {trial.about}", trial) for trial in component.pods)]
        words: dict[str, str] = {}
        for about, trial in tried:
            verdict = known.verdicts.get(trial.key)
            if verdict is not None and verdict.outcome is TrialOutcome.REFUSED:
                words.setdefault(verdict.why, REFUSED.format(about, verdict.why))
        if words:
            yield Wait(component.id, "; ".join(words.values()), blocked=True, reason=Reason.TEMPLATE_REFUSED)
        verdict = known.verdicts.get(component.object.key)
        if verdict is not None and not verdict.dropped.isdisjoint(GROUP_PATHS):
            yield LOSES_GROUPS.format(service=component.service)
    pods = [trial for component in components for trial in component.pods]
    yield from notes_of(pods, known)
    if known.are_made and (untried := ", ".join(trial.about for trial in pods if trial.key not in known.verdicts)):
        yield UNTRIED.format(untried)


def _component(create: Create, service: str, known: Mapping[str, object]) -> NewComponent:
    # A dry run has no owner: that may be created with it, and no rule about components asks for one.
    alone = replace(create, owners=(), after=frozenset())
    whole = Trial(digest(create.manifest), f"{create.id.kind} {create.id.name}", alone)
    pods = trials_of_templates(create.id, create.manifest)
    return NewComponent(create.id, service, whole, tuple(trial for trial in pods if trial.key not in known))
