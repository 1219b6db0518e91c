"""Trial: a workload that meets a fault while users change it, and the promises that are checked when it is over."""

import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
from msgspec.structs import replace

from engine.runtime.clock import SystemClock
from engine.runtime.passes import Engine, preview
from enginectl.wiring.scope import scope_of
from providers.kubernetes.client import KubernetesClient
from providers.schedulers.kube import kube_scheduler
from providers.watching import WatchingCluster
from resources.ports.configuration import GangMode
from resources.registry import BLUEPRINTS
from tests.controlplane.cluster import ControlPlane
from tests.reliability.audit import Deeds
from tests.reliability.installation import Installation
from tests.reliability.workload import Workload
from tests.stories.engine_processes import EngineProcess
from tests.stories.stage import DEFAULT, SETUP
from tests.waiting import eventually

AT_REST = 1.5
"""Seconds in which nothing may be written once everything is as users have asked, and its statuses as well."""


class Trial:
    """One fault, from the first change of the users on."""

    def __init__(self, plane: ControlPlane, workload: Workload, since: int) -> None:
        self._plane, self._workload, self._since = plane, workload, since
        self._fault_ended_at = self._recovered_at = 0.0

    @property
    def deeds(self) -> Deeds:
        """What our processes have done since the first change."""
        return Deeds(self._plane, self._workload.namespace, self._since)

    async def until_written(self, number: int) -> None:
        """Wait until our processes have made so many writes."""
        await eventually(lambda: self.deeds.writes.total() >= number)

    def end_fault(self) -> None:
        """The time of recovery counts from now on."""
        self._fault_ended_at = time.monotonic()

    async def until_changed(self) -> None:
        """Wait until the changes have been made."""
        await self._workload.until_changed()
        self._recovered_at = self._recovered_at or time.monotonic()

    @property
    def recovery_time(self) -> float:
        """Seconds from the end of the fault until the changes were made."""
        return self._recovered_at - self._fault_ended_at


async def nothing() -> None:
    """The default for `begin`."""


@asynccontextmanager
async def trial(
    plane: ControlPlane,
    admin: KubernetesClient,
    installation: Installation,
    processes: Sequence[EngineProcess],
    *,
    killed: int = 0,
    begin: Callable[[], Awaitable[None]] = nothing,
) -> AsyncIterator[Trial]:
    """Bring the workload up, ask for changes, let the block disturb them, and wait until they are made. Then check what is promised.

    `begin` begins a fault that is there before the changes. All processes still run at the end, except the first `killed` ones.
    """
    namespace = installation.namespace
    workload = Workload(admin, namespace)
    await workload.bring_up()
    kept = await workload.pods("kept")
    await until_at_rest(plane, admin, namespace)
    disturbed = Trial(plane, workload, Deeds(plane, namespace).end)

    await begin()
    await workload.ask_for_changes()
    yield disturbed
    await disturbed.until_changed()
    await until_at_rest(plane, admin, namespace)

    deeds, all_deeds = disturbed.deeds, Deeds(plane, namespace)
    figures = {
        "fault": namespace,
        "recovered in seconds": round(disturbed.recovery_time, 1),
        "writes": deeds.writes.total(),
        "requests": deeds.total,
    }
    sys.stdout.write(json.dumps({**figures, "lists": deeds.lists, "refused": dict(deeds.refused)}) + "\n")
    assert [process.exit_code is None for process in processes] == [number >= killed for number in range(len(processes))]
    assert [line for process in processes for line in process.logged() if "exception" in line] == []
    assert all_deeds.made_twice == {}
    assert [name for name in all_deeds.deleted if not any(changed in name for changed in ("updated", "deleted"))] == []
    assert set(all_deeds.deleted.values()) <= {1}
    assert await workload.pods("kept") == kept


AS_RUN: Final = replace(SETUP, schedulers={DEFAULT: kube_scheduler(GangMode.AUTO)})
"""The configuration that `engine run` has if nothing is configured."""


async def remaining(admin: KubernetesClient, namespace: str) -> list[str]:
    """What `engine diff` would show: the operations of the next pass of a process that remembers nothing."""
    clock = SystemClock()
    engine = Engine(WatchingCluster(admin, clock), clock, replace(scope_of(AS_RUN), namespaces=(namespace,)), BLUEPRINTS, AS_RUN)
    return [operation.key for plan in (await preview(engine)).planned.plans for operation in plan.operations]


async def until_at_rest(plane: ControlPlane, admin: KubernetesClient, namespace: str) -> None:
    """Wait until nothing remains to be done in the namespace, and nothing has been written for `AT_REST` seconds."""

    async def is_at_rest() -> bool:
        end = Deeds(plane, namespace).end
        await anyio.sleep(AT_REST)
        return Deeds(plane, namespace, end).writes.total() == 0 and not await remaining(admin, namespace)

    await eventually(is_at_rest)
