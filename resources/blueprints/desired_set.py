"""Desired set: the desired objects of a valid PodCliqueSet, computed in four steps."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.answer import FailedCall
from engine.blueprint import Desired
from engine.conditions import Condition
from engine.graph import Graph, Part, Resources, graph, part
from engine.health import Readiness
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import Observed
from engine.plan import Alarm
from engine.reason import earliest
from engine.resource import Body
from resources.admission.admitted_set import AdmittedSet
from resources.admission.request import pod_notes
from resources.base import kinds
from resources.blueprints import growth, update_trials
from resources.blueprints.deletion import PartRemoval, excess_replicas
from resources.blueprints.replica import Replica, ReplicaFacts, ReplicaState, ReplicaTurn, desired_replica, observe_replica
from resources.blueprints.root import SharedObjects, has_token, root_resource, shared_objects
from resources.blueprints.update_trials import NewPods
from resources.children import identity
from resources.children.child_kind import ChildTable
from resources.domains import reach, replica_domains
from resources.domains.release import DomainRelease
from resources.domains.replica_domains import NO_DOMAINS, ReplicaDomains, released_on_completion
from resources.domains.requests import slot_notes
from resources.lifecycle.rollout import UpdateAllowance, current_replica, update_allowances
from resources.lifecycle.update_gate import OPEN, UpdateGate
from resources.lifecycle.vacating import ReplicaProgress, vacated_domains
from resources.model.gang_scheduling import GangBlockers, conditions, gang_blockers
from resources.model.growth_limit import NO_GROWTH, GrowthLimit
from resources.model.template import Template
from resources.model.view import ROOT, SET, part_key
from resources.ports.configuration import Configuration
from resources.status import errors
from resources.status import podcliqueset as status
from resources.status.podcliqueset import NOT_SHARED

NONE_TAKEN: frozenset[str] = frozenset()
"""No pod names of foreign objects; always the same object."""
EXPIRY: Final[Callable[[ReplicaState], datetime | None]] = attrgetter("until")
"""When the state of a replica changes although nothing is observed."""

_FailedCalls = Mapping[str, tuple[FailedCall, ...]] | None
"""Part -> its failed calls; None: it is not known which calls fail."""


class SetInput(Struct, frozen=True, eq=False):
    """Everything from which the desired objects of a set are computed."""

    observed: Observed
    admitted: AdmittedSet
    template: Template
    table: ChildTable
    """The kinds of its objects."""
    configuration: Configuration
    now: datetime
    memo: Memo
    """The answers of earlier passes for this set."""


class _SetState(Struct, frozen=True, eq=False):
    """The observed state of a set, before anything is decided about its replicas."""

    replicas: tuple[ReplicaState, ...]
    domains: tuple[ReplicaDomains, ...]
    """The fabric domains of each replica, in the order of `replicas`."""
    shared: SharedObjects
    excess: tuple[PartRemoval, ...]
    """The replicas beyond `spec.replicas`."""
    has_token: bool
    """Whether pods can watch the pods that they start after."""
    conflict: str
    """What is wrong with a ServiceAccount of others that has the name of the set's own; empty if nothing is."""
    gang_blockers: GangBlockers
    """Why the scheduler's objects for the gangs cannot be created now."""
    limited: tuple[Alarm, ...]
    """What is not created because the set would be too large."""

    @property
    def releases(self) -> tuple[DomainRelease, ...]:
        """The releases of all domains that are no longer requested."""
        return (self.shared.release, *(domains.release for domains in self.domains), *(removal.release for removal in self.excess))


class _Rollout(Struct, frozen=True, eq=False):
    """The decision about the rolling update."""

    turns: tuple[ReplicaTurn, ...]
    """The turn of each replica, by index."""
    update: status.UpdateState
    gate: UpdateGate
    """Whether the API server has accepted what the update replaces running pods with."""
    new_pods: NewPods
    """What is known of the pods that are to be created."""
    vacated: Mapping[ResourceId, str]
    """Fabric domain that is being deleted -> why the pods of the set leave it now."""


