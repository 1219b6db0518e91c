"""Consent across namespaces on a real API server without webhooks: `engine sync`, as from cron, goes by the annotation."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.runtime.clock import SystemClock
from engine.runtime.lease import Lease
from engine.runtime.lease_holder import identify
from engine.runtime.passes import Engine
from engine.runtime.session import sync
from engine.runtime.sync_report import Ending
from enginectl.wiring.scope import scope_of
from providers.kubernetes.client import KubernetesClient
from providers.watching import WatchingCluster
from resources.base import kinds, labels
from resources.install.modes import Use
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder
from tests.builders import claim_template, clique, podcliqueset, share
from tests.controlplane.accounts import LEASE, user_of
from tests.controlplane.cluster import SYSTEM, ControlPlane
from tests.stories.test_control_plane import SETUP, connection, define

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE, VAULT = "consent", "consent-vault"
WHY = (
    f"ResourceClaimTemplate {VAULT}/gpu is not shared with namespace {NAMESPACE}; "
    f"do: add {NAMESPACE} to its annotation {labels.SHARED_WITH}"
)
CONDITION = "ClaimTemplateNotShared"


async def ending(plane: ControlPlane, patience: float) -> Ending:
    """How `engine sync` over both namespaces ends, by an account with exactly its rights."""
    clock = SystemClock()
    async with connection(plane, user_of(plane, SETUP, Use.SYNC)) as client:
        where = replace(scope_of(SETUP), namespaces=(NAMESPACE, VAULT))
        engine = Engine(WatchingCluster(client, clock), clock, where, BLUEPRINTS, SETUP, events_of=event_builder(SETUP))
        return (await sync(engine, Lease(client, clock, SYSTEM, LEASE, identify()), patience=patience)).ending


async def objects(admin: KubernetesClient, kind: Any) -> dict[str, dict[str, Any]]:
    """The objects of a kind by name."""
    return {body["metadata"]["name"]: body for body in (await admin.list(kind, NAMESPACE)).items}


async def test_sync_makes_claims_when_the_annotation_names_the_namespace_and_keeps_and_repairs_them_without(
    control_plane: ControlPlane,
) -> None:
    plane = control_plane
    sharing = share("gpu", namespace=VAULT)
    async with connection(plane, "admin") as admin:
        await define(admin, NAMESPACE)
        await admin.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": VAULT}})
        template = {"metadata": {"name": "gpu"}, "spec": claim_template("gpu")["templateSpec"]}
        await admin.create(kinds.RESOURCE_CLAIM_TEMPLATE, VAULT, template)
        body = podcliqueset("web", clique("worker", resourceSharing=[sharing]), clique("router"), namespace=NAMESPACE)
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, body)

        async def share_with(value: str | None) -> None:
            patch = {"metadata": {"annotations": {labels.SHARED_WITH: value}}}
            await admin.patch(kinds.RESOURCE_CLAIM_TEMPLATE, VAULT, "gpu", patch)

        await share_with(f"{NAMESPACE}-2, other")
        assert await ending(plane, 10) is Ending.STUCK
        assert await objects(admin, kinds.RESOURCE_CLAIM) == {}
        assert [pod.startswith("web-0-router") for pod in await objects(admin, kinds.POD)] == [True]
        stored = (await objects(admin, kinds.PODCLIQUESET))["web"]
        assert {each["type"]: each["message"] for each in stored["status"]["conditions"]}[CONDITION] == WHY
        assert WHY in {event["message"] for event in (await objects(admin, kinds.EVENT)).values() if event["reason"] == CONDITION}

        await share_with(NAMESPACE)
        await ending(plane, 10)
        made = await objects(admin, kinds.RESOURCE_CLAIM)
        pods = await objects(admin, kinds.POD)
        assert (list(made), len(pods)) == (["web-0-worker-all-gpu"], 2)

        await share_with(None)
        await ending(plane, 10)
        assert {name: pod["metadata"]["uid"] for name, pod in (await objects(admin, kinds.POD)).items()} == {
            name: pod["metadata"]["uid"] for name, pod in pods.items()
        }
        worker = next(pod for pod in pods if pod.startswith("web-0-worker"))
        await admin.delete(kinds.POD, NAMESPACE, worker, grace=0)
        await admin.delete(kinds.RESOURCE_CLAIM, NAMESPACE, "web-0-worker-all-gpu")
        await ending(plane, 10)

        again = await objects(admin, kinds.RESOURCE_CLAIM)
        assert list(again) == list(made)
        assert again["web-0-worker-all-gpu"]["metadata"]["uid"] != made["web-0-worker-all-gpu"]["metadata"]["uid"]
        assert again["web-0-worker-all-gpu"]["spec"] == made["web-0-worker-all-gpu"]["spec"]
        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "web", propagation="Background")
        await ending(plane, 30)
