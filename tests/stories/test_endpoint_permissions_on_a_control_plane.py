"""What `engine run` serves, on a real control plane: its certificate and its reviews use exactly what its role allows for them."""

import io
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.runtime.clock import SystemClock
from engine.runtime.logs import logger
from enginectl.actions.publishing import Publisher
from enginectl.base.options import Options
from enginectl.serving.template_access import TemplateReader
from enginectl.wiring.configuration import Wiring, configuration_of
from enginectl.wiring.published_configuration import known_configuration
from providers.certificates.bundles import ServedService, WebhookTarget
from providers.certificates.self_made import CertificatePlace, SelfMadeCertificate
from providers.reference_caches import ReferenceCaches
from resources.admission.consent_rules import TemplateAccess
from resources.admission.look_ups import look_ups
from resources.admission.request import Act, Request
from resources.base import kinds
from resources.install.modes import Use
from resources.install.permissions import (
    ACCESS_REVIEW,
    MUTATING_WEBHOOKS,
    TOKEN_REVIEW,
    VALIDATING_WEBHOOKS,
    ServedEndpoints,
    endpoint_permissions,
    installation_permissions,
)
from resources.install.roles import Account
from resources.install.webhooks import SERVICE, WEBHOOKS
from resources.settings import valid_settings
from tests.controlplane.accounts import EVERYTHING, grant
from tests.controlplane.audit import Requests, Right, rights
from tests.controlplane.cluster import SYSTEM, ControlPlane
from tests.enginectl.publications import publication
from tests.stories.test_control_plane import connection
from tests.stories.test_permissions_on_a_control_plane import prepare
from tests.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "endpoints"
SECRET = "grove-webhook-server-cert"
MASTERS = {"groups": ["system:masters"]}
KIND = {True: MUTATING_WEBHOOKS, False: VALIDATING_WEBHOOKS}


@asynccontextmanager
async def working(*run: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """These run while the block runs."""
    async with anyio.create_task_group() as tasks:
        for each in run:
            tasks.start_soon(each)
        yield
        tasks.cancel_scope.cancel()


def review(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """A review without a name."""
    group = TOKEN_REVIEW.api_version if kind == TOKEN_REVIEW.name else ACCESS_REVIEW.api_version
    return {"apiVersion": group, "kind": kind, "metadata": {}, "spec": spec}


async def test_what_is_published_is_read_and_kept_with_exactly_what_is_allowed_for_it(enforcing_plane: ControlPlane) -> None:
    plane, account, clock = enforcing_plane, Account(SYSTEM, "publisher"), SystemClock()
    needed, log, requests = tuple(installation_permissions(Use.RUN)), logger(io.StringIO()), Requests(plane)
    settings = valid_settings({"network": {"domainDrainTimeout": "7m0s"}})
    wiring = Wiring(Options(config=Path("operator.yaml")), settings, configuration_of(settings), clock)
    grant(plane, needed, account, account.name)
    async with connection(plane, "admin") as admin, connection(plane, account.name) as client:
        await admin.create(kinds.CONFIG_MAP, "kube-public", publication({}))
        try:
            known = await known_configuration(wiring, client, writes=True)
            publisher = Publisher(known.wiring, client, log, on_moved=lambda: None)
            publisher.holds(settings.leader_election.resource_name, True)
            async with working(publisher.run):
                await eventually(lambda: requests.read().used[account.user] >= rights(needed))
            body = await admin.get(kinds.CONFIG_MAP, "kube-public", "grove-engine")
        finally:
            await admin.delete(kinds.CONFIG_MAP, "kube-public", "grove-engine")
    requests.read()

    assert "7m0s" in body["data"]["config.yaml"]
    assert requests.denied[account.user] == set()
    assert requests.used[account.user] == rights(needed)


async def test_the_certificate_and_the_reviews_use_exactly_what_is_allowed_for_them(enforcing_plane: ControlPlane) -> None:
    plane, requests = enforcing_plane, Requests(enforcing_plane)
    looked_up = look_ups(EVERYTHING)
    endpoints = ServedEndpoints(
        NAMESPACE,
        SECRET,
        tuple(webhook.configuration for webhook in WEBHOOKS if webhook.mutates),
        tuple(webhook.configuration for webhook in WEBHOOKS if not webhook.mutates),
        tuple(look_up.kind for look_up in looked_up),
        checks_callers=True,
    )
    needed, account, clock, log = tuple(endpoint_permissions(endpoints)), Account(SYSTEM, "endpoints"), SystemClock(), logger(io.StringIO())
    await prepare(plane, NAMESPACE)
    grant(plane, needed, account, account.name)
    async with connection(plane, "admin") as admin, connection(plane, account.name) as client:
        for webhook in WEBHOOKS:
            kind = KIND[webhook.mutates]
            entry = webhook.body({"service": {"namespace": NAMESPACE, "name": SERVICE, "path": webhook.path}}) | {"failurePolicy": "Ignore"}
            body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": webhook.configuration}, "webhooks": [entry]}
            await admin.create(kind, "", body)
        targets = tuple(WebhookTarget(KIND[each.mutates], each.configuration, frozenset({each.name})) for each in WEBHOOKS)
        certificate = SelfMadeCertificate(
            client, clock, log, CertificatePlace(NAMESPACE, SECRET, ServedService(NAMESPACE, SERVICE), targets)
        )
        caches = ReferenceCaches(client, clock, log, looked_up)
        try:
            # An empty Secret, as Grove's chart leaves one, is filled.
            await admin.create(kinds.SECRET, NAMESPACE, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}})
            async with working(certificate.run, caches.run):
                await eventually(lambda: certificate.is_ready() and caches.is_filled())
                await admin.delete(kinds.SECRET, NAMESPACE, SECRET)
                await eventually(lambda: Right("", "secrets", "create") in requests.read().used[account.user])
                await caches.read(look_up.kind.id(NAMESPACE, "missing") for look_up in looked_up)
                await client.create(TOKEN_REVIEW, "", review(TOKEN_REVIEW.name, {"token": "unknown"}))
                path = {"user": "ann", "nonResourceAttributes": {"path": "/debug/plan", "verb": "get"}}
                await client.create(ACCESS_REVIEW, "", review(ACCESS_REVIEW.name, path))
                template = kinds.RESOURCE_CLAIM_TEMPLATE.id(NAMESPACE, "missing")
                admin_asks = Request(Act.CREATE, kinds.PODCLIQUESET.id(NAMESPACE, "web"), {}, user="admin", user_info=MASTERS)
                answers = await TemplateReader(client).access(admin_asks, frozenset({template}))
                assert answers[template] == TemplateAccess(is_permitted=True)
                await eventually(lambda: requests.read().used[account.user] >= rights(needed))
        finally:
            for webhook in WEBHOOKS:
                await admin.delete(KIND[webhook.mutates], "", webhook.configuration)
    requests.read()

    assert requests.denied[account.user] == set()
    assert requests.used[account.user] == rights(needed)