class _SetSummary(Struct, frozen=True, eq=False):
    """The desired replicas, and the desired status of the set; the status is None for a set that is only proposed."""

    replicas: tuple[Replica, ...]
    status: Body | None
    readiness: Readiness | None
    """How far the set is; None for one that is only proposed."""
    computed: Mapping[str, Resources]
    """Key of a part -> its resources, of the replicas that have changed."""


def desired_set(given: SetInput) -> Desired:
    """The desired objects of a set. Raises `GraphError` if they are too many or contradict each other."""
    state = _observe_replicas(given)
    rollout = _decide_rollout(given, state)
    summary = _summarize(given, state, rollout)
    return _assemble(given, state, summary, rollout)


def _observe_replicas(given: SetInput) -> _SetState:
    observed, template, configuration, now, memo = given.observed, given.template, given.configuration, given.now, given.memo
    limits = configuration.limits.of_set
    wanted: int = given.admitted.body["spec"].get("replicas", 0)
    indices = range(growth.replica_count(wanted, observed, template, limits))
    taken = frozenset(id.name for id in observed.foreign if id.kind == kinds.POD.name) if observed.foreign else NONE_TAKEN
    keys = tuple(map(str, indices))
    lives = tuple(map(observed.slice, keys))

    def observe(index: int, before: ReplicaState | None, limit: GrowthLimit | None = None) -> ReplicaState:
        return observe_replica(template, index, lives[index], taken, configuration, now, limit, before)

    def has_expired(state: ReplicaState) -> bool:
        return state.until is not None and now >= state.until

    def without_growth(index: int) -> ReplicaState:
        of_index = (lives[index], *facts)
        return memo.recall_until(("limited", index), of_index, now, lambda: observe(index, states[index], NO_GROWTH), EXPIRY)

    facts = (template, configuration, taken)
    states = memo.recall_all("states", keys, facts, (lives,), observe, has_expired)
    replicas, capped = growth.within(limits, states, without_growth)
    requested = (
        replica_domains.domains_of_replica(observed, template, index, configuration, now, memo, NO_GROWTH if index in capped else None)
        if configuration.fabrics or template.domain_requests
        else NO_DOMAINS
        for index in indices
    )
    with_domains = tuple(zip((replica.view for replica in replicas), requested, strict=True))
    domains = released_on_completion(observed, template, with_domains, configuration, now, memo)
    return _SetState(
        replicas=replicas,
        domains=domains,
        shared=shared_objects(observed, template, replica_domains.shared_domains(domains), given.table, configuration, now, memo),
        excess=tuple(excess_replicas(observed, len(indices), wanted, given.table, configuration, now, memo)),
        has_token=has_token(observed, template, memo),
        conflict=identity.account_conflict(observed, template),
        gang_blockers=gang_blockers(observed, template, configuration, memo),
        limited=tuple(growth.alarms(wanted, len(indices), replicas, capped, limits)),
    )


def _decide_rollout(given: SetInput, state: _SetState) -> _Rollout:
    stages = [replica.stage for replica in state.replicas]
    last = status.last_updated_replica(given.observed.root)
    current, allowances = current_replica(stages, last), update_allowances(stages, last)
    affected = allowances or any(stage.removes for stage in stages)
    gate = update_trials.gate_of(given.observed, given.template, state.replicas, state.domains, given.memo) if affected else OPEN
    if gate.closed is None:
        turns = [_turn(allowances.get(stage.index, UpdateAllowance.NOTHING), stage.index == current) for stage in stages]
    else:
        turns = [_turn(gate.closed if stage.is_affected else UpdateAllowance.NOTHING, False) for stage in stages]
    if vacated := _vacated_domains(state, turns, last):
        turns = [replace(turn, vacated=vacated) for turn in turns]
    new_pods = update_trials.new_pods(given.observed, given.template, state.replicas, state.domains, gate.trials, given.memo)
    return _Rollout(tuple(turns), status.UpdateState(current, outdated=bool(allowances)), gate, new_pods, vacated)


