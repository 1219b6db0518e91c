"""The same story on a real control plane: real admission, garbage collection and scheduling, and an audit log that tells what we asked."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from engine.runtime.clock import SystemClock
from engine.runtime.lease import Lease
from engine.runtime.lease_holder import identify
from engine.runtime.passes import Engine
from engine.runtime.session import sync
from engine.runtime.sync_report import Ending, SyncReport
from enginectl.wiring.scope import scope_of
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from providers.schedulers.kube import KUBE, kube_scheduler
from providers.watching import WatchingCluster
from resources.base import kinds
from resources.install.modes import Use
from resources.ports.configuration import Configuration, GangMode
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder
from resources.schema.crds import crds
from tests.builders import clique, podcliqueset
from tests.controlplane.accounts import LEASE, user_of
from tests.controlplane.audit import AuditLog
from tests.controlplane.cluster import SYSTEM, ControlPlane
from tests.controlplane.gangs import are_asked_for
from tests.stories import stage
from tests.stories.forecasts import assert_as_forecast, forecast_on
from tests.waiting import PATIENCE, eventually, until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


def as_asked(setup: Configuration) -> Configuration:
    """The configuration with gangs of kube-scheduler, if control planes are asked to serve PodGroups (`make e2e GANGS=on`)."""
    if not are_asked_for() or KUBE not in setup.schedulers:
        return setup
    return replace(setup, schedulers={**setup.schedulers, KUBE: kube_scheduler(GangMode.AUTO)})


SETUP = as_asked(stage.SETUP)
REPLICAS = 50
NAMESPACE = "stories"
NOT_FOUND = (("get", 404), ("list", 404), ("watch", 404))
"""Answers to reads that are no refusal: there is no such object, e.g. the Lease before its first holder, or no such kind."""
CHILDREN = (kinds.POD, kinds.PODCLIQUE, kinds.PODGANG, kinds.SERVICE, kinds.ROLE, kinds.ROLE_BINDING)


class Audit:
    """What the operator has asked since this was last read, events and the lease apart.

    An Event that an earlier process has written is found by creating it: that answer is no refusal.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._log = AuditLog(plane, plane.audit_log.stat().st_size if plane.audit_log.exists() else 0)
        self.writes: Counter[str] = Counter()
        self.trials = 0
        """How many creates of pods were dry runs."""
        self.refused: list[tuple[str, int]] = []

    def read(self) -> "Audit":
        entries = self._log.entries()
        reported = [entry for entry in entries if entry["objectRef"]["resource"] not in ("events", "leases")]
        trials = [entry for entry in reported if "dryRun=All" in entry["requestURI"]]
        self.trials = len(trials)
        self.writes = Counter(
            f"{entry['verb']} {entry['objectRef']['resource']}"
            for entry in reported
            if entry["verb"] not in ("list", "get") and entry not in trials
        )
        answers = [(entry["verb"], entry["requestURI"], entry["responseStatus"]["code"]) for entry in entries]
        self.refused = [
            (uri, code)
            for verb, uri, code in answers
            if code >= 400 and (verb, code) not in NOT_FOUND and not (code == 409 and "/events" in uri)
        ]
        return self


@asynccontextmanager
async def connection(plane: ControlPlane, user: str) -> AsyncIterator[KubernetesClient]:
    async with connected(Source(str(plane.kubeconfig(user))), SystemClock()) as client:
        yield client


async def synced(
    plane: ControlPlane, namespace: str = NAMESPACE, setup: Configuration = SETUP, *, rivalled: bool = False, patience: float = PATIENCE
) -> SyncReport[object]:
    """`engine sync` with connections and a memory of its own, by an account that may do exactly what that needs.

    If all of it succeeds, it has done what `engine diff` forecast just before. `rivalled`: somebody else does the same meanwhile, so that
    less may be left to do.
    """
    clock, setup = SystemClock(), as_asked(setup)
    async with connection(plane, user_of(plane, setup, Use.SYNC)) as client:
        forecast = await forecast_on(client, setup, namespace)
        where = replace(scope_of(setup), namespaces=(namespace,))
        engine = Engine(WatchingCluster(client, clock), clock, where, BLUEPRINTS, setup, events_of=event_builder(setup))
        report = await sync(engine, Lease(client, clock, SYSTEM, LEASE, identify()), patience=patience)
    assert_as_forecast(forecast, report, rivalled=rivalled)
    return report


async def define(admin: KubernetesClient, namespace: str = NAMESPACE, *more: dict[str, Any]) -> None:
    """A namespace in which pods can be created, and our kinds, until they are served and discovered.

    `more` are further definitions, or others in place of ours.
    """
    definitions = tuple({each["metadata"]["name"]: each for each in (*crds(), *more)}.values())
    await admin.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for definition in definitions:
        await admin.patch(kinds.CRD, "", definition["metadata"]["name"], definition, how="apply", force=True)
    await until_objects(admin, kinds.CRD, "", lambda definitions: all(map(_is_established, definitions.values())))
    for kind in (*kinds.OURS, kinds.SCALING_ADAPTER):
        await admin.list(kind)  # The first answer may be "too early", which the client waits out.
    defined = {(each["spec"]["group"], each["spec"]["names"]["kind"]) for each in definitions}

    async def are_discovered() -> bool:
        return defined <= {(kind.group, kind.name) for kind in await admin.kinds()}

    await eventually(are_discovered)
    await until_objects(admin, kinds.SERVICE_ACCOUNT, namespace, lambda accounts: "default" in accounts)


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


async def test_fifty_replicas_come_up_scale_and_go_with_few_writes_and_no_refusal(control_plane: ControlPlane) -> None:
    async with connection(control_plane, "admin") as admin:
        await define(admin)
        audit = Audit(control_plane)

        async def scale(replicas: int) -> None:
            await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "web", {"spec": {"replicas": replicas}}, subresource="scale")

        async def pods() -> int:
            return len((await admin.list(kinds.POD, NAMESPACE)).items)

        async def settle() -> Audit:
            report = await synced(control_plane)
            assert (report.ending, report.failures) == (Ending.DONE, ())
            seen = audit.read()
            assert seen.refused == []
            return seen

        await admin.create(kinds.PODCLIQUESET, NAMESPACE, podcliqueset("web", clique("worker", 2), replicas=REPLICAS, namespace=NAMESPACE))
        assert (await settle()).writes.total() <= 10 * REPLICAS
        assert await pods() == 2 * REPLICAS

        assert (await settle()).writes.total() == 0

        await scale(REPLICAS + 5)
        assert (await settle()).writes["create pods"] == 10

        await scale(REPLICAS - 5)
        assert (await settle()).writes["delete pods"] == 20
        assert await pods() == 2 * (REPLICAS - 5)

        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "web", propagation="Background")
        await settle()
        left = [body["metadata"]["name"] for kind in CHILDREN for body in (await admin.list(kind, NAMESPACE)).items]
        assert left == []
