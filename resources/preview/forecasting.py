"""Forecasting: what follows the first pass, which roots never settle, and which facts about the cluster matter."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from math import inf
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.forecast.cluster_model import Assumption
from engine.forecast.forecast import Forecast, ForecastPass
from engine.forecast.simulation import existing, forecast
from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import Create, Operation, Patch, WriteStatus
from engine.plan import Plan, changed
from engine.resource import Body
from engine.tick import executable
from engine.verb import Verb
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.cluster_model.cluster import ModelledCluster, RoomModel
from resources.cluster_model.pods import PodSelector, is_component, is_refused_just_now
from resources.cluster_model.references import MISSING
from resources.domains.requests import requested_by_sets, scaled_groups
from resources.model.gang_scheduling import whole_gang_schedulers
from resources.model.pod_facts import claims_of, facts_of
from resources.ports.fabric import Fabric
from resources.preview.facts import FirstPass
from resources.registry import BLUEPRINTS

WORK: Final = 180
"""The work, as `MAX_WORK` counts it, that an update of a sample needs for each object. If that is too much, there is no use in a sample."""
SAMPLED: Final = 32
"""With fewer objects than these no set has so many replicas that a sample is worthwhile: what makes samples is not imported."""


def forecast_of(first: FirstPass, *, whole: bool = False) -> Forecast | None:
    """The forecast that begins with this pass, with room for every pod; None if nothing is left to do or to wait for.

    None also if the pass as a whole is refused, or if something could not be listed completely: then most of what follows is not known.
    `whole`: every object is simulated, not only a sample of large sets.
    """
    if not can_be_forecast(first):
        return None
    concerned = restricted(first)
    extended_sample = None if whole else from_sample(concerned)
    return extended_sample or simulated(concerned)


def can_be_forecast(first: FirstPass) -> bool:
    """Whether anything follows the pass, and what follows it is known."""
    return any(map(is_moving, first.planned.plans)) and not first.planned.objections and not first.world.incomplete


def simulated(first: FirstPass, model: ModelledCluster | None = None) -> Forecast:
    """The forecast for which every object of the world is simulated, with this model of a cluster; None: with a new one."""
    model = model or model_for(first)
    bounds: dict[str, float] = {"max_work": inf, "max_passes": first.passes} if first.passes is not None else {"max_work": first.work}
    made = forecast(BLUEPRINTS, first.world, first.intent, first.now, first.configuration, model, limits=first.limits, **bounds)
    return replace(made, shortages=model.unstarted()) if made.is_finished else made


def model_for(first: FirstPass, room: RoomModel | None = None) -> ModelledCluster:
    """A cluster with these nodes, whose objects are all known but for those of a record and of kinds that could not be listed."""
    fabrics, gang_schedulers = first.configuration.fabrics, whole_gang_schedulers(first.configuration)
    absent = {**first.absent, **dict.fromkeys(_missing_mounts(first), MISSING)}
    known = first.listed, gang_schedulers, first.component_pods, first.device_classes, absent, first.intent.beside
    return ModelledCluster(fabrics, room, *known)


def _missing_mounts(first: FirstPass) -> Iterator[ResourceId]:
    """The PersistentVolumeClaims that graphs name and that do not exist; a record may lack some that do."""
    looked_up = () if first.is_record else (item for observed in first.world.roots for item in observed.looked_up.items())
    return (id for id, live in looked_up if live is None and id.kind == kinds.PVC.name)


def from_sample(first: FirstPass) -> Forecast | None:
    """The forecast that is extended from a sample of large sets; None if no set is large, or if the sample does not stand for all."""
    world = first.world
    if objects_of(first) < SAMPLED:
        return None
    from resources.cluster_model.extrapolation import extended
    from resources.cluster_model.sample import sample_of

    sample = sample_of(world, first.intent, first.planned.plans)
    if sample is None or (first.passes is None and sample.count() * WORK > first.work):
        return None
    model = model_for(first)
    of_sample = simulated(replace(first, world=sample.world, intent=sample.intent), model)
    if of_sample.shortages:
        return None
    whole = extended(of_sample, sample, model.effects_of_replica)
    chosen = {plan.root: plan.operations for plan in executable(world, first.planned) if plan.root in sample.sets and plan.operations}
    return with_first_pass(whole, sample.sets.keys(), chosen) if whole is not None else None


def objects_of(first: FirstPass) -> int:
    """How many objects a forecast begins with, and how many operations it then executes."""
    return sum(observed.count() for observed in first.world.roots) + sum(len(plan.operations) for plan in first.planned.plans)


def with_first_pass(
    forecast: Forecast, roots: Collection[ResourceId], chosen: Mapping[ResourceId, tuple[Operation, ...]]
) -> Forecast | None:
    """The forecast, for these roots with the operations that were chosen for its first pass; None if it has others."""
    first = next((each.operations for each in forecast.passes if not each.after), {})
    if any(_counted(first.get(root, ())) != _counted(chosen.get(root, ())) for root in roots):
        return None
    others = {root: operations for root, operations in first.items() if root not in roots}
    following = tuple(each for each in forecast.passes if each.after)
    operations = {**others, **chosen}
    return replace(forecast, passes=(ForecastPass(timedelta(), operations), *following) if operations else following)


def _counted(operations: Sequence[Operation]) -> Counter[tuple[Verb, ResourceId]]:
    return Counter((operation.verb, operation.id) for operation in operations if not isinstance(operation, WriteStatus))


def is_moving(plan: Plan) -> bool:
    """Whether a plan does something now or may do something later."""
    return bool(plan.operations or plan.deferred or plan.pending or plan.wake_at)


def restricted(first: FirstPass) -> FirstPass:
    """The pass with the roots that may do something, and those that may depend on them: workloads of one namespace share domains."""
    world, namespaces = first.world, {plan.root.namespace for plan in first.planned.plans if is_moving(plan)}
    if "" in namespaces:
        return first
    roots = tuple(observed for observed in world.roots if observed.root.id.namespace in namespaces)
    return replace(first, world=replace(world, roots=roots))


class RoomNeeds(Struct, frozen=True, eq=False):
    """What is read of nodes and pods."""

    specs: tuple[Mapping[str, Any], ...]
    """The specs of new pods: they may select others by labels."""
    known: frozenset[str]
    """The uids of the pods that the forecast begins with: they are counted there."""
    vacated: frozenset[PodSelector] = frozenset()
    """The pods of Deployments and LeaderWorkerSets that do not stay where they are."""

    @property
    def leaves(self) -> Callable[[str, Mapping[str, Any], bool], bool] | None:
        """Whether the pod of this namespace and with these labels does not stay where it is; None: all stay.

        To be asked once for each pod: of a component that becomes smaller only so many leave. Then whether it is being deleted already.
        """
        if not self.vacated:
            return None
        left = {each: each.most for each in self.vacated}

        def leaves(namespace: str, labels: Mapping[str, Any], is_ending: bool) -> bool:
            for each, count in left.items():
                if count == 0 or not each.selects(namespace, labels):
                    continue
                if count is not None and not is_ending:
                    left[each] = count - 1
                return True
            return False

        return leaves

    @property
    def replaced(self) -> Callable[[str, Mapping[str, Any]], ResourceId | None] | None:
        """Which component deletes the pod of this namespace and with these labels later, once others are ready; None: none deletes any."""
        replacing = [each for each in self.vacated if each.component is not None]
        if not replacing:
            return None
        return lambda namespace, labels: next((each.component for each in replacing if each.selects(namespace, labels)), None)


class Needs(Struct, frozen=True, eq=False):
    """What is read of the cluster for a preview, besides what the pass has observed."""

    quotas: tuple[str, ...] = ()
    """The namespaces whose ResourceQuotas may matter."""
    fabrics: tuple[Fabric, ...] = ()
    """The fabrics whose nodes may matter."""
    room: RoomNeeds | None = None
    """None: neither all nodes nor all pods are read."""

    @property
    def has_islands(self) -> bool:
        """Whether it matters which nodes are connected with one another."""
        return any(fabric.islands is not None for fabric in self.fabrics)


def may_have_claims(first: FirstPass) -> bool:
    """Whether pods may ask for devices: there are claims or templates of some, or a set makes some or wants a domain of a fabric."""
    references = first.world.references
    if any(references.of(kind.name) for kind in (kinds.RESOURCE_CLAIM_TEMPLATE, kinds.RESOURCE_CLAIM)):
        return True
    sets, groups = first.sets, scaled_groups(first.world.roots)
    if any(mapping(mapping(body.get("spec")).get("template")).get("resourceClaimTemplates") for _, body in sets):
        return True
    return any(requested_by_sets(sets, fabric, groups) for fabric in first.configuration.fabrics)


def named_volume_claims(first: FirstPass) -> Iterator[ResourceId]:
    """The PersistentVolumeClaims that the templates of the sets name of which something may follow, some more than once."""
    for id, body in restricted(first).sets:
        for clique in mappings(mapping(mapping(body.get("spec")).get("template")).get("cliques")):
            named = claims_of(id.namespace, mapping(clique.get("spec")).get("podSpec"))
            yield from (claim for claim in named if claim.kind == kinds.PVC.name)


def needs(first: FirstPass, forecast: Forecast | None = None) -> Needs:
    """The facts that `shown` takes into account for this pass and forecast."""
    sets, groups = first.sets, scaled_groups(first.world.roots)
    fabrics = tuple(fabric for fabric in first.configuration.fabrics if requested_by_sets(sets, fabric, groups))
    if forecast is None:
        return Needs(fabrics=fabrics)
    return Needs(changing_namespaces(first), fabrics, room_needs(first, forecast) if needs_room(first, forecast) else None)


def changing_namespaces(first: FirstPass) -> tuple[str, ...]:
    """The namespaces in which objects may be created from this pass on, sorted: those of roots that are changed and not removed."""
    leaving = {observed.root.id for observed in first.world.roots if observed.root.deleting_since is not None}
    leaving |= first.intent.removals.keys()
    plans = (plan for plan in first.planned.plans if plan.root not in leaving and (plan.deferred or changed(plan)))
    return tuple(sorted({plan.root.namespace for plan in plans} - {""}))


def creates_components(first: FirstPass, forecast: Forecast | None) -> bool:
    """Whether Deployments or LeaderWorkerSets are created or changed in this pass or in one that follows."""
    following = forecast.operations() if forecast is not None else ()
    operations = (*(operation for plan in first.planned.plans for operation in plan.operations), *following)
    return any(isinstance(operation, Create | Patch) and is_component(operation.id) for operation in operations)


def needs_room(first: FirstPass, forecast: Forecast) -> bool:
    """Whether it depends on the room on nodes: it creates pods, or others could not be scheduled and it deletes some, or that is new."""
    world, after = restricted(first).world, forecast.objects or {}
    if any(_more_of_components(existing(world), after)):
        return True
    verbs = {operation.verb for operation in forecast.operations() if operation.id.kind == kinds.POD.name}
    if Verb.CREATE in verbs or Assumption.FAILURES_STAY not in forecast.assumptions:
        return Verb.CREATE in verbs
    if Verb.DELETE in verbs or _vacated(list(existing(world)), after):
        return True
    pods = (live for live in after.values() if live.id.kind == kinds.POD.name)
    return any(is_refused_just_now(facts_of(live), forecast.began) for live in pods)


def room_needs(first: FirstPass, forecast: Forecast) -> RoomNeeds:
    """The facts about nodes and pods that this forecast depends on."""
    new = (each for each in forecast.operations() if isinstance(each, Create) and each.id.kind == kinds.POD.name)
    lives, after = list(existing(restricted(first).world)), forecast.objects or {}
    known = frozenset(live.uid for live in lives if live.id.kind == kinds.POD.name)
    specs = tuple(mapping(each.get("spec")) for each in (*(each.manifest for each in new), *_more_of_components(lives, after)))
    return RoomNeeds(specs, known, _vacated(lives, after))


def _more_of_components(before: Iterable[Live], after: Mapping[ResourceId, Live]) -> Iterator[Body]:
    """The pods of Deployments and LeaderWorkerSets that need room which they have not had."""
    if any(map(is_component, after)):
        from resources.cluster_model.component_pods import needs_more  # Most previews have no components.

        yield from (pod.body for _, pods in needs_more(before, after) for pod in pods)


def _vacated(before: Sequence[Live], after: Mapping[ResourceId, Live]) -> frozenset[PodSelector]:
    """The pods of Deployments and LeaderWorkerSets that do not stay where they are."""
    if not any(is_component(each.id) for each in before):
        return frozenset()
    from resources.cluster_model.component_pods import vacated

    return vacated(before, after)