@lru_cache(maxsize=16)
def _turn(allowance: UpdateAllowance, is_current: bool) -> ReplicaTurn:
    """The turn of a replica; the same object in all passes, so that it is found to be unchanged at once."""
    return ReplicaTurn(allowance, is_current)


def _vacated_domains(state: _SetState, turns: Sequence[ReplicaTurn], last: int | None) -> Mapping[ResourceId, str]:
    """The domains that pods of the set leave now; none while the token is missing without which pods cannot be created again."""
    held = any(domain.held_by for domains in state.domains for domain in domains.requested)
    if not held or not state.has_token:
        return {}
    return vacated_domains(
        ReplicaProgress(
            replica.view, domains.requested, turn.allowance, turn.is_current and last == replica.view.index, replica.terminations.value
        )
        for replica, domains, turn in zip(state.replicas, state.domains, turns, strict=True)
    )


def _summarize(given: SetInput, state: _SetState, rollout: _Rollout) -> _SetSummary:
    computed = dict[str, Resources]()
    replicas = _desired_replicas(given, state, rollout, computed)
    root = given.observed.root
    if not root.uid:
        return _SetSummary(replicas, None, None, computed)
    summaries = [replica.summary for replica in replicas]
    faults, refusal, conflict, limited = given.admitted.faults, rollout.gate.refusal, state.conflict, state.limited
    unshared = [alarm for alarm in _of_templates(state, replicas) if alarm.reason == NOT_SHARED]
    unscheduled = _unscheduled_gangs(given)
    is_complete = not state.excess and state.shared.complete and all(replica.summary.complete for replica in replicas)
    is_applied = is_complete and not rollout.update.outdated
    body = status.of(
        given.template,
        len(replicas),
        root,
        summaries,
        rollout.update,
        faults,
        refusal,
        conflict,
        limited,
        unshared,
        unscheduled,
        is_applied,
    )
    cut_off = next(_cut_off(state), None)
    readiness = status.readiness_of(body, root, summaries, is_applied=is_applied, has_excess=bool(state.excess), cut_off=cut_off)
    failed = errors.of(root.id, given.observed.failed_calls, root.body.get("status") or {}, given.table.codes)
    return _SetSummary(replicas, {**body, **failed}, readiness, computed)


def _unscheduled_gangs(given: SetInput) -> tuple[Condition, ...]:
    """The condition that says that the gangs are not scheduled, which follows from the template and the configuration alone."""
    facts = (given.template, given.configuration)
    return given.memo.recall("unscheduled gangs", facts, lambda: conditions(given.admitted.effective, given.configuration))


def _assemble(given: SetInput, state: _SetState, summary: _SetSummary, rollout: _Rollout) -> Desired:
    observed, gate, new_pods = given.observed, rollout.gate, rollout.new_pods
    copied = given.template.sharing.copied
    scheduler = given.configuration.default_scheduler
    facts = (observed.root, observed.proposal, observed.proposer, given.admitted, scheduler, summary.status, copied)
    root = given.memo.recall(ROOT, facts, lambda: part(ROOT, [root_resource(observed, given.admitted, scheduler, summary.status, copied)]))
    parts = (*(replica.part for replica in summary.replicas), *(removal.part for removal in state.excess))
    shared = _vacated(state.shared.part, rollout.vacated) if rollout.vacated else state.shared.part
    return Desired(
        _graph(given, (root, shared, *parts), summary.computed),
        pending=(
            *replica_domains.pending(state.shared.domains),
            *(wait for replica in summary.replicas for wait in replica.pending),
            *(wait for removal in state.excess for wait in removal.pending),
            *(wait for release in state.releases for wait in release.pending),
        ),
        deferred=(
            *errors.unconfirmed([observed.root] if observed.failed_calls is None else ()),
            *(wait for replica in summary.replicas for wait in replica.deferred),
            *update_trials.deferred(observed.root.id, gate, new_pods),
        ),
        notes=(
            *given.template.topology.notes,
            *slot_notes(given.template, observed.references, given.configuration),
            *_pod_notes(given),
            *dict.fromkeys(note for replica in summary.replicas for note in replica.notes),
            *gate.notes,
            *new_pods.notes,
        ),
        alarms=tuple(dict.fromkeys((*_alarms(given, state, summary), *update_trials.alarms(gate, new_pods)))),
        wake_at=earliest((*(replica.until for replica in state.replicas), *(release.until for release in state.releases))),
        readiness=summary.readiness,
        trials=(*gate.trials, *new_pods.trials),
    )


