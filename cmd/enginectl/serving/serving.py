"""Serving: what `engine run` serves beside its loop, or nothing."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from engine.runtime.logs import Log
from enginectl.serving.loop_views import LoopViews
from enginectl.serving.observability import Observability
from enginectl.serving.servers import is_serving
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import Selection


class Serving(Protocol):
    """Everything that is served beside a loop."""

    def served(self) -> AbstractAsyncContextManager[None]:
        """Serve while the block runs."""
        ...

    def use(self, wiring: Wiring) -> None:
        """Use another configuration from now on."""
        ...


class NothingServed:
    """`Serving` of a process that serves nothing."""

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Serve nothing."""
        yield

    def use(self, wiring: Wiring) -> None:
        """Do nothing."""


def serving_of(wiring: Wiring, selection: Selection, log: Log, observability: Observability, views: LoopViews) -> Serving:
    """The endpoints, if anything is to be served: then their servers, certificates and pages are loaded."""
    if not is_serving(wiring.settings):
        return NothingServed()
    from enginectl.serving.endpoints import Endpoints

    return Endpoints(wiring, selection, log, observability, views)
