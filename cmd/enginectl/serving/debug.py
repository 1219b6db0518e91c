"""Debug: `/debug/plan`, the plan that the loop has computed last, as `engine diff -o json` would show it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from anyio import to_thread
from msgspec import Struct
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.report.json import document, moment_text, printed
from engine.report.model import Report
from engine.runtime.passes import Pass
from enginectl.serving.last_pass import LoopState
from providers.http.message import JSON, HttpResponse, IncomingRequest, Routes, refusal
from resources.install.roles import PLAN_URL
from resources.ports.configuration import Configuration

HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class ShownPass(Struct, frozen=True, eq=False):
    """A pass as `engine diff` shows it."""

    current: Pass[Configuration]
    """The pass, with what is remarked about its roots."""
    report: Report
    notices: tuple[str, ...] = ()
    """What is missing in the cluster or could not be read, about no root in particular."""


Show = Callable[[Pass[Configuration]], ShownPass]
"""Returns a pass of the loop as it is shown."""
Foresee = Callable[[Pass[Configuration]], Awaitable[ShownPass]]
"""Returns a pass of the loop with what follows it: the cluster is read, and a forecast is made, for this call, one at a time."""
ReadState = Callable[[], LoopState]
WhoLeads = Callable[[], Awaitable[str]]
"""Returns the holder of the lease as a text for people; empty if it has none or that is not known."""


def debug_routes(read: ReadState, show: Show, foresee: Foresee, who_leads: WhoLeads) -> Routes:
    """The route of the plan. It is written in a worker thread, for one request at a time: a large plan takes long.

    With `forecast=true` it has the forecast as well, and what that needs of nodes and quotas.
    """
    limit = anyio.CapacityLimiter(1)

    async def answer(request: IncomingRequest) -> HttpResponse:
        state = read()
        if state.current is None:
            return refusal(503, await why_no_plan(state, who_leads), **HEADERS, **{"Retry-After": "5"})
        current, query = state.current, request.query
        foreseen = await foresee(current) if asks_for_forecast(request) else None

        def make() -> bytes:
            report = narrowed((foreseen or show(current)).report, query.get("namespace", ""), query.get("name", ""))
            return f"{printed({**document(report), 'pass': pass_entry(current, state)})}\n".encode()

        return HttpResponse(body=await to_thread.run_sync(make, limiter=limit), content_type=JSON, headers=HEADERS)

    return {("GET", PLAN_URL): answer}


def asks_for_forecast(request: IncomingRequest) -> bool:
    """Whether what follows the pass is asked for, which takes long and reads the cluster."""
    return request.query.get("forecast") == "true"


async def why_no_plan(state: LoopState, who_leads: WhoLeads) -> str:
    """Why there is no plan to show, as a sentence for people."""
    if state.leads:
        reason = f": the last attempt failed: {state.error}" if state.error else ""
        return f"no plan has been made yet{reason}"
    holder = await who_leads()
    return f"this process does not lead, so it makes no plan; the lease is {f'held by {holder}' if holder else 'not held'}"


def pass_entry(current: Pass[Configuration], state: LoopState) -> dict[str, Any]:
    """When the plan was made, how many seconds observing and planning took, and what becomes of it."""
    return {
        "at": moment_text(current.now),
        "tookSeconds": round(current.took, 3),
        "leads": state.leads,
        "executing": state.is_executing,
        "lastError": state.error or None,
    }


def narrowed(report: Report, namespace: str, name: str) -> Report:
    """The report with the roots of that namespace and name only, and the roots that are parts of them. Empty: any."""

    def is_asked(id: ResourceId) -> bool:
        return namespace in ("", id.namespace) and name in ("", id.name)

    if not namespace and not name:
        return report
    return replace(report, roots=tuple(root for root in report.roots if is_asked(root.root) or (root.parent and is_asked(root.parent))))
