"""Publishing: the leader of `engine run` keeps what the installation publishes equal to what it plans with."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import anyio
from msgspec.structs import replace

from engine.errors import ClusterError, NotFound
from engine.runtime.logs import Log
from engine.runtime.observers import LoopObserver
from engine.runtime.provider import Client
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.other_writers import operator_has_started
from enginectl.wiring.published_configuration import (
    INSTALL,
    PublicationState,
    PublishedConfiguration,
    fault_lines,
    installation_called,
    lease_called,
    published_in,
)
from providers.snapshot import as_yaml
from resources.base.kinds import CONFIG_MAP
from resources.install.publication import (
    CALLED,
    NAME,
    NAMESPACE,
    RUNS_IN,
    InstallationRecord,
    contents,
    differences,
    place_of,
    published,
    value_of,
)
from resources.ports.configuration import Configuration

INTERVAL: Final = 30.0
"""Seconds between two reads of the object."""


class Publisher(LoopObserver[Configuration]):
    """What a process of `engine run` does with the object. With shards the holder of the first one leads.

    It is the observer of a loop. Several releases may run side by side during an upgrade: only the leader writes, and what it writes is
    what it plans with. A difference that this process has not caused must be there at two reads: the file and the object may have been
    applied together, and a pod sees a change of its mounted ConfigMap later than one of the object.

    Every process reads it, whether it leads or not: if it names another Lease at two reads, the installation has moved or is another one,
    and `on_moved` is called, so that there are not two writers. It is called as well when Grove's operator has been started.
    """

    def __init__(
        self,
        wiring: Wiring,
        client: Client,
        log: Log,
        *,
        namespace: str = "",
        shards: int = 1,
        on_moved: Callable[[], None],
    ) -> None:
        """`namespace`: where this process runs; empty outside a pod. Without `--config` nothing is written."""
        self._client, self._log, self._clock = client, log, wiring.clock
        self._keeps = wiring.options.config is not None
        self._namespace, self._shards, self._on_moved = namespace, shards, on_moved
        self._election = wiring.settings.leader_election
        """The leader election of the start: it does not change while the process runs."""
        self._ours = self._published(wiring)
        self._leads = False
        self._is_changed = anyio.Event()
        """Set when the object is to be read at once."""
        self._seen: tuple[str, ...] = ()
        """The differences that the last read found, and that were not written."""
        self._elsewhere_since: float | None = None
        """Since when the object has named another Lease, on the monotonic clock."""
        self.moved = ""
        """Why this process may not go on; empty if it may."""
        self._logged = ""

    def _published(self, wiring: Wiring) -> InstallationRecord:
        settings = wiring.settings.model_copy(update={"leader_election": self._election})
        return published(settings, wiring.configuration.waiter_image, self._namespace, shards=self._shards)

    def use(self, wiring: Wiring) -> None:
        """Publish another configuration from now on."""
        self._ours = self._published(wiring)
        self._is_changed.set()

    def leading(self, leads: bool) -> None:
        """Without leader election: this process writes."""
        if not self._election.enabled:
            self._lead(leads)

    def holds(self, lease: str, holds: bool) -> None:
        """The holder of the first Lease publishes."""
        if lease == self._election.resource_name:
            self._lead(holds)

    def _lead(self, leads: bool) -> None:
        if leads and not self._leads:
            self._is_changed.set()
        self._leads = leads

    async def run(self) -> None:
        """Read the object whenever it may have to change, and every `INTERVAL` seconds, until the installation has moved."""
        while not self.moved:
            is_due, self._is_changed = self._is_changed.is_set(), anyio.Event()
            try:
                await self._look(is_due=is_due)
            except ClusterError as error:
                self._log_once(str(error))
            await self._end_beside_the_operator()
            await self._sleep(INTERVAL, self._is_changed.wait)

    async def _end_beside_the_operator(self) -> None:
        """End if Grove's operator writes now: it was started later. What may not be read is not known."""
        with suppress(ClusterError):
            if fault := await operator_has_started(self._client, self._clock, place_of(self._election)):
                self.moved = fault
                self._on_moved()

    async def _sleep(self, seconds: float, change: Callable[[], Awaitable[object]]) -> None:
        """Wait that many seconds, or until there is a change."""
        async with anyio.create_task_group() as tasks:

            async def end_when_changed() -> None:
                await change()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end_when_changed)
            await self._clock.sleep(seconds)
            tasks.cancel_scope.cancel()

    async def _look(self, *, is_due: bool) -> None:
        """Write the object if we lead and it says something else than we plan with. Raises the server's errors."""
        try:
            body = await self._client.get(CONFIG_MAP, NAMESPACE, NAME)
        except NotFound:
            return self._log_once(f"there is no {CALLED}: commands without --config plan with the defaults; install it: {INSTALL}")
        existing = published_in(body)
        if self._is_elsewhere(existing) or not (self._leads and self._keeps):
            return None
        different = self._differences(existing)
        is_new, self._seen, self._logged = different != self._seen, different, ""
        if not different or (is_new and not is_due):
            return None
        await self._client.replace(CONFIG_MAP, NAMESPACE, NAME, self._body(body))
        self._log.info("configuration published", object=CALLED, fields=", ".join(different))
        self._seen = ()
        return None

    def _is_elsewhere(self, existing: PublishedConfiguration) -> bool:
        """Whether the object names another Lease than that of this process. If it did so at the last read too, this process ends."""
        theirs, ours = place_of(existing.settings.leader_election), place_of(self._election)
        if existing.state is not PublicationState.FOUND or str(theirs) == str(ours):
            self._elsewhere_since = None
            return False
        now = self._clock.monotonic()
        if self._elsewhere_since is None:
            self._elsewhere_since = now
        reason = f"the {installation_called(existing.publication)} has {lease_called(theirs)}, and this process {lease_called(ours)}"
        self._log_once(f"{reason}: it ends unless that changes")
        if now - self._elsewhere_since >= INTERVAL:
            self.moved = f"{reason}: two programs would write at the same time"
            self._on_moved()
        return True

    def _differences(self, existing: PublishedConfiguration) -> tuple[str, ...]:
        """What the object says otherwise, e.g. the paths of fields."""
        if existing.state is not PublicationState.FOUND:
            return tuple(fault_lines(existing))
        ours, theirs = self._ours, existing.publication
        others = (("version", ours.version == theirs.version), ("namespace", not ours.namespace or ours.namespace == theirs.namespace))
        return (*differences(ours, theirs), *(name for name, is_equal in others if not is_equal))

    def _body(self, existing: dict[str, Any]) -> dict[str, Any]:
        """The object as it is to be, bound to the revision that was read. Outside a pod it is not known where the installation runs."""
        ours = replace(self._ours, namespace=self._ours.namespace or value_of(existing, RUNS_IN))
        data = contents(ours, as_yaml(ours.configuration))
        return {**{key: value for key, value in existing.items() if key != "binaryData"}, "data": data}

    def _log_once(self, reason: str) -> None:
        """Log why the configuration is not published, unless that was logged last, or another process publishes it."""
        if not ((self._leads and self._keeps) or self._elsewhere_since is not None):
            return
        if reason != self._logged:
            self._log.warning("configuration not published", reason=reason)
        self._logged = reason
