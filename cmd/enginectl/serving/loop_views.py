"""Loop views: what people and programs may look at in a running loop: the pending plan, and pages if they are asked for."""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from engine.errors import ClusterError
from engine.runtime.lease import LEASE
from engine.runtime.lease_holder import holder_of
from engine.runtime.observers import LoopObserver
from engine.runtime.passes import Pass
from engine.runtime.provider import Client
from enginectl.output.node_table import Top
from enginectl.serving.debug import Show, ShownPass, WhoLeads, debug_routes
from enginectl.serving.last_pass import LastPass, LoopState
from enginectl.wiring.configuration import Wiring
from providers.cache_state import CacheState
from providers.http.message import Routes
from resources.install.publication import place_of
from resources.ports.configuration import Configuration


class LoopViews:
    """The last pass of one loop, and the routes that show it. `with_pages`: pages for people too.

    `foresee` and `see_nodes` read with a client, when a page is requested, one at a time.
    """

    def __init__(
        self,
        wiring: Wiring,
        show: Show,
        foresee: Callable[[Pass[Configuration], Client], Awaitable[ShownPass]],
        see_nodes: Callable[[Pass[Configuration], Client, str, str], Awaitable[Top]],
        *,
        with_pages: bool = False,
    ) -> None:
        self._wiring, self._show, self._foresee, self._see_nodes, self._with_pages = wiring, show, foresee, see_nodes, with_pages
        self._last = LastPass(wiring.clock)

    @property
    def observer(self) -> LoopObserver[Configuration]:
        """What the loop tells its passes to."""
        return self._last

    def routes(self, client: Client, configuration: Callable[[], Configuration], caches: Callable[[], Sequence[CacheState]]) -> Routes:
        """The routes, not yet protected. `client` belongs to the thread that serves them."""

        def state() -> LoopState:
            return self._last.state

        reading = anyio.Lock()

        async def foresee(current: Pass[Configuration]) -> ShownPass:
            async with reading:
                return await self._foresee(current, client)

        async def see_nodes(current: Pass[Configuration], namespace: str, name: str) -> Top:
            async with reading:
                return await self._see_nodes(current, client, namespace, name)

        who_leads = holder_reader(self._wiring, client)
        routes = debug_routes(state, self._show, foresee, who_leads)
        if self._with_pages:
            from enginectl.serving.page import Sources, page_routes

            sources = Sources(state, self._show, foresee, see_nodes, configuration, caches, self._wiring.clock, who_leads)
            routes = {**routes, **page_routes(sources)}
        return routes


def holder_reader(wiring: Wiring, client: Client) -> WhoLeads:
    """Reads from the cluster who holds the lease."""
    place = place_of(wiring.settings.leader_election)

    async def holder() -> str:
        if place is None:
            return ""
        try:
            lease = holder_of(await client.get(LEASE, place.namespace, place.name))
        except ClusterError:
            return ""
        return str(lease) if lease.identity else ""

    return holder