def _vacated(shared: Part, vacated: Mapping[ResourceId, str]) -> Part:
    """The shared objects, of which those domains are vacated."""
    return part(SET, [replica_domains.while_vacated(resource, vacated) for resource in shared.resources.values()])


def _cut_off(state: _SetState) -> Iterator[Alarm]:
    """What is wrong with the domains that pods are cut off from."""
    return (domain.cut_alarm for domains in state.domains for domain in domains.requested if domain.cut_alarm is not None)


def _pod_notes(given: SetInput) -> tuple[str, ...]:
    """What an API server would refuse in the pods of a stored set; what is wrong with manifests has been said when they were read."""
    if given.observed.proposal is not None or not given.observed.root.uid:
        return ()
    return pod_notes(given.admitted.version.pods.findings)


def _graph(given: SetInput, parts: tuple[Part, ...], computed: Mapping[str, Resources]) -> Graph:
    """The graph of these parts. Raises `GraphError` if they contradict each other."""
    result = graph(parts, given.memo.last("graph") or (), computed)
    given.memo.remember("graph", parts)
    return result


def _desired_replicas(given: SetInput, state: _SetState, rollout: _Rollout, computed: dict[str, Resources]) -> tuple[Replica, ...]:
    """The replicas, remembered without their resources. Those of the replicas that have changed are added to `computed`."""
    refused, failed_calls = rollout.new_pods.refused, _failed_calls(given)
    keys = tuple(str(replica.stage.index) for replica in state.replicas)
    failed = tuple(failed_calls.get(key, ()) if failed_calls is not None else None for key in keys)

    def make(index: int, before: Replica | None) -> Replica:
        of_replica = (state.replicas[index], rollout.turns[index], state.has_token, state.domains[index])
        facts = ReplicaFacts(*of_replica, state.gang_blockers, given.observed.holds, refused, failed[index], given.table)
        made, computed[keys[index]] = desired_replica(facts)
        return made

    facts = (state.has_token, state.gang_blockers, given.observed.holds, refused, given.table)
    return given.memo.recall_all("replicas", keys, facts, (state.replicas, rollout.turns, state.domains, failed), make)


def _failed_calls(given: SetInput) -> _FailedCalls:
    """The failed calls by the part of their objects; None if it is not known which calls fail."""
    failed_calls, root = given.observed.failed_calls, given.observed.root.id
    if failed_calls is None:
        return None
    return given.memo.recall("failed_calls", (failed_calls,), lambda: errors.by_part(failed_calls, lambda id: part_key(root, id)))


def _alarms(given: SetInput, state: _SetState, summary: _SetSummary) -> Iterator[Alarm]:
    """The faults of the set, and the alarms of all requested domains, all releases, all separated domains and all replicas.

    A shared domain occurs once for each replica that requests it.
    """
    yield from given.admitted.faults
    yield from identity.conflict_alarms(state.conflict)
    yield from state.limited
    for domains in state.domains:
        yield from (each for domain in domains.requested for each in (domain.alarm, domain.cut_alarm) if each is not None)
    for release in state.releases:
        yield from release.alarms
    yield from reach.split_alarms(given.observed, state.domains, given.configuration, given.memo)
    yield from (alarm for replica in summary.replicas for alarm in replica.alarms)
    yield from _of_templates(state, summary.replicas)


def _of_templates(state: _SetState, replicas: Sequence[Replica]) -> tuple[Alarm, ...]:
    """The templates that claims of the set may not be made from, or that do not exist, each once."""
    return tuple(dict.fromkeys((*state.shared.of_templates, *(alarm for replica in replicas for alarm in replica.of_templates))))
