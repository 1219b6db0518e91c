"""ComponentTrials: whether the API server accepts the Deployments and LeaderWorkerSets that graphs get, and the new pods of all.

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
from engine.operation import Create, Operation, Patch, Trial
from engine.paths import merge_patch
from engine.plan import Wait
from engine.reason import Reason
from engine.resource import Body
from resources.base.fields import count, mapping
from resources.blueprints.replacement_trials import is_component, trials_of_templates
from resources.blueprints.update_trials import UNTRIED
from resources.dynamo.objects.group_scheduler import GROUP_PATHS, LOSES_GROUPS
from resources.dynamo.objects.pod_template import COMPONENT
from resources.lifecycle.update_gate import notes_of

REFUSED: Final = "the API server refuses {}: {}"


class NewComponent(Struct, frozen=True):
    """A component that gets pods which replace none, or the first of several replicas that are alike, and its trials."""

    id: ResourceId
    service: str
    object: Trial | None
    """None: it exists."""
    pods: tuple[Trial, ...]
    """One for each of its templates that no running pod is replaced with: those were tried for the plan."""

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All of them."""
        return (*((self.object,) if self.object is not None else ()), *self.pods)


def new_components(
    roots: Iterable[Observed], operations: Iterable[tuple[ResourceId, Operation]]
) -> Mapping[ResourceId, Sequence[NewComponent]]:
    """Root -> the components that these operations, each with its root, create, scale out, or change while they have no pods."""
    by_id = {observed.root.id: observed for observed in roots}
    components: dict[ResourceId, dict[tuple[str, str], NewComponent]] = {}
    for root, each in operations:
        if not is_component(each.id) or not isinstance(each, Create | Patch):
            continue
        body = each.manifest if isinstance(each, Create) else _with_new_pods(by_id.get(root), each)
        if body is None:
            continue
        service = str(mapping(body["metadata"].get("labels")).get(COMPONENT, each.id.name))
        of_root = components.setdefault(root, {})
        if (each.id.kind, service) not in of_root:
            known = by_id[root].trials.verdicts if root in by_id else {}
            pods = tuple(trial for trial in trials_of_templates(each.id, body) if trial.key not in known)
            of_root[each.id.kind, service] = NewComponent(each.id, service, _whole(each) if isinstance(each, Create) else None, pods)
    return {root: tuple(of_root.values()) for root, of_root in components.items()}


def remarks_on(components: Sequence[NewComponent], known: Trials) -> Iterator[Wait | str]:
    """What the API server refuses of these components, or would not store, then what it did not say."""
    for component in components:
        tried = [(f"pods of {trial.about}" if trial is not component.object else trial.about, trial) for trial in component.trials]
        words: dict[str, str] = {}
        for about, trial in tried:
            verdict = known.verdicts.get(trial.key)
            if verdict is not None and verdict.outcome is TrialOutcome.REFUSED:
                words.setdefault(verdict.why, REFUSED.format(about, verdict.why))
        if words:
            yield Wait(component.id, "; ".join(words.values()), blocked=True, reason=Reason.TEMPLATE_REFUSED)
        verdict = known.verdicts.get(component.object.key) if component.object is not None else None
        if verdict is not None and not verdict.dropped.isdisjoint(GROUP_PATHS):
            yield LOSES_GROUPS.format(service=component.service)
    pods = [trial for component in components for trial in component.pods]
    yield from notes_of(pods, known)
    if known.are_made and (untried := ", ".join(trial.about for trial in pods if trial.key not in known.verdicts)):
        yield UNTRIED.format(untried)


def _with_new_pods(observed: Observed | None, patch: Patch) -> Body | None:
    """The component, as it is after the patch, if that gives it pods that replace none: more of the same templates, or its first."""
    live = observed.find(patch.id) if observed is not None else None
    if live is None or "spec" not in patch.patch:
        return None
    after, more = merge_patch(live.body, patch.patch), mapping(patch.patch["spec"]).keys() == {"replicas"}
    wanted = count(after["spec"].get("replicas", 1))
    had = count(live.body["spec"].get("replicas", 1)) if more else count(mapping(live.body.get("status")).get("replicas"))
    return after if wanted > had and (more or not had) else None


def _whole(create: Create) -> Trial:
    # A dry run has no owner: that may be created with it, and no rule about components asks for one.
    return Trial(digest(create.manifest), f"{create.id.kind} {create.id.name}", replace(create, owners=(), after=frozenset()))
