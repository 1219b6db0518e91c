"""NVIDIA's DRA driver for ComputeDomains, played: its controller, its plugins on the nodes, and the daemons that they call for.

They share what they see of the cluster and nothing else: what one has done, the others find in the API.
"""

import anyio

from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.driver.controller import Controller
from providers.sandbox.actors.driver.daemon_sets import DaemonSets
from providers.sandbox.actors.driver.daemons import Daemons
from providers.sandbox.actors.driver.facts import Facts
from providers.sandbox.actors.driver.plugins import Plugins
from providers.sandbox.actors.driver.publishing import Publishing
from providers.sandbox.actors.settings import Settings


async def run(client: Client, clock: Clock, settings: Settings) -> None:
    """Serve ComputeDomains, for ever."""
    facts, driver = Facts(), settings.driver
    publishing = Publishing(client, clock, driver, facts)
    plugins, daemons = Plugins(client, clock, settings, facts), Daemons(client, clock, driver, facts)
    controller = Controller(client, clock, driver, facts) if driver.controller else None
    daemon_sets = DaemonSets(client, clock, facts) if driver.daemon_sets else None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(facts.follow, client, clock)
        tasks.start_soon(publishing.run)
        # Who is missing can only be said once everything has been listed.
        await facts.synced()
        for part in (controller, daemon_sets, daemons, plugins):
            if part is not None:
                tasks.start_soon(part.run)
