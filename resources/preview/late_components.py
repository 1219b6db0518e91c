"""Late components: Deployments that have missed their deadline, and whether their pods still start or need manual action.

Of others that are not ready, which pod cannot run.
"""

from collections.abc import Iterable, Iterator

from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import Operation, Patch, WriteStatus
from engine.plan import Wait
from resources.base.fields import mapping
from resources.cluster_model.component_pods import of_newest_template
from resources.cluster_model.pods import is_late, is_refused
from resources.model.pod_facts import PodFacts, facts_of
from resources.preview.facts import Facts, FirstPass
from resources.preview.stuck_roots import UnreadyComponent, unready_components


def late_components(first: FirstPass) -> Iterator[UnreadyComponent]:
    """Those that the pass leaves as they are: a change is a new beginning."""
    return (each for each in _unchanged(first) if is_late(each.live))


def hindered_remarks(first: FirstPass) -> Iterator[tuple[ResourceId, str]]:
    """Which pod of the newest template cannot run, of components that the pass leaves as they are or only scales, and that are not late."""
    for each in _unchanged(first, may_scale=True) if first.component_pods else ():
        hindered = (pod for pod in map(facts_of, first.component_pods.get(each.live.id, ())) if pod.kept_from_starting)
        if not is_late(each.live) and (pod := next(hindered, None)) is not None:
            yield each.root, f"{each.live.id.kind} {each.live.id.name}: {_trouble(pod)}"


def _unchanged(first: FirstPass, *, may_scale: bool = False) -> Iterator[UnreadyComponent]:
    """Those that the pass leaves as they are; with `may_scale` also those of which it changes the number of replicas alone."""
    operations = (each for plan in first.planned.plans for each in plan.operations if not isinstance(each, WriteStatus))
    written = {each.id for each in operations if not (may_scale and _only_scales(each))}
    roots = [plan.root for plan in first.planned.plans]
    return (each for each in unready_components(first, roots) if each.live.id not in written)


def _only_scales(operation: Operation) -> bool:
    """Whether an operation changes the number of replicas of an object alone."""
    return isinstance(operation, Patch) and operation.patch.keys() == {"spec"} and mapping(operation.patch["spec"]).keys() == {"replicas"}


def late_remarks(first: FirstPass, facts: Facts) -> Iterator[tuple[ResourceId, str | Wait]]:
    """What is to be said of each of them, as far as their pods were looked at."""
    pods = facts.component_pods
    for late in late_components(first) if pods is not None else ():
        yield late.root, _remark(late.live, pods.get(late.live.id) if pods else None, assume_nodes=facts.assumes_nodes)


def _remark(component: Live, pods: Iterable[Live] | None, *, assume_nodes: bool) -> str | Wait:
    """What the pods of the newest template show; None: they could not be read."""
    subject, seconds = f"{component.id.kind} {component.id.name}", component.body["spec"].get("progressDeadlineSeconds", 600)
    late = f"no pod has become ready for {seconds} s"
    if pods is None:
        return f"{subject} is late: {late}; its pods could not be read"
    unready = [pod for pod in map(facts_of, of_newest_template(pods)) if not pod.ready]
    for pod in unready:
        if (pod.failing or pod.reason) and not (assume_nodes and is_refused(pod)):
            return Wait(component.id, f"{late}: {_trouble(pod)}", blocked=True)
    return f"{subject} is late, still starting: {late}"


def _trouble(pod: PodFacts) -> str:
    return f"pod {pod.name}: {pod.reason or 'a container has ended with an error'}"
