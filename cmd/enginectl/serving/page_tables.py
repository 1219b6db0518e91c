"""Page tables: the state of workloads, what waits, what was done, and how fresh caches are, as parts of HTML pages; bounded in size."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final
from urllib.parse import quote

from engine.ids import ResourceId
from engine.report.alike import spread, waits_alike
from engine.report.html.elements import Content, Markup, code, element, items, table
from engine.report.html.plan import verb_text
from engine.report.printable import clipped
from engine.report.text import group_name
from enginectl.output.domains import describe, is_good
from enginectl.output.status import TONES
from enginectl.output.tables import age
from enginectl.serving.glance import Healths, health_text, rank
from enginectl.serving.last_pass import DoneOperation
from providers.cache_state import CacheState
from resources.domains.status import DomainStatus
from resources.install.roles import PLAN_URL
from resources.reports.binding_summary import BindingSummary
from resources.reports.graph_summary import GraphSummary
from resources.reports.summary import STATES, GangSummary, WaitSince, WorkloadSummary

MAX_ROWS: Final = 300
MAX_LISTED: Final = 20
"""Maximum number of nodes listed of a domain."""
MAX_TEXT: Final = 600
CLASSES: Final = {"good": "good", "bad": "bad", "later": "later", "blocked": "blocked", "delete": "delete"}
"""Tone of a state -> the class of its text."""


def bounded_table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[Content]]) -> Content:
    """The table with its first `MAX_ROWS` rows and the number of the others; a sentence if there are no rows."""
    if not rows:
        return element("p", f"{caption}: none", class_="faint")
    more = len(rows) - MAX_ROWS
    return [table(caption, headers, rows[:MAX_ROWS]), element("p", f"{more} more", class_="faint") if more > 0 else None]


def state_text(state: str) -> Markup:
    """A state in its colour."""
    return element("span", state, class_=CLASSES.get(TONES.get(state, "")))


def set_link(id: ResourceId) -> Markup:
    """A link to the page of a set."""
    return element("a", code(f"{id.namespace}/{id.name}"), href=set_path(id))


def set_path(id: ResourceId) -> str:
    """The path of the page of a set."""
    return path_of(id.namespace, id.name)


def path_of(namespace: str, name: str) -> str:
    """The path of the page of the set of that name."""
    return f"/sets/{quote(namespace, safe='')}/{quote(name, safe='')}"


def nodes_path(id: ResourceId) -> str:
    """The path of the page of the nodes of a set."""
    return f"/top?namespace={quote(id.namespace, safe='')}&name={quote(id.name, safe='')}"


def plan_path(id: ResourceId) -> str:
    """The path of the plan of a set as JSON."""
    return f"{PLAN_URL}?namespace={quote(id.namespace, safe='')}&name={quote(id.name, safe='')}"


def workload_table(workloads: Iterable[WorkloadSummary], healths: Healths, now: datetime) -> Content:
    """The sets, the worst first."""
    ordered = sorted(workloads, key=lambda workload: (rank(healths, workload.id), STATES.index(workload.state), workload.id))
    headers = ("Set", "Health", "State", "Replicas available", "Updated", "Gangs running", "Pods ready", "Domains in order", "Age")
    return bounded_table("PodCliqueSets", headers, [_workload_row(workload, healths, now) for workload in ordered])


def _workload_row(workload: WorkloadSummary, healths: Healths, now: datetime) -> tuple[Content, ...]:
    complete = sum(gang.is_complete for gang in workload.gangs)
    return (
        set_link(workload.id),
        health_text(healths.get(workload.id)),
        state_text(workload.state),
        f"{workload.available} of {workload.replicas}",
        workload.updated,
        f"{complete} of {len(workload.gangs)}",
        f"{workload.ready} of {workload.pods}",
        f"{sum(map(is_good, workload.domains))} of {len(workload.domains)}" if workload.domains else "-",
        age(now, workload.created_at) if workload.created_at else "-",
    )


def graph_table(graphs: Iterable[GraphSummary], healths: Healths, now: datetime) -> Content:
    """The graphs, with the sets that they consist of."""
    rows: list[tuple[Content, ...]] = [
        (
            code(f"{graph.id.namespace}/{graph.id.name}"),
            health_text(healths.get(graph.id)),
            state_text(graph.state),
            f"{graph.ready} of {len(graph.services)}",
            [[set_link(nested), " "] for nested in graph.nested[:MAX_LISTED]],
            age(now, graph.created_at),
        )
        for graph in sorted(graphs, key=lambda graph: rank(healths, graph.id))
    ]
    return bounded_table("DynamoGraphDeployments", ("Graph", "Health", "State", "Services ready", "Sets", "Age"), rows) if rows else None


def binding_table(bindings: Iterable[BindingSummary], now: datetime) -> Content:
    """The topology bindings."""
    rows: list[tuple[Content, ...]] = [
        (code(binding.id.name), state_text(binding.state), " > ".join(binding.levels), binding.drift or "-", age(now, binding.created_at))
        for binding in bindings
    ]
    return bounded_table("ClusterTopologyBindings", ("Binding", "State", "Levels", "Drift", "Age"), rows) if rows else None


def gang_table(gangs: Iterable[GangSummary]) -> Content:
    """The gangs, those that are not running completely first."""
    ordered = sorted(gangs, key=lambda gang: (gang.is_complete, gang.name))
    rows = [(code(gang.name), gang.phase, f"{gang.ready} of {gang.pods}", gang.completed) for gang in ordered]
    return bounded_table("Gangs", ("Gang", "Phase", "Pods ready", "Pods completed"), rows)


def domain_table(domains: Iterable[DomainStatus]) -> Content:
    """The domains with their nodes and cliques, those that are not in order first."""
    return bounded_table(
        "Domains", ("Domain", "State", "Nodes", "Pods by clique"), [_domain_row(domain) for domain in sorted(domains, key=is_good)]
    )


def _domain_row(domain: DomainStatus) -> tuple[Content, ...]:
    more = len(domain.joined) - MAX_LISTED
    nodes: list[Content] = [
        [code(node.node), f" in {node.island}" if node.island else "", "" if node.ready else " not ready"]
        for node in domain.joined[:MAX_LISTED]
    ]
    cliques: list[Content] = [[code(clique), f": {count}"] for clique, count in (domain.pods or {}).items()]
    return (
        code(domain.id.name),
        element("span", clipped(describe(domain), MAX_TEXT), class_="good" if is_good(domain) else "later"),
        [items(nodes), f"{more} more" if more > 0 else None],
        items(cliques[:MAX_LISTED]),
    )


def wait_table(waits: Iterable[WaitSince], now: datetime) -> Content:
    """What is deferred or pending, since when and why; alike ones in one row."""
    rows: list[tuple[Content, ...]] = []
    for group in waits_alike(waits):
        since = min((wait.since for wait in group if wait.since), default=None)
        until = min((wait.until for wait in group if wait.until), default=None)
        times = [f" since {age(now, since)}" if since else "", f" until {until:%Y-%m-%d %H:%M:%S} UTC" if until else ""]
        why = clipped(spread(wait.why for wait in group), MAX_TEXT)
        rows.append((code(group_name(None, [wait.id for wait in group])), [why, element("span", times, class_="faint")]))
    return bounded_table("Not settled, and why", ("Object", "Why"), rows)


def remarks(workload: WorkloadSummary) -> list[Markup]:
    """The problems, warnings and notes of a set."""
    alarms = [alarm.text for alarm in workload.alarms if not alarm.fault]  # The others are among the problems.
    return [
        *(element("p", element("strong", "problem: "), text, class_="alert") for text in dict.fromkeys(workload.problems)),
        *(element("p", element("strong", "warning: "), text, class_="alert") for text in dict.fromkeys(alarms)),
        *(element("p", text, class_="note") for text in dict.fromkeys(workload.notes)),
    ][:MAX_ROWS]


def operation_table(done: Sequence[DoneOperation]) -> Content:
    """The operations that were tried last, the newest first."""
    rows: list[tuple[Content, ...]] = [
        (
            element("time", f"{each.at:%Y-%m-%d %H:%M:%S}"),
            verb_text(each.verb),
            code(str(each.id)),
            clipped(each.why, MAX_TEXT),
            element(
                "span",
                each.outcome + (f": {clipped(each.error, MAX_TEXT)}" if each.error else ""),
                class_=None if each.outcome == "done" else "bad",
            ),
        )
        for each in done
    ]
    return bounded_table("The last operations, the newest first (UTC)", ("Time", "Operation", "Object", "Why", "Outcome"), rows)


def cache_table(caches: Sequence[CacheState], now: float) -> Content:
    """How fresh the cache of each kind is; `now` is a time of the monotonic clock."""
    rows: list[tuple[Content, ...]] = [
        (
            code(cache.kind.key + (f" in {cache.namespace}" if cache.namespace else "")),
            cache.objects,
            element("span", f"{max(0, int(now - cache.confirmed_at))} s ago", class_="bad" if cache.is_stale(now) else None),
            clipped(str(cache.error), MAX_TEXT) if cache.error else "",
        )
        for cache in sorted(caches, key=lambda cache: (not cache.is_stale(now), cache.kind.key, cache.namespace))
    ]
    return bounded_table("Watched kinds", ("Kind", "Objects", "Confirmed", "Last error"), rows)
