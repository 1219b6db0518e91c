"""Registry: the actors of the sandbox by name, and the function that runs them."""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

import anyio

from grove_sandbox.actors import autoscaler, claims, deployments, garbage, kubelet, lws, namespace, protection, scheduler, token
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.driver import process as driver
from grove_sandbox.product import Client, Clock

Actor = Callable[[Client, Clock, ActorOptions], Coroutine[Any, Any, None]]

ACTORS: Final[Mapping[str, Actor]] = {
    "scheduler": scheduler.run,
    "kubelet": kubelet.run,
    "garbage": garbage.run,
    "namespace": namespace.run,
    "protection": protection.run,
    "token": token.run,
    "autoscaler": autoscaler.run,
    "claims": claims.run,
    "driver": driver.run,
    "lws": lws.run,
    "deployments": deployments.run,
}
"""The actors by the names that users choose them by."""


async def run_actors(client: Client, clock: Clock, names: Iterable[str], options: ActorOptions) -> None:
    """Run these actors, each once, until cancelled. Raises `KeyError` for a name that is not in `ACTORS`."""
    actors = [ACTORS[name] for name in dict.fromkeys(names)]
    async with anyio.create_task_group() as tasks:
        for actor in actors:
            tasks.start_soon(actor, client, clock, options)
