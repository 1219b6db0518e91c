"""Endpoints: everything that `engine run` serves, in one thread with an event loop and a connection of its own."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from engine.runtime.logs import Log
from engine.runtime.provider import Client
from enginectl.serving.access import TokenReviewer, for_loopback, with_token
from enginectl.serving.admission import AdmissionRules, Judge, admission_routes
from enginectl.serving.checks import caches as caches_check
from enginectl.serving.checks import ready
from enginectl.serving.loop_views import LoopViews
from enginectl.serving.observability import Observability, measured
from enginectl.serving.servers import Served, addresses
from enginectl.serving.template_access import TemplateReader
from enginectl.wiring.configuration import DEFAULT_NAMESPACE, Wiring, pod_namespace, protection
from enginectl.wiring.connection import connect
from enginectl.wiring.scope import Selection
from providers.certificates.bundles import ServedService, targets_of
from providers.certificates.given import GivenCertificate
from providers.certificates.self_made import CertificatePlace, SelfMadeCertificate
from providers.certificates.server_certificate import ServerCertificate
from providers.http.server import serve
from providers.http.thread import Started, in_thread
from providers.reference_caches import ReferenceCaches
from resources.admission.look_ups import LookUp, look_ups
from resources.install.webhooks import GRAPH_DEFINITION, SERVICE, could_be_installed

SWITCH_INTERVAL: Final = 0.0005
"""Seconds after which a computing thread lets another one run, while endpoints are served (Python's default: 0.005).

A review waits that long several times while the planner computes.
"""


class Endpoints:
    """What is served, and the rules of admission in use. `use` may be called in any thread."""

    def __init__(self, wiring: Wiring, selection: Selection, log: Log, observability: Observability, views: LoopViews) -> None:
        self._wiring, self._selection, self._log = wiring, selection, log
        self._observability, self._views = observability, views
        self._rules = rules_of(wiring)
        self._judge: Judge | None = None
        self._caches: ReferenceCaches | None = None

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Serve while the block runs. Raises `CannotBind` in a group before the block."""
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            async with in_thread(self._serve):
                yield
        finally:
            sys.setswitchinterval(interval)

    def use(self, wiring: Wiring) -> None:
        """Judge by the rules of another configuration from now on."""
        self._rules = rules_of(wiring)
        if self._judge is not None and self._caches is not None:
            self._judge.rules = self._rules
            self._caches.use(self._look_ups())

    def _look_ups(self) -> tuple[LookUp, ...]:
        return look_ups(self._rules.configuration)

    async def _serve(self, started: Started, stop: anyio.Event) -> None:
        """The body of the thread."""
        wiring, observability = self._wiring, self._observability
        async with connect(wiring, self._log, requests=observability.metrics.requests) as (client, _):
            certificate = certificate_of(wiring, client, self._log) if wiring.settings.server.webhooks.port else None
            chosen = self._selection.namespaces
            # The webhooks of an installation with namespaces are asked about those only.
            elsewhere = chosen != wiring.configuration.namespaces
            self._caches = ReferenceCaches(client, wiring.clock, self._log, self._look_ups(), chosen, asked_elsewhere=elsewhere)
            self._judge = Judge(self._rules, self._caches, TemplateReader(client), observability.metrics.reviews)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._caches.run)
                if certificate is not None:
                    observability.metrics.certificates.expiry = partial(expiry_times, certificate)
                    tasks.start_soon(certificate.run)
                context = certificate.context if certificate is not None else None
                served = addresses(wiring.settings, self._routes(client, self._judge, self._caches, certificate), context)
                await serve(served, self._log, wiring.clock, stop=stop, started=started)
                tasks.cancel_scope.cancel()

    def _routes(self, client: Client, judge: Judge, caches: ReferenceCaches, certificate: ServerCertificate | None) -> Served:
        """The routes of each address. `certificate`: None without webhooks."""
        observability = self._observability
        readiness = [
            ready("admission", caches.is_filled, "the objects that admission rules look up are still being listed"),
            caches_check(caches.caches, self._wiring.clock, name="admission-caches", if_none="nothing is looked up"),
        ]
        if certificate is not None:
            readiness.insert(0, ready("certificate", certificate.is_ready, "the certificate of the webhooks is not ready yet"))
        clock, caches_of = self._wiring.clock, observability.metrics.caches
        shown = self._views.routes(client, lambda: self._rules.configuration, lambda: caches_of.read())
        reviews = measured(admission_routes(judge), observability.metrics.reviews, clock)
        return Served(
            {**reviews, **with_token(shown, TokenReviewer(client, clock))},
            observability.probe_routes(*readiness),
            {**observability.metrics_routes(), **for_loopback(shown)},
        )


def expiry_times(certificate: ServerCertificate) -> Mapping[str, datetime | None]:
    """When the certificate that is served and its authority expire."""
    return {"serving": certificate.expires_at, "ca": certificate.authority_expires_at}


def rules_of(wiring: Wiring) -> AdmissionRules:
    """The rules of admission for a configuration."""
    return AdmissionRules(wiring.configuration, protection(wiring.settings, wiring.configuration))


def certificate_of(wiring: Wiring, client: Client, log: Log) -> ServerCertificate:
    """The certificate of the webhooks: made by us and kept in a Secret, or given as files."""
    webhooks = wiring.settings.server.webhooks
    if webhooks.cert_provision_mode == "manual":
        return GivenCertificate(Path(webhooks.server_cert_dir), wiring.clock, log)
    namespace = pod_namespace() or DEFAULT_NAMESPACE
    service = ServedService(namespace, SERVICE)
    has_graphs = wiring.configuration.dynamo.enabled
    targets = targets_of(could_be_installed(graphs=has_graphs), (GRAPH_DEFINITION,) if has_graphs else ())
    place = CertificatePlace(namespace, webhooks.secret_name, service, targets, webhooks.bind_address)
    return SelfMadeCertificate(client, wiring.clock, log, place)
