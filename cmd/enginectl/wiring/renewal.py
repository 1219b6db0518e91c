"""Renewal: where a command that writes renews its Leases, and how it ends when its own work hangs."""

import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.runtime.logs import Log
from engine.runtime.provider import Client
from engine.runtime.renewal import IN_THE_SAME_LOOP, Renewal
from enginectl.base.exit_codes import Exit
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.connection import connect
from providers.kubernetes.request_observer import RequestObserver

LOGGING_TIME = 2.0
"""Seconds for which a process that ends because it hangs tries to log it: what reads its log may be what hangs."""


@asynccontextmanager
async def renewing(wiring: Wiring, log: Log, *, requests: RequestObserver | None = None) -> AsyncGenerator[Renewal]:
    """A thread with a connection of its own, while the block runs. With a connection that the wiring has: the event loop of the block.

    If work hangs, the process ends with the exit code of a lost lease, once its Lease has been released. `requests` is told of every
    request.
    """
    if wiring.client is not None:
        yield IN_THE_SAME_LOOP
        return
    from engine.runtime.renewal_thread import renewal_thread

    @asynccontextmanager
    async def connected() -> AsyncGenerator[Client]:
        async with connect(wiring, log, requests=requests) as (client, _):
            yield client

    def end_process(message: str) -> None:
        logging = threading.Thread(target=log.error, args=("the work hangs: this process ends",), kwargs={"error": message}, daemon=True)
        logging.start()
        logging.join(LOGGING_TIME)
        os._exit(Exit.NOT_LEADER)  # What hangs cannot be asked to end in order.

    async with renewal_thread(connected, end_process) as thread:
        yield thread
