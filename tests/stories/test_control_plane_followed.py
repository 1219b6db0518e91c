"""`engine run` on a real control plane: it follows what is there, so that it asks for nothing twice and misses nothing."""

import io
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from msgspec.structs import replace

from engine.runtime.clock import SystemClock
from engine.runtime.lease import Lease
from engine.runtime.lease_holder import identify
from engine.runtime.logs import logger
from engine.runtime.loop import run
from engine.runtime.passes import Engine
from enginectl.wiring.scope import scope_of
from providers.kubernetes.client import KubernetesClient
from providers.watching import WatchingCluster
from resources.base import kinds
from resources.install.modes import Use
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder
from tests.builders import clique, podcliqueset
from tests.controlplane.accounts import LEASE, user_of
from tests.controlplane.audit import AuditLog
from tests.controlplane.cluster import SYSTEM, ControlPlane
from tests.stories.pods import is_ready
from tests.stories.test_control_plane import SETUP, Audit, connection, define
from tests.waiting import until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "followed"


@asynccontextmanager
async def leading(plane: ControlPlane) -> AsyncIterator[None]:
    """`engine run`, for as long as the block lasts, by an account that may do exactly what that needs."""
    clock, stop, log = SystemClock(), anyio.CancelScope(), io.StringIO()
    async with connection(plane, user_of(plane, SETUP, Use.RUN)) as client:
        where = replace(scope_of(SETUP), namespaces=(NAMESPACE,))
        engine = Engine(WatchingCluster(client, clock), clock, where, BLUEPRINTS, SETUP, events_of=event_builder(SETUP), looks_up_new=False)
        lease = Lease(client, clock, SYSTEM, LEASE, identify())
        async with anyio.create_task_group() as tasks:

            async def lead() -> None:
                await run(engine, lease, logger(log, format="text"), interval=3600.0, stop=stop)

            tasks.start_soon(lead)
            yield
            stop.cancel()
    assert "Traceback" not in log.getvalue(), log.getvalue()


async def until_ready(admin: KubernetesClient, pods: int) -> None:
    """So many pods are there, and all of them are ready."""
    await until_objects(admin, kinds.POD, NAMESPACE, lambda listed: len(listed) == pods and all(map(is_ready, listed.values())))


async def until_gone(admin: KubernetesClient) -> None:
    """Neither sets nor pods are left."""
    for kind in (kinds.PODCLIQUESET, kinds.POD):
        await until_objects(admin, kind, NAMESPACE, lambda listed: not listed)


def asked(plane: ControlPlane, verb: str) -> Counter[str]:
    """How often the operator has asked that of each kind in our namespace. A kind that is not served is asked for about once a minute."""
    answered = (one for one in AuditLog(plane).entries() if one["responseStatus"]["code"] != 404)
    ours = (one["objectRef"] for one in answered if one["verb"] == verb)
    return Counter(one["resource"] for one in ours if one.get("namespace") == NAMESPACE)


async def test_everything_is_listed_once_and_changes_are_noticed_without_asking(control_plane: ControlPlane) -> None:
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        async with leading(control_plane):
            await admin.create(kinds.PODCLIQUESET, NAMESPACE, podcliqueset("web", clique("worker", 2), replicas=2, namespace=NAMESPACE))
            await until_ready(admin, 4)
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "web", {"spec": {"replicas": 3}}, subresource="scale")
            await until_ready(admin, 6)
            # Somebody takes a pod away: with an interval of an hour, only a watch can tell.
            victim = (await admin.list(kinds.POD, NAMESPACE)).items[0]["metadata"]["name"]
            await admin.delete(kinds.POD, NAMESPACE, victim, grace=0)
            await until_ready(admin, 6)
            audit = Audit(control_plane)
            await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "web", propagation="Background")
            await until_gone(admin)

        assert {code for _, code in audit.read().refused} <= {404}
        assert set(asked(control_plane, "list").values()) == {1}
        assert asked(control_plane, "create")["pods"] == 7
