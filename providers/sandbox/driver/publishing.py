"""Publishing: kinds and classes, once, where they are not there yet; that the controller is up; and every simulated node's devices."""

from typing import Final

from engine.errors import AlreadyExists, NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, uid_of
from providers.sandbox.actors.nodes import is_simulated
from providers.sandbox.actors.settings import Driver
from providers.sandbox.driver.facts import Facts
from providers.sandbox.installation.installation import installation, slice_name, slice_of
from providers.sandbox.installation.kinds import CONTROLLER, RESOURCE_SLICE
from resources.base.kinds import DEPLOYMENT

INSTALLATION: Final = ""
"""The errand that is no node's."""
_UP: Final = {"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}}


class Publishing:
    """What has been installed is not watched over: who deletes a definition has a cluster without it."""

    def __init__(self, client: Client, clock: Clock, settings: Driver, facts: Facts) -> None:
        self._client, self._settings, self._facts = client, settings, facts
        self._agenda: Agenda[str] = Agenda(clock)
        facts.nodes.tell(self._saw_node)

    async def run(self) -> None:
        """Install, and publish for ever."""
        self._agenda.add(INSTALLATION)
        await self._facts.slices.synced.wait()
        await self._agenda.work(self._look, workers=2)

    def _saw_node(self, key: Key, old: Body | None, new: Body | None) -> None:
        if old is None or new is None or is_simulated(old) != is_simulated(new):
            self._agenda.add(key[1])

    async def _look(self, name: str) -> None:
        if name == INSTALLATION:
            return await self._install()
        node, there = self._facts.nodes.get("", name), self._facts.slices.get("", slice_name(name))
        if node is None and there is not None:
            await self._take_back(there)
        elif node is not None and is_simulated(node) and there is None:
            await self._publish(name, uid_of(node))

    async def _install(self) -> None:
        for kind, body in installation(self._settings.namespace):
            try:
                await self._client.create(kind, body["metadata"].get("namespace", ""), body)
            except AlreadyExists:
                continue
        if "controller" in self._settings.parts:
            await self._report()

    async def _report(self) -> None:
        """Tell that the controller is up, where a Deployment stands for it: nobody else looks after that."""
        try:
            await self._client.patch(DEPLOYMENT, self._settings.namespace, CONTROLLER, _UP, subresource="status")
        except NotFound:
            return

    async def _publish(self, node: str, uid: str) -> None:
        try:
            await self._client.create(RESOURCE_SLICE, "", slice_of(node, uid))
        except AlreadyExists:
            return

    async def _take_back(self, body: Body) -> None:
        try:
            await self._client.delete(RESOURCE_SLICE, "", body["metadata"]["name"], uid=uid_of(body))
        except NotFound:
            return
