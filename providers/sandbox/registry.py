"""Registry: every actor of the sandbox by name, and how they are run.

Each is one coroutine that lists, watches, and acts on what is there and not on what happened; so each may be stopped and started at
any time, and played on a real API server as well as on the sandbox's. Their writes belong to a client of their own: what a kubelet
writes must not look like the engine's.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

import anyio

from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors import autoscaler, claims, garbage, kubelet, namespace, scheduler, token
from providers.sandbox.actors.settings import Settings
from providers.sandbox.driver import process as driver

Actor = Callable[[Client, Clock, Settings], Coroutine[Any, Any, None]]

ACTORS: Final[Mapping[str, Actor]] = {
    "scheduler": scheduler.run,
    "kubelet": kubelet.run,
    "garbage": garbage.run,
    "namespace": namespace.run,
    "token": token.run,
    "autoscaler": autoscaler.run,
    "claims": claims.run,
    "driver": driver.run,
}
"""Every actor by the name that users know it by."""


async def run_actors(client: Client, clock: Clock, names: Iterable[str], settings: Settings) -> None:
    """Play these actors, each once, until cancelled. Raises `KeyError` for a name that is not in `ACTORS`."""
    chosen = [ACTORS[name] for name in dict.fromkeys(names)]
    async with anyio.create_task_group() as tasks:
        for actor in chosen:
            tasks.start_soon(actor, client, clock, settings)
