"""Page: the read-only pages of `engine run --ui`: an overview, and one for each set. They show the values of `engine status` and `diff`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio
from anyio import to_thread
from msgspec import Struct

from engine.errors import ClusterError
from engine.report.html.elements import Content, code, element, folded
from engine.report.html.forecast import assumptions
from engine.report.html.page import POLICY, page
from engine.report.html.plan import refusals, report_sections, root_section
from engine.report.printable import clipped, printable
from engine.runtime.clock import Clock
from engine.runtime.passes import Pass
from enginectl.output.cluster_status import cluster_status
from enginectl.output.node_table import Top
from enginectl.serving import page_tables as tables
from enginectl.serving.debug import Foresee, ReadState, Show, ShownPass, WhoLeads, asks_for_forecast, narrowed, why_no_plan
from enginectl.serving.glance import Healths, glance, healths_of, stalled_of
from enginectl.serving.last_pass import LoopState
from enginectl.serving.nodes_page import nodes_page
from providers.cache_state import CacheState
from providers.http.message import HTML, HttpResponse, IncomingRequest, Routes, refusal
from resources.base.kinds import PODCLIQUESET
from resources.install.roles import PLAN_URL
from resources.ports.configuration import Configuration
from resources.reports.health_summary import HealthState, HealthSummary

HEADERS: Final = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
SETS: Final = "/sets/"
NODES: Final = "/top"
WITH_FORECAST: Final = "?forecast=true#plan"
"""At the end of the path of a page: with what follows the next pass."""
REFRESH: Final = (5, 3600)
"""The least and the most seconds of `?refresh=`."""


class Sources(Struct, frozen=True):
    """Where the pages get what they show. All of them may be called in any thread, but `foresee` and `see_nodes`."""

    state: ReadState
    show: Show
    foresee: Foresee
    see_nodes: Callable[[Pass[Configuration], str, str], Awaitable[Top]]
    """Returns the nodes, of the sets of a namespace and name alone if these are not empty: the cluster is read, for this call."""
    configuration: Callable[[], Configuration]
    caches: Callable[[], Sequence[CacheState]]
    clock: Clock
    who_leads: WhoLeads


def page_routes(sources: Sources) -> Routes:
    """The routes of the pages. They are written in a worker thread, one at a time."""
    limit = anyio.CapacityLimiter(1)

    async def foreseen_for(request: IncomingRequest, current: Pass[Configuration] | None) -> ShownPass | None:
        return await sources.foresee(current) if current is not None and asks_for_forecast(request) else None

    async def overview(request: IncomingRequest) -> HttpResponse:
        state, refresh = sources.state(), refresh_of(request)
        missing = await why_no_plan(state, sources.who_leads) if state.current is None else ""
        foreseen = await foreseen_for(request, state.current)
        return html_response(await to_thread.run_sync(lambda: overview_page(sources, state, foreseen, missing, refresh), limiter=limit))

    async def one_set(request: IncomingRequest) -> HttpResponse:
        state, refresh = sources.state(), refresh_of(request)
        namespace, _, name = request.path.removeprefix(SETS).partition("/")
        if state.current is None:
            return refusal(503, await why_no_plan(state, sources.who_leads), **HEADERS)
        current, foreseen = state.current, await foreseen_for(request, state.current)
        text = await to_thread.run_sync(
            lambda: set_page(sources, state, foreseen or sources.show(current), namespace, name, refresh), limiter=limit
        )
        return html_response(text) if text else refusal(404, "there is no such set", **HEADERS)

    async def nodes(request: IncomingRequest) -> HttpResponse:
        state = sources.state()
        if state.current is None:
            return refusal(503, await why_no_plan(state, sources.who_leads), **HEADERS)
        namespace, name = request.query.get("namespace", ""), request.query.get("name", "")
        try:
            top = await sources.see_nodes(state.current, namespace, name)
        except ClusterError as error:
            return refusal(503, f"the nodes could not be read: {printable(str(error))}", **HEADERS)
        return html_response(await to_thread.run_sync(lambda: nodes_page(top, _state_line(state), namespace, name), limiter=limit))

    return {("GET", "/"): overview, ("GET", SETS): one_set, ("GET", NODES): nodes}


def html_response(text: str) -> HttpResponse:
    """A page as a response."""
    return HttpResponse(body=text.encode(), content_type=HTML, headers=HEADERS)


def refresh_of(request: IncomingRequest) -> int:
    """The seconds of `?refresh=`, within bounds; 0 without it, and with a forecast, which is expensive."""
    text = request.query.get("refresh", "") if not asks_for_forecast(request) else ""
    return min(max(int(text), REFRESH[0]), REFRESH[1]) if text.isascii() and text.isdecimal() and len(text) < 6 else 0


def overview_page(sources: Sources, state: LoopState, foreseen: ShownPass | None, missing: str, refresh: int) -> str:
    """The page of the whole cluster. `foreseen`: the plan with what follows, if that was asked for. `missing`: why there is no plan."""
    done, caches = state.done, tables.cache_table(sources.caches(), sources.clock.monotonic())
    shown = foreseen or (sources.show(state.current) if state.current is not None else None)
    healths = healths_of(shown.current) if shown is not None else {}
    body: list[Content] = [element("p", missing, class_="alert")] if shown is None else _cluster(sources, shown, state, healths)
    stalled = len(stalled_of(healths))
    links = (
        ("#sets", "sets"),
        ("#operations", "operations"),
        ("#kinds", "kinds"),
        ("#plan", "plan"),
        (NODES, "nodes and GPUs"),
        (f"/{WITH_FORECAST}", "forecast"),
        (PLAN_URL, "plan as JSON"),
    )
    return page(
        f"engine: {stalled} stalled" if stalled else "engine",
        element("header", element("h1", "engine"), _state_line(state)),
        element("nav", [element("a", text, href=target) for target, text in links], aria_label="On this page"),
        element(
            "main",
            body,
            element("section", element("h2", "Operations", id="operations"), tables.operation_table(done)),
            element("section", element("h2", "Kinds", id="kinds"), caches),
            _plan(shown) if shown is not None else None,
        ),
        refresh=refresh,
    )


def _state_line(state: LoopState) -> Content:
    """Whether this process leads, and what becomes of the plan."""
    current = state.current
    made = f"; plan of {current.now:%Y-%m-%d %H:%M:%S} UTC, made in {current.took:.2f} s" if current is not None else ""
    executing = ", its operations are being executed" if state.is_executing else ""
    line = element("p", f"{'leads' if state.leads else 'does not lead'}{made}{executing}", class_="faint")
    error = element("p", element("strong", "the last pass failed: "), state.error, class_="alert") if state.error else None
    return [line, error]


def _cluster(sources: Sources, shown: ShownPass, state: LoopState, healths: Healths) -> list[Content]:
    status = cluster_status(shown.current, sources.configuration())
    waits = [wait for workload in status.workloads for wait in workload.waits]
    return [
        list(glance(status, healths, state.done, sources.caches(), sources.clock.monotonic(), tables.set_path)),
        element(
            "section",
            element("h2", "Sets", id="sets"),
            tables.graph_table(status.graphs, healths, status.now),
            tables.workload_table(status.workloads, healths, status.now),
            tables.binding_table(status.bindings, status.now),
        ),
        element("section", element("h2", "Not settled"), tables.wait_table(waits, status.now)),
    ]


def _plan(shown: ShownPass) -> Content:
    """What the next pass does, and what follows if there is a forecast."""
    report = shown.report
    title = "what the next pass does, and what follows" if report.forecast is not None else "what the next pass does"
    return element(
        "section",
        element("h2", "Plan", id="plan"),
        notes(shown),
        folded(title, list(report_sections(report)), is_open=report.changes > 0 or report.forecast is not None),
    )


def notes(shown: ShownPass) -> Content:
    """What is said of no root in particular."""
    return [element("p", notice, class_="note") for notice in shown.notices]


def _health_line(summary: HealthSummary | None) -> Content:
    """The health of a set with its reason and its message; an alert if a user or another controller has to act."""
    if summary is None:
        return None
    about = f"{summary.reason}: {clipped(summary.message, tables.MAX_TEXT)}" if summary.reason else ""
    return element("p", element("strong", summary.health), f" {about}", class_="alert" if summary.health is HealthState.STALLED else None)


def set_page(sources: Sources, state: LoopState, shown: ShownPass, namespace: str, name: str, refresh: int) -> str:
    """The page of one set; empty if there is no such set."""
    workload = next(iter(cluster_status(shown.current, sources.configuration(), name, namespace).workloads), None)
    if workload is None or not name or not namespace:
        return ""
    now, report = shown.current.now, narrowed(shown.report, namespace, name)
    forecast = report.forecast
    root = next((root for root in report.roots if root.root == workload.id), None)
    done = [each for each in state.done if workload.id in (each.root, each.id)]
    replicas = f"{workload.available} of {workload.replicas} replicas available, {workload.updated} updated"
    counts = f"{replicas}, {workload.ready} of {workload.pods} pods ready"
    return page(
        f"{namespace}/{name}",
        element(
            "nav",
            element("a", "all sets", href="/"),
            element("a", "nodes", href=tables.nodes_path(workload.id)),
            element("a", "forecast", href=f"{tables.set_path(workload.id)}{WITH_FORECAST}"),
            element("a", "plan as JSON", href=tables.plan_path(workload.id)),
            aria_label="Pages",
        ),
        element("header", element("h1", PODCLIQUESET.name, " ", code(f"{namespace}/{name}")), _state_line(state)),
        element(
            "main",
            _health_line(healths_of(shown.current).get(workload.id)),
            element("p", tables.state_text(workload.state), f": {counts}"),
            element("p", "part of ", code(str(workload.parent))) if workload.parent else None,
            tables.remarks(workload),
            element("section", element("h2", "Not settled"), tables.wait_table(workload.waits, now)),
            element("section", element("h2", "Gangs"), tables.gang_table(workload.gangs)),
            element("section", element("h2", "Domains"), tables.domain_table(workload.domains)),
            element("section", element("h2", "Operations"), tables.operation_table(done)),
            element(
                "section",
                element("h2", "Plan", id="plan"),
                notes(shown),
                list(refusals(report)),
                root_section(1, root, title=False, forecast=forecast) if root else None,
                list(assumptions(forecast)),
            ),
        ),
        refresh=refresh,
    )
