"""At a glance: what a user looks at first on the page of `engine run`: the health of sets and graphs, pods, failures, old caches."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from engine.ids import ResourceId
from engine.operation import Outcome
from engine.report.html.elements import Content, Markup, code, element
from engine.report.printable import clipped, counted
from engine.runtime.passes import Pass
from enginectl.output.cluster_status import ClusterStatus
from enginectl.serving.last_pass import DoneOperation
from providers.cache_state import CacheState
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUESET
from resources.ports.configuration import Configuration
from resources.reports.health_summary import HealthState, HealthSummary, health_of

CLASSES: Final = {HealthState.STALLED: "bad", HealthState.RECONCILING: "later", HealthState.NOT_READY: "later", HealthState.READY: "good"}
MAX_STALLED: Final = 5
"""How many stalled sets and graphs are named; of the others the number is given."""
MAX_MESSAGE: Final = 400

Healths = Mapping[ResourceId, HealthSummary]


def healths_of(current: Pass[Configuration]) -> Healths:
    """Set or graph -> its health, as its status says it."""
    kinds = (PODCLIQUESET.name, DYNAMO_GRAPH.name)
    return {each.root.id: health_of(each.root) for each in current.world.roots if each.root.id.kind in kinds}


def stalled_of(healths: Healths) -> list[tuple[ResourceId, HealthSummary]]:
    """Those that are stalled, in order."""
    return sorted((id, each) for id, each in healths.items() if each.health is HealthState.STALLED)


def rank(healths: Healths, id: ResourceId) -> int:
    """Sort key by which the worst come first."""
    return list(HealthState).index(healths[id].health if id in healths else HealthState.UNKNOWN)


def health_text(summary: HealthSummary | None) -> Markup:
    """The health in its colour, with the reason."""
    if summary is None:
        return element("span", HealthState.UNKNOWN, class_="faint")
    reason = element("span", clipped(summary.reason, MAX_MESSAGE), class_="part") if summary.reason else None
    return element("span", element("span", summary.health, class_=f"{CLASSES.get(summary.health, 'faint')} word"), reason)


def glance(
    status: ClusterStatus,
    healths: Healths,
    done: Iterable[DoneOperation],
    caches: Iterable[CacheState],
    now: float,
    path_of: Callable[[ResourceId], str],
) -> Iterator[Markup]:
    """A table with a line for each thing to know. `now` is a time of the monotonic clock, `path_of` returns the path of a set's page."""
    stalled = stalled_of(healths)
    rows: list[tuple[str, Content]] = [
        (title, _counts(each for id, each in healths.items() if id.kind == kind))
        for title, kind in (("Sets", PODCLIQUESET.name), ("Graphs", DYNAMO_GRAPH.name))
        if kind == PODCLIQUESET.name or status.graphs
    ]
    if stalled:
        rows.append(("Stalled", [_stalled(id, each, path_of) for id, each in stalled[:MAX_STALLED]]))
        if len(stalled) > MAX_STALLED:
            rows.append(("", f"{len(stalled) - MAX_STALLED} more"))
    gangs = [gang for workload in status.workloads for gang in workload.gangs]
    running = f"{sum(gang.is_complete for gang in gangs)} of {counted(len(gangs), 'gang')} running"
    ready = f"{sum(each.ready for each in status.workloads)} of {counted(sum(each.pods for each in status.workloads), 'pod')} ready"
    rows.append(("Pods", f"{ready}, {running}"))
    tried = list(done)
    failed = sum(each.outcome == Outcome.FAILED for each in tried)
    last = f"{failed} of the last {counted(len(tried), 'operation')} failed" if failed else "no failure among the last operations"
    rows.append(("Operations", element("a", last, href="#operations", class_="bad" if failed else None)))
    known = list(caches)
    old = sum(cache.is_stale(now) for cache in known)
    fresh = f"{old} of {len(known)} are old" if old else "all fresh"
    rows.append(("Watched kinds", element("a", fresh, href="#kinds", class_="bad" if old else None)))
    body = [element("tr", element("th", title, scope="row"), element("td", content)) for title, content in rows]
    yield element("table", element("caption", "At a glance"), element("tbody", body), class_="lead")


def _counts(healths: Iterable[HealthSummary]) -> Content:
    """`1 Stalled, 2 Reconciling, 9 Ready`, each in its colour."""
    counts = Counter(each.health for each in healths)
    parts: list[Content] = []
    for health in HealthState:
        if counts[health]:
            parts += [", " if parts else None, element("span", f"{counts[health]} {health}", class_=CLASSES.get(health, "faint"))]
    return parts or "none"


def _stalled(id: ResourceId, summary: HealthSummary, path_of: Callable[[ResourceId], str]) -> Markup:
    name = code(f"{id.namespace}/{id.name}")
    link = element("a", name, href=path_of(id)) if id.kind == PODCLIQUESET.name else name
    return element("p", link, f" {summary.reason}: {clipped(summary.message, MAX_MESSAGE)}")
