"""What is read from a real server's own words: its discovery, its access reviews, its scheduler and its controller of claims."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from engine.ids import Kind
from grove_sandbox.installation.installation import definitions, installation, slice_of
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import CHANNEL_CLASS, COMPUTE_DOMAIN, DOMAIN_LABEL, TARGET_LABEL
from providers.kubernetes.client import KubernetesClient
from providers.queries import missing_verbs, run_queries, served_apis
from resources.base import kinds
from resources.install.permissions import permissions
from resources.install.preflight import checks
from resources.ports.checks import CheckResult, Diagnosis, Installation
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from tests.controlplane.cluster import ControlPlane
from tests.stories.test_control_plane import connection, define
from tests.waiting import until_objects

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "seen"
FABRIC = Nvidia(auto=True)
SETUP = Configuration({}, "", fabrics=(FABRIC,))
Body = dict[str, Any]
NO_DEVICE = "cannot allocate all claims"
LATE = datetime(2100, 1, 1, tzinfo=UTC)


def pod(name: str, node: str) -> Body:
    """A pod on that node that claims a place in the domain."""
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": [{"operator": "Exists"}],
        "resourceClaims": [{"name": "mnnvl-claim", "resourceClaimTemplateName": "demo-0"}],
        "containers": [{"name": "main", "image": "example/worker:1", "resources": {"claims": [{"name": "mnnvl-claim"}]}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def template(uid: str) -> Body:
    """What the driver would answer to the domain."""
    requests = [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}]
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "ComputeDomainChannelConfig", "domainID": uid}
    config = [{"requests": ["channel"], "opaque": {"driver": "compute-domain.nvidia.com", "parameters": parameters}}]
    metadata = {"name": "demo-0", "namespace": NAMESPACE, "labels": {DOMAIN_LABEL: uid, TARGET_LABEL: "Workload"}}
    spec = {"spec": {"devices": {"requests": requests, "config": config}}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


async def until(admin: KubernetesClient, kind: Kind, well: Callable[[Body], bool]) -> None:
    """Wait until an object of that kind, in our namespace, is so."""
    await until_objects(admin, kind, NAMESPACE, lambda objects: any(map(well, objects.values())))


async def diagnoses(admin: KubernetesClient) -> list[Diagnosis]:
    """What is said of the domain."""
    domain = COMPUTE_DOMAIN.id(NAMESPACE, "demo-0")
    answers = await run_queries(admin, FABRIC.domain_queries(domain), await served_apis(admin))
    assert [answer.error for answer in answers.results.values() if answer.error] == []
    return list(FABRIC.diagnose(domain, answers, LATE))


def has_no_room(body: Body) -> bool:
    """Whether the scheduler has found no node for a pod because of its claim, which a controller has created before."""
    reported = (body.get("status") or {}).get("conditions") or ()
    return any(one.get("reason") == "Unschedulable" and NO_DEVICE in one["message"] for one in reported)


async def test_a_real_server_s_words_are_understood(control_plane: ControlPlane) -> None:
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE, *map(dict, definitions()))
        node = sorted(body["metadata"]["name"] for body in (await admin.list(kinds.NODE)).items)[0]
        classes = [dict(body) for kind, body in installation() if kind.name == kinds.DEVICE_CLASS.name]
        shared = [(kinds.DEVICE_CLASS, body) for body in classes] + [(kinds.RESOURCE_SLICE, dict(slice_of(node)))]
        for kind, body in shared:
            await admin.patch(kind, "", body["metadata"]["name"], body, how="apply", force=True)
        try:
            await admin.create(kinds.POD, NAMESPACE, pod("early", node))
            await until(admin, kinds.EVENT, lambda body: body.get("reason") == "FailedResourceClaimCreation")
            early = await diagnoses(admin)
            await admin.delete(kinds.POD, NAMESPACE, "early", grace=0)

            spec = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "demo-0"}}}
            head = {"apiVersion": COMPUTE_DOMAIN.api_version, "kind": "ComputeDomain", "metadata": {"name": "demo-0"}, "spec": spec}
            made = await admin.create(COMPUTE_DOMAIN, NAMESPACE, head)
            await admin.create(kinds.RESOURCE_CLAIM_TEMPLATE, NAMESPACE, template(made["metadata"]["uid"]))
            await admin.create(kinds.POD, NAMESPACE, pod("a", node))
            await until(admin, kinds.POD, lambda body: body["metadata"]["name"] == "a" and bool(body["spec"].get("nodeName")))
            await admin.create(kinds.POD, NAMESPACE, pod("b", node))
            await until(admin, kinds.POD, lambda body: body["metadata"]["name"] == "b" and has_no_room(body))
            capacity_notes = await diagnoses(admin)

            offered = await served_apis(admin)
            answers = await run_queries(admin, FABRIC.installation_queries(), offered)
            rights = await missing_verbs(admin, permissions(BLUEPRINTS, SETUP, "default"), "")
            judged = {check.subject: check for check in checks(Installation(offered, answers, ()), rights, SETUP.fabrics)}
        finally:
            for kind, body in shared:
                await admin.delete(kind, "", body["metadata"]["name"])

    assert [one.cause for one in early if "FailedResourceClaimCreation" in one.observation] == [
        "ResourceClaimTemplate demo-0 does not exist: ComputeDomain demo-0 does not exist"
    ]
    (full,) = [one for one in capacity_notes if NO_DEVICE in one.observation]
    assert full.observation.startswith("pod b: Pending") and f"{node} is used by pod {NAMESPACE}/a of this domain" in full.cause
    good = [
        "server version",
        "CRD podcliquesets.grove.io",
        "CRD computedomains.resource.nvidia.com",
        "ComputeDomain: spec.channel.resourceClaimTemplate.name",
        "ComputeDomain: numNodes",
        "API resource.k8s.io",
        f"DeviceClass {CHANNEL_CLASS}",
        "ResourceSlices of compute-domain.nvidia.com",
        "permissions",
    ]
    assert {what: judged[what].outcome for what in good} == dict.fromkeys(good, CheckResult.GOOD)
    assert not any(what.startswith("permissions on") for what in judged)
    assert not any(check.outcome is CheckResult.UNKNOWN for check in judged.values())
