"""Process: NVIDIA's DRA driver for ComputeDomains, simulated: its controller, its kubelet plugins, and its daemons.

The parts share a cache and nothing else: what one does, the others see in the API.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import anyio

from grove_sandbox.actors.body import Body, Key, uid_of
from grove_sandbox.actors.nodes import is_simulated
from grove_sandbox.actors.options import ActorOptions, DriverOptions
from grove_sandbox.actors.store import delete
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.driver.cache import Cache
from grove_sandbox.driver.controller import Controller
from grove_sandbox.driver.daemon_sets import DaemonSetController
from grove_sandbox.driver.daemons import Daemons
from grove_sandbox.driver.plugins import Plugins
from grove_sandbox.installation.installation import installation, slice_name, slice_of
from grove_sandbox.installation.kinds import CONTROLLER
from grove_sandbox.product import AlreadyExists, Client, Clock, Kind, NotFound, kinds

INSTALLATION: Final = ""
"""The key of the installation; all other keys are names of nodes."""
_AVAILABLE: Final = {"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}}


class Publisher:
    """Installed objects are not watched: a definition that is deleted is not created again."""

    def __init__(self, client: Client, clock: Clock, options: DriverOptions, cache: Cache) -> None:
        self._client, self._options, self._cache = client, options, cache
        self._queue: WorkQueue[str] = WorkQueue(clock)
        cache.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        """Install, then publish until cancelled."""
        self._queue.add(INSTALLATION)
        await self._cache.slices.synced.wait()
        await self._queue.run(self._process, workers=2)

    def _on_node(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is None or new is None or is_simulated(old) != is_simulated(new):
            self._queue.add(key[1])

    async def _process(self, name: str) -> None:
        if name == INSTALLATION:
            return await self._install()
        node, published = self._cache.nodes.get("", name), self._cache.slices.get("", slice_name(name))
        if node is None and published is not None:
            await delete(self._client, kinds.RESOURCE_SLICE, published)
        elif node is not None and is_simulated(node) and published is None:
            with suppress(AlreadyExists):
                await self._client.create(kinds.RESOURCE_SLICE, "", slice_of(name, uid_of(node)))

    async def _install(self) -> None:
        for kind, body in installation(self._options.namespace):
            await self._install_one(kind, body)
        if "controller" in self._options.parts:
            # Where the controller has a Deployment, no other controller writes its status.
            with suppress(NotFound):
                await self._client.patch(kinds.DEPLOYMENT, self._options.namespace, CONTROLLER, _AVAILABLE, subresource="status")

    async def _install_one(self, kind: Kind, body: Body) -> None:
        """Create it unless it is there, as it is for every process but the first."""
        namespace = body["metadata"].get("namespace", "")
        try:
            await self._client.get(kind, namespace, body["metadata"]["name"])
        except NotFound:
            with suppress(AlreadyExists):
                await self._client.create(kind, namespace, body)


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
