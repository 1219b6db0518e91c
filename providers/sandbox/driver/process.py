"""NVIDIA's DRA driver for ComputeDomains, played: its controller, its plugins on the nodes, and the daemons that they call for.

They share what they see of the cluster and nothing else: what one has done, the others find in the API.
"""

from collections.abc import Callable
from typing import Protocol

import anyio

from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.settings import Settings
from providers.sandbox.driver.controller import Controller
from providers.sandbox.driver.daemon_sets import DaemonSets
from providers.sandbox.driver.daemons import Daemons
from providers.sandbox.driver.facts import Facts
from providers.sandbox.driver.plugins import Plugins
from providers.sandbox.driver.publishing import Publishing


class Part(Protocol):
    """One of the driver's processes."""

    async def run(self) -> None:
        """Play, for ever."""
        ...


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Serve ComputeDomains, for ever."""
    driver = settings.driver
    facts = Facts(driver.namespace)
    publishing = Publishing(client, clock, driver, facts)
    makers: dict[str, Callable[[], Part]] = {
        "controller": lambda: Controller(client, clock, driver, facts),
        "daemonSets": lambda: DaemonSets(client, clock, driver, facts),
        "daemons": lambda: Daemons(client, clock, driver, facts),
        "plugins": lambda: Plugins(client, clock, settings, facts),
    }
    parts = [make() for name, make in makers.items() if name in driver.parts]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(facts.follow, client, clock)
        tasks.start_soon(publishing.run)
        # Who is missing can only be said once everything has been listed.
        await facts.synced()
        for part in parts:
            tasks.start_soon(part.run)
