"""Connection: the cluster of the options."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.runtime.logs import Log
from engine.runtime.provider import Client
from enginectl.wiring.configuration import Wiring
from providers.cache_state import CachingProvider, InformerObserver
from providers.kubernetes.request_observer import RequestObserver


@asynccontextmanager
async def connect(
    wiring: Wiring, log: Log | None = None, *, requests: RequestObserver | None = None, caches: InformerObserver | None = None
) -> AsyncIterator[tuple[Client, CachingProvider]]:
    """The cluster of the options. Raises `InputError` if there is none, with a message that says what to do.

    A connection that the wiring has is used, and stays open. `log`, if given, is used instead of the log of the options. `requests` and
    `caches` are told of every request, list and watch.
    """
    # Imported here: it takes a third of a second, which a preview without a cluster does not need.
    from providers.divided_watch import DivisibleCluster
    from providers.kubernetes.connect import connected

    if wiring.client is not None:
        yield wiring.client, DivisibleCluster(wiring.client, wiring.clock, log or wiring.log, caches)
        return
    async with connected(wiring.source, wiring.clock, observer=requests) as client:
        yield client, DivisibleCluster(client, wiring.clock, log or wiring.log, caches)
