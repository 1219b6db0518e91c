"""Process: NVIDIA's DRA driver for ComputeDomains, simulated: its controller, its kubelet plugins, and its daemons.

The parts share a cache and nothing else: what one does, the others see in the API.
"""

from collections.abc import Callable
from typing import Protocol

import anyio

from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.driver.cache import Cache
from grove_sandbox.driver.controller import Controller
from grove_sandbox.driver.daemon_sets import DaemonSetController
from grove_sandbox.driver.daemons import Daemons
from grove_sandbox.driver.plugins import Plugins
from grove_sandbox.driver.publisher import Publisher
from grove_sandbox.product import Client, Clock


class Part(Protocol):
    """One of the driver's processes."""

    async def run(self) -> None:
        """Run until cancelled."""
        ...


async def run(client: Client, clock: Clock, options: ActorOptions) -> None:
    """Run the driver until cancelled."""
    driver = options.driver
    cache = Cache(driver.namespace)
    publisher = Publisher(client, clock, driver, cache)
    constructors: dict[str, Callable[[], Part]] = {
        "controller": lambda: Controller(client, clock, driver, cache),
        "daemonSets": lambda: DaemonSetController(client, clock, driver, cache),
        "daemons": lambda: Daemons(client, clock, driver, cache),
        "plugins": lambda: Plugins(client, clock, options, cache),
    }
    parts = [construct() for name, construct in constructors.items() if name in driver.parts]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run, client, clock)
        tasks.start_soon(publisher.run)
        # What is missing is known only after everything has been listed.
        await cache.synced()
        for part in parts:
            tasks.start_soon(part.run)
