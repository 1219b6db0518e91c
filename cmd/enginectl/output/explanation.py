"""The explanation of one object: which root desires it and why, what is not in sync, and what is wrong."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live
from engine.operation import Operation
from engine.paths import spell
from engine.report.alike import blurred, grouped, without_repetition
from engine.report.fields import changed_fields, field_text, shown_fields
from engine.report.json import change_entry, moment_text, wait_entry
from engine.report.meaning import needed
from engine.report.printable import Line, clipped, printable
from engine.report.shapes import identity
from engine.resource import Stance
from enginectl.output.domains import describe, domain_entry
from enginectl.output.graphs import graph_entry, service_lines, waiting_lines
from enginectl.output.status import (
    MAX_ADVICE,
    MAX_NAMES,
    TONES,
    advice_lines,
    gang_lines,
    wait_entries,
    wait_lines,
    warning_lines,
    workload_entry,
)
from enginectl.output.tables import age
from resources.domains.domain_users import DomainUser
from resources.domains.status import DomainStatus
from resources.ports.checks import Diagnosis
from resources.reports.explanation import DesiredBy, Explanation
from resources.reports.graph_summary import GraphSummary
from resources.reports.obstacle import RunObstacle
from resources.reports.obstacles import Standstill
from resources.reports.provenance import Sources
from resources.reports.summary import WorkloadSummary

VERSION = 2
"""Version of the JSON document; increased when a field is removed or changes its meaning."""
MAX_LISTED = 12
"""Fields and diagnoses that are listed; -v and -o json have them all."""
MAX_TEXT = 400
AT_REST = ("degraded", "completed", "settled")
"""The states of roots in which nothing is left to do."""
RUNS = Standstill()
STANCES = {Stance.WANT: "desired by", Stance.HOLD: "deferred by", Stance.DROP: "to be deleted, according to"}


class ObjectReport(Struct, frozen=True, eq=False):
    """All that `engine why` shows about one object."""

    explanation: Explanation
    diagnoses: tuple[Diagnosis, ...] = ()
    domains: tuple[DomainStatus, ...] = ()
    """If the object is a domain: its status, from the view of each set that uses it."""
    graph: GraphSummary | None = None
    """If the object is a graph that exists: its summary."""
    sources: Sources = field(default_factory=dict)
    """Field of the object -> the fields of its root that it is computed from."""
    incomplete: Mapping[str, str] = field(default_factory=dict)
    """Kind -> why its objects could not be listed completely."""
    users: tuple[DomainUser, ...] = ()
    """If the object is a domain that a set uses: all its users."""
    notes: tuple[str, ...] = ()
    """What has no effect on the object, and why."""
    workload: WorkloadSummary | None = None
    """If the object is a set that exists: its summary, as `engine status` shows it."""
    standstill: Standstill = RUNS
    """What keeps the object from running."""
    is_our_kind: bool = True
    """Whether the engine manages, or refers to, objects of its kind."""
    makers: tuple[tuple[ResourceId, ResourceId], ...] = ()
    """If it is a pod of a graph without Grove: the graph, and the Deployment or LeaderWorkerSet whose controller has made it."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing keeps the object, or what it consists of, from running."""
        states = [root.state for root in (self.graph, self.workload) if root is not None]
        return self.standstill.runs and all(state in AT_REST for state in states)

    @property
    def exists(self) -> bool:
        """Whether there is anything to show: the object exists, a root desires it, or a fabric knows something about it."""
        return self.explanation.is_known or bool(self.diagnoses)


