"""Figures: how many roots, gangs, pods, domains and waits are in which state, counted for one root at a time, without names."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from engine.conditions import is_true
from engine.observed import Live, Observed, Slice
from engine.plan import Plan, Wait
from engine.verb import Verb
from resources.base import labels
from resources.base.fields import mapping, mappings
from resources.base.kinds import POD, PODCLIQUE, PODGANG
from resources.domains.status import DomainStatus, domain_statuses
from resources.lifecycle.availability import BREACHED
from resources.model.pod_facts import PodFacts, facts_of
from resources.ports.configuration import Configuration
from resources.reports.summary import state_of

Figure = tuple[str, ...]
"""What is counted, e.g. `pods`, and a value for each of its dimensions. All come from the engine and its plug-ins: there are few."""


PHASES: Final = ("Pending", "Starting", "Running", "Succeeded", "Failed")
"""The phases of a gang. `Terminating` stands for one that is being deleted, and `Unknown` for any other text in its status."""


def figures(observed: Observed | None, plan: Plan, configuration: Configuration) -> Counter[Figure]:
    """What is counted for one root; without an observation, for a plan about what a deleted root has left behind.

    Of an observation that has changed only the parts that have changed are counted again.
    """
    counted: Counter[Figure] = Counter(_of_plan(observed, plan))
    if observed is None:
        return counted
    domains = tuple(domain_statuses(observed, plan, configuration))
    if observed.root.uid:
        counted["roots", observed.root.id.kind, state_of(observed, plan, domains)] += 1
    for part in observed.slices.values():
        counted.update(part.index("figures", _of_slice))
    gang_changes = Counter(operation.verb for operation in plan.operations if operation.id.kind == PODGANG.name)
    wanted = sum(sum(live.deleting_since is None for live in part.of(PODGANG.name)) for part in observed.slices.values())
    counted["gangs_wanted",] += wanted + gang_changes[Verb.CREATE] - gang_changes[Verb.DELETE]
    for domain in domains:
        if _is_counted_here(observed, domain):
            counted.update(_of_domain(domain))
    return counted


def _of_plan(observed: Observed | None, plan: Plan) -> Iterator[Figure]:
    """The operations of a plan that are left to do, what it waits for, objections and alarms."""
    yield from (("planned", str(operation.verb)) for operation in plan.operations)
    for state, waits in (("later", plan.later), ("blocked", plan.blocked), ("pending", plan.pending)):
        yield from (("waits", state, _reason(observed, wait), wait.id.kind) for wait in waits)
    yield from (("objections", objection.rule) for objection in plan.objections)
    yield from (("alarms", alarm.reason) for alarm in plan.alarms)


def _reason(observed: Observed | None, wait: Wait) -> str:
    """The class of the reason of a wait.

    `unlisted`: kinds could not be listed; `unserved`: the cluster does not serve the kind; `conflict`: the name is taken;
    `terminating`: something of that name is being deleted; `timed`: it ends by itself at a known time; `other`.
    """
    if observed is None:
        return "other"
    foreign = observed.foreign.get(wait.id)
    existing = observed.find(wait.id) or foreign
    applies = {
        "unlisted": not observed.incomplete.isdisjoint(wait.id.keys()),
        "unserved": not observed.unserved.isdisjoint(wait.id.keys()),
        "conflict": foreign is not None and foreign.deleting_since is None,
        "terminating": existing is not None and existing.deleting_since is not None,
        "timed": wait.until is not None,
    }
    return next((reason for reason, is_so in applies.items() if is_so), "other")


def _of_slice(part: Slice) -> Counter[Figure]:
    """The pods and gangs of one part of a root."""
    counted: Counter[Figure] = Counter(("pods", pod_state(facts_of(live))) for live in part.of(POD.name))
    counted.update(("gangs", gang_phase(live)) for live in part.of(PODGANG.name))
    below = {live.labels.get(labels.PODGANG, "") for live in part.of(PODCLIQUE.name) if is_below_minimum(live)}
    counted["gangs_below_minimum",] += len(below)
    return counted


def pod_state(pod: PodFacts) -> str:
    """The first of these that applies: terminating, completed, failed, ready, scheduled (and not ready), pending (not scheduled)."""
    applies = {
        "terminating": pod.terminating,
        "completed": pod.completed,
        "failed": pod.phase == "Failed",
        "ready": pod.ready,
        "scheduled": pod.scheduled,
    }
    return next((state for state, is_so in applies.items() if is_so), "pending")


def gang_phase(gang: Live) -> str:
    """One of `PHASES`, `Terminating` or `Unknown`. A gang without a status is pending."""
    phase = mapping(gang.body.get("status")).get("phase", "Pending")
    return "Terminating" if gang.deleting_since is not None else phase if phase in PHASES else "Unknown"


def is_below_minimum(clique: Live) -> bool:
    """Whether a PodClique has lost its minimum of ready pods and is not being deleted."""
    return clique.deleting_since is None and is_true(mappings(mapping(clique.body.get("status")).get("conditions")), BREACHED)


def _is_counted_here(observed: Observed, domain: DomainStatus) -> bool:
    """Whether this set is the first of those that share the domain: it is counted once."""
    return all(observed.root.id.name < other for other in domain.other_sets)


def _of_domain(domain: DomainStatus) -> Counter[Figure]:
    counted: Counter[Any] = Counter([("domains", str(domain.state))])
    counted["domains_degraded", "split"] += domain.split is not None
    counted["domains_degraded", "cut off"] += domain.cut is not None
    counted["domain_nodes", "expected"] += domain.expected
    counted["domain_nodes", "joined"] += len(domain.joined)
    counted["domain_nodes", "ready"] += domain.ready
    return counted
