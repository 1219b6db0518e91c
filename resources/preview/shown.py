"""Shown: what a preview shows, made from the first pass, its forecast and the facts. Every command and page calls `shown`.

Which facts it takes into account is said by `needs`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.answer import TrialOutcome
from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.observed import Unlisted, World, unlisted_texts
from engine.operation import Create, Patch
from engine.plan import Objection, Plan, Wait
from engine.report.model import Report, compose
from engine.report.printable import printable
from engine.tick import Plans
from resources.admission.annotation_rules import domain_warnings, fabric_warnings, mistyped_key_warnings
from resources.admission.annotations import written_keys
from resources.base import kinds
from resources.domains.capacity import capacity_notes, island_notes
from resources.domains.requests import requested_by_sets, scaled_groups, sharing_notes
from resources.model.domain import specified_in
from resources.model.gang_scheduling import gang_remarks, on_cluster, placed_one_by_one, without_gangs
from resources.model.membership import specified_body
from resources.ports.configuration import Configuration
from resources.ports.scheduler import Scheduler
from resources.preview.facts import NO_FACTS, NO_ROOM, Facts, FirstPass
from resources.preview.forecasting import restricted
from resources.registry import BLUEPRINTS

LATER: Final = "after the last pass"
ASSUMED_SECRETS: Final = "you may not list Secrets: those that should exist are taken to exist"
MOST_SETS: Final = 3
"""How many sets or gangs a notice names; of others it has the number."""
NOT_TRIED: Final = (
    "you may not create pods: the API server was not asked whether it accepts pods of new templates; shown is what it refused before, by "
    "the conditions of the sets"
)

Remark = tuple[ResourceId, str | Wait]
"""A root, and a note about it or something that it waits for until a user or an administrator acts."""
Rule = Callable[[FirstPass, Forecast | None, Facts], Iterable[Remark]]
"""What one kind of fact means for the roots of a pass."""


class Shown(Struct, frozen=True, eq=False, dict=True):
    """What a preview shows."""

    planned: Plans
    """The plans of the first pass, with remarks; roots that admission rejects have their faults and no operations."""
    forecast: Forecast | None
    """What follows, at whose end the roots still wait for what they wait for now."""
    incomplete: Mapping[str, Unlisted]
    """Key of a kind -> why it could not be listed completely."""
    notices: tuple[str, ...] = ()
    """What is assumed, what is missing in the cluster or could not be read, and which gangs no scheduler places."""

    @cached_property
    def report(self) -> Report:
        """All of it but the notices, as a report."""
        planned, incomplete = self.planned, unlisted_texts(self.incomplete)
        report = compose(planned.plans, part_of, objections=planned.objections, incomplete=incomplete, others=planned.others)
        return replace(report, forecast=self.forecast) if self.forecast is not None else report


def part_of(root: ResourceId, child: ResourceId) -> str:
    """The part of a root that a child belongs to, such as `replica 1`; empty for objects that the root has once."""
    blueprint = next((blueprint for blueprint in BLUEPRINTS if blueprint.kind.name == root.kind), None)
    part = blueprint.part_of(root, child) if blueprint is not None else ""
    return f"replica {part}" if part.isdecimal() else ""


def shown(first: FirstPass, forecast: Forecast | None = None, facts: Facts = NO_FACTS) -> Shown:
    """What is shown of this pass and its forecast, given these facts. `forecast`: as made by `forecast_of`, with room for every pod."""
    if forecast is not None and facts.room is not NO_ROOM:
        from resources.preview.room import in_room  # Only where pods are created in a cluster.

        forecast = in_room(first, forecast, facts)
    notes: dict[ResourceId, list[str]] = {}
    waits: dict[ResourceId, list[Wait]] = {}
    for rule in RULES:
        for root, remark in rule(first, forecast, facts):
            if isinstance(remark, Wait):
                waits.setdefault(root, []).append(remark)
            else:
                notes.setdefault(root, []).append(remark)
    late = forecast.late if forecast is not None else {}
    remarked = (
        _remarked(plan, notes.get(plan.root, ()), (*waits.get(plan.root, ()), *late.get(plan.root, ()))) for plan in first.planned.plans
    )
    plans = {plan.root: _once(plan) for plan in remarked}
    plans |= {root: Plan(root, problems=faults) for root, faults in facts.rejected.items()}
    planned = replace(first.planned, plans=tuple(plans.values() if not facts.rejected else (plans[root] for root in sorted(plans))))
    if forecast is not None:
        planned = with_later_faults(planned, forecast)
    last = forecast.end if forecast is not None and forecast.is_finished and forecast.objects is not None else first.world
    notices = (*general_notices(first, last, facts), *gang_notices(first.world, planned.plans, first.configuration))
    return Shown(planned, _ending_with(forecast, waits), first.world.incomplete, notices)


def general_notices(first: FirstPass, last: World, facts: Facts) -> Iterator[str]:
    """What is assumed, what could not be read or asked, and what is left of roots that do not exist at the end, in the world `last`."""
    if first.assumes_secrets:
        yield ASSUMED_SECRETS
    yield from facts.notices
    verdicts = (verdict for root in first.world.roots for verdict in root.trials.verdicts.values())
    if facts.components.is_forbidden or any(verdict.outcome is TrialOutcome.NOT_PERMITTED for verdict in verdicts):
        yield NOT_TRIED
    if first.world.unlisted.keys() - first.world.incomplete.keys():
        from resources.preview.waiting_components import unlisted_notices  # Mostly all lists succeed.

        yield from unlisted_notices(first, last)
    if last.orphans:
        from resources.preview.orphans import orphan_notices  # Few clusters have any.

        yield from orphan_notices(last)


def gang_notices(world: World, plans: Iterable[Plan], configuration: Configuration) -> Iterator[str]:
    """For each scheduler that schedules no gangs: the sets with these plans that have some, and what users can do about it.

    Then the gangs of these sets whose existing pods are placed otherwise than those that replace them.
    """
    configuration = on_cluster(configuration, world.unserved)
    roots, sets, gangs = {plan.root for plan in plans}, dict[Scheduler, list[str]](), dict[str, list[str]]()
    for observed in world.roots:
        root = observed.root.id
        if root in roots and root.kind == kinds.PODCLIQUESET.name and observed.root.deleting_since is None:
            scheduler = without_gangs(specified_body(observed), configuration)
            if scheduler is not None:
                sets.setdefault(scheduler, []).append(f"{root.namespace}/{root.name}")
            for remark, gang in gang_remarks(observed, configuration):
                gangs.setdefault(remark, []).append(gang)
    for scheduler, names in sets.items():
        yield printable(placed_one_by_one(scheduler, _listed(names, "set")))
    for remark, names in gangs.items():
        yield printable(f"the pods of {_listed(names, 'gang')} {remark}")


def _listed(names: Sequence[str], noun: str) -> str:
    """The first of these names, and the number of the others."""
    more = len(names) - MOST_SETS
    return ", ".join(names[:MOST_SETS]) + (f" and {more} more {noun}{'s' if more > 1 else ''}" if more > 0 else "")


def with_later_faults(planned: Plans, forecast: Forecast) -> Plans:
    """The plans of the first pass, with what the guards say against the last one, and with its faults: a sync ends with them."""

    def later(known: tuple[Objection, ...], last: tuple[Objection, ...]) -> tuple[Objection, ...]:
        rules = {objection.rule for objection in known}
        return tuple(replace(each, message=f"{LATER}: {each.message}") for each in last if each.rule not in rules)

    objections = later(planned.objections, forecast.objections)
    late = {root: plan.objections for root, plan in forecast.plans.items() if plan.objections}
    faulty = {root: [alarm for alarm in plan.alarms if alarm.fault] for root, plan in forecast.plans.items() if plan.faults}

    def with_later(plan: Plan) -> Plan:
        known = {alarm.reason for alarm in plan.alarms if alarm.fault}
        alarms = [replace(each, text=f"{LATER}: {each.text}") for each in faulty.get(plan.root, ()) if each.reason not in known]
        return replace(
            plan, objections=(*plan.objections, *later(plan.objections, late.get(plan.root, ()))), alarms=(*plan.alarms, *alarms)
        )

    plans = tuple(with_later(plan) if plan.root in late or plan.root in faulty else plan for plan in planned.plans)
    return replace(planned, plans=plans, objections=(*planned.objections, *objections))


def _remarked(plan: Plan, notes: Iterable[str], waits: Iterable[Wait]) -> Plan:
    """The plan with these remarks; the same plan if there are none."""
    if not notes and not waits:
        return plan
    return replace(plan, notes=(*plan.notes, *notes), deferred=(*plan.deferred, *waits))


def _once(plan: Plan) -> Plan:
    """The plan with each note once; the same plan if that changes nothing."""
    notes = tuple(dict.fromkeys(plan.notes))
    return plan if len(notes) == len(plan.notes) else replace(plan, notes=notes)


def _ending_with(forecast: Forecast | None, waits: Mapping[ResourceId, list[Wait]]) -> Forecast | None:
    """The forecast at whose end these roots still wait for this."""
    if forecast is None or not waits:
        return forecast
    return replace(forecast, plans={root: _remarked(plan, (), waits.get(root, ())) for root, plan in forecast.plans.items()})


def capacity_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """Sets whose pods in fabric domains need more nodes than there are, or more of one island."""
    sets, groups = first.sets, scaled_groups(first.world.roots)
    for fabric in first.configuration.fabrics:
        if not requested_by_sets(sets, fabric, groups):
            continue
        uids = {live.id: live.uid for live in first.world.references.of(fabric.kind.name)}
        capacity = facts.capacities.get(fabric.kind.key)
        yield from capacity_notes(fabric, sets, capacity, uids, groups).items()
        for root, listed in island_notes(fabric, sets, capacity, uids, groups).items():
            yield from ((root, note) for note in listed)


def quota_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """What ResourceQuotas do not allow: it is waited for if it is needed to the end, and a note if it is needed for a time."""
    if forecast is None or not facts.quotas:
        return
    from resources.cluster_model.quota_requirements import likeness, unsaid  # Few namespaces have any.
    from resources.cluster_model.quotas import by_root, shortages, text_of

    known = {observed.root.id: observed.trials for observed in first.world.roots}
    of_plans = ((plan, trial) for plan in first.planned.plans if plan.root in known for trial in plan.trials)
    tried = ((plan.root, trial.create.manifest, known[plan.root].outcome_of(trial.key)) for plan, trial in of_plans)
    outcomes: dict[tuple[ResourceId, object], set[TrialOutcome]] = {}
    for root, pod, outcome in (*tried, *facts.components.tried):
        outcomes.setdefault((root, likeness(pod)), set()).add(outcome)
    lacking: dict[tuple[ResourceId, ResourceId], tuple[bool, str]] = {}
    for root, quota, which, why in unsaid(facts.quotas, forecast, first.world, facts.defaults or {}):
        accepted = outcomes.get((root, which)) == {TrialOutcome.ACCEPTED}
        if (root, quota) not in lacking or (lacking[root, quota][0] and not accepted):
            lacking[root, quota] = accepted, why
    for (root, quota), (accepted, why) in lacking.items():
        # The API server asks webhooks before quotas.
        if accepted:
            yield (
                root,
                f"ResourceQuota {quota.name}: {why}: the API server accepted the new pods that it was asked about: a webhook may say it",
            )
        elif facts.defaults is not None:
            yield (
                root,
                Wait(quota, f"{why}: the API server will refuse such pods", to_do="say it, or let a LimitRange say it", blocked=True),
            )
        else:
            yield root, f"ResourceQuota {quota.name}: {why}: unless a LimitRange says it, the API server will refuse such pods"
    for root, listed in by_root(tuple(shortages(facts.quotas, forecast, first.world, facts.defaults or {}))).items():
        for shortage in listed:
            if shortage.lasting:
                yield root, Wait(shortage.quota, text_of(shortage, root), blocked=True)
            else:
                yield root, f"ResourceQuota {shortage.quota.name}: {text_of(shortage, root)}"


def room_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """The pods that no node has room for."""
    for root, listed in (forecast.shortages if forecast is not None else {}).items():
        yield from ((root, wait) for wait in listed)


def sharing_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """The names of fabric domains that several replicas or sets have (N28)."""
    sets, groups = first.sets, scaled_groups(first.world.roots)
    for fabric in first.configuration.fabrics:
        for root, listed in sharing_notes(fabric, sets, groups).items():
            yield from ((root, note) for note in listed)


def annotation_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """Annotations of stored sets for domains that have no effect (N35).

    They are the warnings of admission, which are told of manifests when these are read, and annotations that PodCliques alone have.
    """
    configuration = first.configuration
    stored = [
        each for each in first.world.roots if each.root.id.kind == kinds.PODCLIQUESET.name and (each.proposal is None or each.proposer)
    ]
    if not stored:
        return
    from resources.domains.added_annotations import added_annotations  # A preview of new manifests needs none of it.

    for observed in stored:
        root, body = observed.root.id, observed.proposal or observed.root.body
        written = written_keys(body)
        warnings = (*fabric_warnings(written, configuration), *domain_warnings(specified_in(body), written, configuration))
        warnings = (*warnings, *mistyped_key_warnings(written, configuration, besides=warnings))
        additions = (added.note for added in added_annotations(observed, configuration))
        yield from ((root, note) for note in dict.fromkeys((*warnings, *additions)))


def trial_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """What the API server said when it checked the operations, and components with their pods."""
    for remarks in (facts.trial.notes, facts.trial.refused, facts.components.notes, facts.components.refused):
        for root, listed in remarks.items():
            yield from ((root, remark) for remark in listed)


def base_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """What is to be said of the manifests with which the change is compared."""
    for root, listed in facts.base.items():
        yield from ((root, note) for note in listed)


def replacement_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """What changes in PodCliques that an update deletes and creates again. Where the set itself is patched, its patch has these fields."""
    if forecast is None:
        return
    patched = {plan.root for plan in first.planned.plans for each in plan.operations if each.id == plan.root and isinstance(each, Patch)}
    created: dict[ResourceId, dict[ResourceId, Create]] = {}
    for root, operation in ((root, each) for later in forecast.passes for root, listed in later.operations.items() for each in listed):
        if operation.id.kind == kinds.PODCLIQUE.name and isinstance(operation, Create) and root not in patched:
            created.setdefault(root, {})[operation.id] = operation
    for observed in (each for each in first.world.roots if each.root.id in created):
        again = created[observed.root.id]
        replaced = {live: again[live.id] for live in observed.lives() if live.id in again}
        if replaced:
            from resources.preview.replaced import replacement_notes  # Few plans create a PodClique again.

            yield from ((observed.root.id, note) for note in replacement_notes(replaced))


def autoscaler_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """What Kubernetes scales after the last pass, because of the limits of autoscalers."""
    written = {root for later in forecast.passes for root in later.operations} if forecast is not None else ()
    for observed in forecast.end.roots if forecast is not None else ():
        if observed.root.id in written and any(slice.of(kinds.AUTOSCALER.name) for slice in observed.slices.values()):
            from resources.preview.autoscalers import scaling_notes  # Few sets have any.

            yield from ((observed.root.id, note) for note in scaling_notes(observed))


def kept_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """The finalizers of other programs on objects that are deleted."""
    if forecast is None:
        return
    for observed in restricted(first).world.roots:  # The forecast has no objects of others.
        if any(live.finalizers for live in observed.lives()):
            from resources.preview.kept import kept_notes  # A preview of new manifests needs none of it.

            yield from ((observed.root.id, note) for note in kept_notes(observed, forecast, first.configuration))


def late_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """The Deployments that have missed their deadline, and whether their pods still start; of other components the pods that cannot run."""
    if facts.component_pods is not None:
        from resources.preview.late_components import hindered_remarks, late_remarks  # Few graphs run without Grove.

        yield from late_remarks(first, facts)
        yield from hindered_remarks(first)


def waiting_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """Without a forecast, which names them too: the components whose pods wait for claims that nothing can make."""
    if forecast is None and first.component_pods:
        from resources.preview.waiting_components import waiting_components  # Few graphs run without Grove.

        yield from waiting_components(first)


def adapter_remarks(first: FirstPass, forecast: Forecast | None, facts: Facts) -> Iterator[Remark]:
    """The scaling adapters of others that have no effect."""
    yield from ((root, note) for root, notes in facts.unused_adapters.items() for note in notes)


RULES: tuple[Rule, ...] = (
    adapter_remarks,
    late_remarks,
    waiting_remarks,
    replacement_remarks,
    kept_remarks,
    autoscaler_remarks,
    capacity_remarks,
    room_remarks,
    quota_remarks,
    sharing_remarks,
    annotation_remarks,
    trial_remarks,
    base_remarks,
)
"""In the order in which a reader sees what they say of one root."""