def report_lines(report: ObjectReport, now: datetime, *, verbose: bool) -> Iterator[Line]:
    """The report for people."""
    explanation = report.explanation
    yield Line(printable(str(explanation.id)), "head")
    if report.exists:
        yield Line(f"  {existence(explanation.live, now)}")
        yield from (Line(f"  used by {text}") for text in user_texts(report.users, verbose=verbose))
        yield from (Line(f"  {text}") for text in desire_texts(report))
        yield from (Line(f"  state: {text}") for text in dict.fromkeys(map(describe, report.domains)))
        yield from graph_lines(report.graph, now, verbose) if report.graph else ()
        yield from workload_lines(report.workload, verbose) if report.workload else ()
        yield from (Line(f"  note: {clipped(note, MAX_TEXT)}", "later") for note in report.notes)
        yield from sync_lines(explanation, verbose, settled=report.is_settled)
        yield from standstill_lines(report.standstill, explanation.id, now, verbose=verbose)
    for path, sources in report.sources.items():
        rest = f" and {len(sources) - MAX_LISTED} more" if len(sources) > MAX_LISTED else ""
        listed = ", ".join(printable(spell(source)) for source in sources[:MAX_LISTED])
        yield Line(f"  {printable(spell(path))} comes from {listed}{rest}", "faint")
    diagnoses = report.diagnoses if verbose else report.diagnoses[:MAX_LISTED]
    for diagnosis in diagnoses:
        yield Line(f"  {clipped(diagnosis.observation, MAX_TEXT)}", "bad" if diagnosis.bad else "faint")
        yield Line(f"    because {clipped(diagnosis.cause, MAX_TEXT)}")
        if diagnosis.advice:
            yield Line(f"    do: {clipped(diagnosis.advice, MAX_ADVICE)}", "faint")
    if len(diagnoses) < len(report.diagnoses):
        yield Line(f"  … {len(report.diagnoses) - len(diagnoses)} more; -v shows all", "faint")


def existence(live: Live | None, now: datetime) -> str:
    """Whether the object exists, since when, and which finalizers delay its deletion."""
    if live is None:
        return "does not exist"
    if live.deleting_since is None:
        return f"exists for {age(now, live.created_at)}"
    finalizers = ", ".join(map(printable, finalizers_of(live))) or "none"
    return f"exists for {age(now, live.created_at)}, is being deleted for {age(now, live.deleting_since)}, finalizers: {finalizers}"


def finalizers_of(live: Live) -> list[str]:
    """The finalizers of an object."""
    return [str(name) for name in live.body["metadata"].get("finalizers") or ()]


def user_texts(users: Sequence[DomainUser], *, verbose: bool) -> Iterator[str]:
    """The users of a domain: sets with the numbers of their pods in it, and claims that belong to no set."""
    listed = users if verbose else users[:MAX_LISTED]
    for user in listed:
        pods = ", ".join(f"{count} of {printable(clique)}" for clique, count in user.pods.items())
        owners = ", ".join(map(printable, user.owners))
        detail = f"pods: {pods}" if pods else f"of {owners}" if owners else "no pods now"
        yield f"{printable(str(user.id))}, {detail}"
    if len(listed) < len(users):
        yield f"{len(users) - len(listed)} more; -v shows all"


def desire_texts(report: ObjectReport) -> Iterator[str]:
    """Which roots desire the object and why; or that none does."""
    explanation = report.explanation
    for desired in explanation.desired_by:
        yield f"{STANCES[desired.stance]} {desirer(desired, explanation.id)}: {clipped(desired.why, MAX_TEXT)}"
    for problem in explanation.problems:
        yield f"it is not known what is desired: {clipped(problem, MAX_TEXT)}"
    if explanation.desired_by or explanation.problems:
        return
    if explanation.roots:
        yield f"obsolete: {', '.join(printable(str(root)) for root in explanation.roots)} owns it and no longer desires it"
    elif explanation.orphan:
        yield "orphaned: it has our labels, and its owner no longer exists"
    elif report.users:
        yield "not managed: no workload has made it, it is used as it is and never changed"
    elif report.makers:
        yield from (
            f"part of {printable(str(root))}: the controller of {printable(str(maker))} has made it" for root, maker in report.makers
        )
    elif not report.is_our_kind:
        yield f"not managed: the engine has nothing to do with {printable(explanation.id.kind)} objects"
    elif explanation.id.kind in report.incomplete:
        yield f"it is not known what is desired: {printable(explanation.id.kind)} objects cannot be listed; nothing of it is changed"
    else:
        yield "not managed: no workload owns or desires it"


def desirer(desired: DesiredBy, id: ResourceId) -> str:
    """The root that desires the object, with the root that it is part of. A nested root is desired by the root that it is part of."""
    if desired.parent is not None and desired.root == id:
        return printable(str(desired.parent))
    parent = f", part of {printable(str(desired.parent))}" if desired.parent else ""
    part = f" (replica {desired.part})" if desired.part.isdecimal() else ""
    return f"{printable(str(desired.root))}{part}{parent}"


def graph_lines(graph: GraphSummary, now: datetime, verbose: bool) -> Iterator[Line]:
    """The state of a graph, its services, and what is not settled in it."""
    runner = f"run by {graph.orchestrator}" if graph.orchestrator else "nothing runs it"
    reported = f" ({clipped(graph.graph_state, MAX_TEXT)})" if graph.graph_state else ""
    yield Line(f"  state: {graph.state}{reported}, {runner}, {graph.ready} of {len(graph.services)} {graph.noun}s ready")
    yield from warning_lines(graph.alarms)
    yield from service_lines(graph)
    yield from waiting_lines(graph)
    yield from wait_lines(tuple(wait for wait in graph.waits if wait.id != graph.id), now, verbose)


def workload_lines(workload: WorkloadSummary, verbose: bool) -> Iterator[Line]:
    """The state of a set, its faults, and its gangs that are not complete."""
    completed = f", {workload.completed} completed" if workload.completed else ""
    yield Line(f"  state: {workload.state}, {workload.ready} of {workload.pods} pods ready{completed}", TONES.get(workload.state, ""))
    yield from warning_lines(workload.alarms)
    gangs = [gang for gang in workload.gangs if verbose or not gang.is_complete]
    advised, written = set[str](), dict[str, str]()
    for gang in gangs if verbose else gangs[:MAX_LISTED]:
        yield from gang_lines(gang, advised, None if verbose else written)


def sync_lines(explanation: Explanation, verbose: bool, *, settled: bool = True) -> Iterator[Line]:
    """The operations that are due now, later or blocked, and what is pending; or, if it is also `settled`, that the object is in sync."""
    for operation in explanation.operations:
        yield Line(f"  due: {operation.verb}, {operation.reason}: {clipped(operation.why, MAX_TEXT)}", operation.verb)
        changes = shown_fields(operation)
        for change in changes if verbose else changes[:MAX_LISTED]:
            yield Line(f"    {field_text(change)}")
    waits = [("blocked" if wait.blocked else "later", wait) for wait in explanation.deferred]
    waits += [("pending", wait) for wait in explanation.pending]
    advised = set[str]()
    for word, wait in waits:
        until = f" (until {moment_text(wait.until)})" if wait.until else ""
        yield Line(f"  {word}: {clipped(wait.why, MAX_TEXT)}{until}", word)
        yield from advice_lines(needed(wait), advised)
    if settled and explanation.live is not None and explanation.desired_by and not (explanation.operations or waits):
        yield Line("  in sync", "good")


def report_document(report: ObjectReport) -> dict[str, Any]:
    """The report as a JSON document."""
    explanation, live = report.explanation, report.explanation.live
    return {
        "version": VERSION,
        "kind": "Why",
        "object": identity(explanation.id),
        "exists": live is not None,
        "createdAt": moment_text(live.created_at) if live else None,
        "deletingSince": moment_text(live.deleting_since) if live else None,
        "finalizers": finalizers_of(live) if live else [],
        "desiredBy": [
            {
                "root": identity(desired.root),
                "parent": identity(desired.parent) if desired.parent else None,
                "part": desired.part,
                "stance": str(desired.stance),
                "why": desired.why,
            }
            for desired in explanation.desired_by
        ],
        "roots": [identity(root) for root in explanation.roots],
        "operations": [operation_entry(operation) for operation in explanation.operations],
        "later": [wait_entry(wait) for wait in explanation.deferred if not wait.blocked],
        "blocked": [wait_entry(wait) for wait in explanation.deferred if wait.blocked],
        "pending": [wait_entry(wait) for wait in explanation.pending],
        "problems": list(explanation.problems),
        "notes": list(report.notes),
        "fields": [{"path": spell(path), "from": list(map(spell, sources))} for path, sources in report.sources.items()],
        "graph": graph_entry(report.graph) if report.graph else None,
        "workload": workload_entry(report.workload) if report.workload else None,
        "waits": wait_entries(report.standstill.waits),
        "obstacles": [obstacle_entry(obstacle) for obstacle in report.standstill.obstacles],
        "domains": [domain_entry(domain) for domain in report.domains],
        "usedBy": [{"object": identity(user.id), "pods": dict(user.pods), "owners": list(user.owners)} for user in report.users],
        "diagnoses": [diagnosis_entry(diagnosis) for diagnosis in report.diagnoses],
        "incomplete": dict(report.incomplete),
    }


def operation_entry(operation: Operation) -> dict[str, Any]:
    """An operation in the JSON document."""
    return {
        "verb": str(operation.verb),
        "why": operation.why,
        "reason": str(operation.reason),
        "cause": str(operation.cause),
        "changes": [change_entry(change) for change in changed_fields(operation)],
    }


def diagnosis_entry(diagnosis: Diagnosis) -> dict[str, Any]:
    """A diagnosis in the JSON document."""
    return {
        "about": identity(diagnosis.about),
        "observation": diagnosis.observation,
        "cause": diagnosis.cause,
        "advice": diagnosis.advice,
        "bad": diagnosis.bad,
    }


def standstill_lines(standstill: Standstill, id: ResourceId, now: datetime, *, verbose: bool) -> Iterator[Line]:
    """What is deferred or pending for the parts of the object, and what keeps pods from running.

    Pods with the same reason share a line unless `verbose`.
    """
    advice = {obstacle.advice for obstacle in standstill.obstacles}
    waits = (wait for wait in standstill.waits if wait.id != id)
    yield from wait_lines(tuple(replace(wait, advice="") if wait.advice in advice else wait for wait in waits), now, verbose)
    groups = grouped(standstill.obstacles, lambda each: (each.reason, each.about.kind, blurred(each.text), verbose and each))
    for group in groups if verbose else groups[:MAX_LISTED]:
        yield from _obstacle_lines(group, id, now)
    if len(groups) > MAX_LISTED and not verbose:
        yield Line(f"  … {len(groups) - MAX_LISTED} more; -v shows all", "faint")


def _obstacle_lines(group: Sequence[RunObstacle], id: ResourceId, now: datetime) -> Iterator[Line]:
    """One reason, the objects that have it, since when the first of them has it, and what to do."""
    first, onset = group[0], min((obstacle.since for obstacle in group if obstacle.since), default=None)
    since = f", since {age(now, onset)}" if onset else ""
    who = _names(group) if any(obstacle.about != id for obstacle in group) else "it"
    verb = "does" if len(group) == 1 else "do"
    yield Line(f"  {who} {verb} not run ({first.reason}): {clipped(without_repetition(first.text), MAX_TEXT)}{since}", "pending")
    if first.advice:
        yield Line(f"    do: {clipped(first.advice, MAX_ADVICE)}", "faint")


def _names(group: Sequence[RunObstacle]) -> str:
    """The first objects by name, and how many others there are."""
    first, *others = (obstacle.about for obstacle in group[:MAX_NAMES])
    listed = ", ".join((printable(str(first)), *(printable(other.name) for other in others)))
    rest = len(group) - MAX_NAMES
    return f"{listed} and {rest} more" if rest > 0 else listed


def obstacle_entry(obstacle: RunObstacle) -> dict[str, Any]:
    """An obstacle in the JSON document."""
    return {
        "object": identity(obstacle.about),
        "reason": obstacle.reason,
        "message": obstacle.text,
        "since": moment_text(obstacle.since),
        "advice": obstacle.advice,
    }
