"""A fleet of replicas that share a Secret, webhook configurations that call them, and clients that handshake with them."""

import base64
import io
import random
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any

import anyio
import anyio.abc
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from engine.errors import ClusterError
from engine.runtime.logs import logger
from engine.runtime.provider import Client
from grove_sandbox.api.request import Request, Selection
from grove_sandbox.api.verbs import Api
from grove_sandbox.clients.inprocess import InProcessClient
from grove_sandbox.clock import VirtualClock
from providers.certificates.bundles import ServedService, WebhookTarget, targets_of
from providers.certificates.judging import certificates_in
from providers.certificates.secret import stored_in
from providers.certificates.self_made import CertificatePlace, SelfMadeCertificate
from resources.base.kinds import NAMESPACE, SECRET
from resources.install.webhooks import DEFAULT_SET, VALIDATE_SET
from tests.stories.process import Process

SYSTEM = "grove-system"
NAME = "grove-webhook-server-cert"
SERVICE = ServedService(SYSTEM, "grove-engine")
HOST = "grove-engine.grove-system.svc"
TARGETS = targets_of((DEFAULT_SET, VALIDATE_SET))
PLACE = CertificatePlace(SYSTEM, NAME, SERVICE, TARGETS)
NO_CHECK_TIME = 0x200000
"""OpenSSL's flag: handshakes do not look at the clock of the machine, since the tests have one of their own."""


class LeapingClock(VirtualClock):
    """A virtual clock whose wall clock can be set forward, as on a machine that was suspended."""

    def __init__(self) -> None:
        super().__init__()
        self.leaped = timedelta()

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return super().now() + self.leaped


class DistantProcess(Process):
    """A process whose calls take up to `latency` seconds in each direction, so that those of several replicas cross."""

    def __init__(self, client: Client, clock: VirtualClock, latency: float) -> None:
        super().__init__(client)
        self._clock, self._latency = clock, latency

    def __getattr__(self, verb: str) -> Any:
        call = super().__getattr__(verb)

        async def delayed(*arguments: Any, **options: Any) -> Any:
            await self._clock.sleep(random.uniform(0, self._latency))
            try:
                return await call(*arguments, **options)
            finally:
                await self._clock.sleep(random.uniform(0, self._latency))

        return delayed


class Fleet:
    """The cluster, and the replicas in it."""

    def __init__(self, tasks: anyio.abc.TaskGroup, latency: float = 0.0) -> None:
        self._latency = latency
        self.clock = LeapingClock()
        self.api = Api(self.clock, seed=1)
        self.kubectl = InProcessClient(self.api, "kubectl")
        self.log = io.StringIO()
        self.replicas: list[Replica] = []
        self._tasks = tasks
        self._history: dict[str, list[tuple[float, str]]] = {}
        self._handshakes: dict[Any, str] = {}

    async def install(self, *targets: WebhookTarget, service: ServedService = SERVICE, annotations: dict[str, str] | None = None) -> None:
        """Create webhook configurations, as `kubectl apply` of the installation does: without `caBundle`."""
        for target in targets or TARGETS:
            webhooks = [webhook(name, service) for name in (*sorted(target.webhooks), "somebody.else.example.com")]
            metadata = {"name": target.name, "annotations": annotations or {}}
            await self.kubectl.create(target.kind, "", {"metadata": metadata, "webhooks": webhooks})

    def start(self, place: CertificatePlace = PLACE) -> "Replica":
        """Start another replica."""
        process, scope = DistantProcess(InProcessClient(self.api), self.clock, self._latency), anyio.CancelScope()
        replica = Replica(process, SelfMadeCertificate(process, self.clock, logger(self.log, format="text"), place), scope)
        self.replicas.append(replica)
        self._tasks.start_soon(replica.run)
        return replica

    def kill(self, replica: "Replica") -> None:
        """End a replica at once."""
        replica.process.dead = True
        replica.scope.cancel()
        self.replicas.remove(replica)

    async def secret(self) -> dict[str, Any]:
        """The Secret as it is now."""
        return await self.kubectl.get(SECRET, SYSTEM, NAME)

    async def write_secret(self, **data: bytes | None) -> None:
        """`kubectl edit` of the Secret: keys with underscores for dots; None removes one."""
        body = {key.replace("_", "."): None if text is None else base64.b64encode(text).decode() for key, text in data.items()}
        await self.kubectl.patch(SECRET, SYSTEM, NAME, {"data": body})

    async def authorities(self) -> tuple[x509.Certificate, ...]:
        """The authorities in the Secret."""
        return stored_in(await self.secret()).authorities

    async def bundle(self, target: WebhookTarget = TARGETS[0]) -> str:
        """`caBundle` of our webhook in a configuration."""
        return bundle_in(await self.kubectl.get(target.kind, "", target.name), target)

    async def set_bundle(self, text: str, target: WebhookTarget = TARGETS[0]) -> None:
        """Overwrite `caBundle`, as `helm upgrade` with an old value does."""
        changes = [{"name": name, "clientConfig": {"caBundle": text}} for name in target.webhooks]
        await self.kubectl.patch(target.kind, "", target.name, {"webhooks": changes}, how="strategic")

    def refused(self, *, lag: float = 0.0) -> list[str]:
        """The ready replicas that a client cannot handshake with if it trusts what a webhook configuration contains now.

        With `lag` also what it contained up to that many seconds ago: an API server may not have noticed the change yet.
        """
        faults = []
        for target in TARGETS:
            for text in self._recent(target, lag):
                for number, replica in enumerate(self.replicas):
                    if replica.certificate.is_ready() and (fault := self._handshake_fault(replica, text)):
                        faults.append(f"replica {number}, {target.name}: {fault}")
        return faults

    def _recent(self, target: WebhookTarget, lag: float) -> list[str]:
        """The bundles of a configuration in the last seconds, as far as this has been called; none if it does not exist."""
        served = self.api.catalogue.find(target.kind.group, target.kind.version, target.kind.plural)
        items = self.api.list(Request(served), Selection()).items
        now, history = self.clock.monotonic(), self._history.setdefault(target.name, [])
        history += [(now, bundle_in(item.body, target)) for item in items if item.body["metadata"]["name"] == target.name]
        while len(history) > 1 and history[1][0] <= now - lag:
            history.pop(0)
        return list(dict.fromkeys(text for _, text in history)) if lag else [text for _, text in history[-1:]]

    def _handshake_fault(self, replica: "Replica", text: str) -> str:
        """The same handshake is made once."""
        key = (replica.certificate.expires_at, text, f"{self.clock.now():%Y-%m-%d}")
        if key not in self._handshakes:
            self._handshakes[key] = handshake_fault(replica.certificate.context, text, self.clock.now())
        return self._handshakes[key]

    def on_write(self, call: Callable[[], None]) -> None:
        """Call after each write of any replica."""
        for replica in self.replicas:
            replica.process.on_write = call


@dataclass(eq=False)
class Replica:
    """One replica."""

    process: Process
    certificate: SelfMadeCertificate
    scope: anyio.CancelScope

    async def run(self) -> None:
        """Until it is killed."""
        with self.scope:
            await self.certificate.run()

    def forbid(self, error: ClusterError, *kinds: str, verbs: tuple[str, ...] = ("get", "patch", "create")) -> None:
        """Refuse calls on these kinds from now on."""
        self.process.refuses = lambda call: error if call[0] in verbs and call[1].name in kinds else None


@asynccontextmanager
async def fleet(replicas: int = 1, *, install: bool = True, place: CertificatePlace = PLACE, latency: float = 0.0) -> AsyncIterator[Fleet]:
    """A fleet that has been running for half a minute."""
    random.seed(1)
    async with anyio.create_task_group() as tasks:
        made = Fleet(tasks, latency)
        await made.kubectl.create(NAMESPACE, "", {"metadata": {"name": SYSTEM}})
        if install:
            await made.install()
        for _ in range(replicas):
            made.start(place)
        await made.clock.advance(30)
        yield made
        tasks.cancel_scope.cancel()


def webhook(name: str, service: ServedService) -> dict[str, Any]:
    """A webhook that calls the Service."""
    return {
        "name": name,
        "clientConfig": {"service": {"namespace": service.namespace, "name": service.name, "path": "/"}},
        "rules": [{"apiGroups": ["grove.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["podcliquesets"]}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def bundle_in(body: Any, target: WebhookTarget) -> str:
    """`caBundle` of our webhook in a configuration; empty if there is none."""
    return next((each["clientConfig"].get("caBundle") or "" for each in body["webhooks"] if each["name"] in target.webhooks), "")


def handshake_fault(server: ssl.SSLContext, bundle: str, now: datetime, host: str = HOST) -> str:
    """Why a client that trusts the bundle refuses the server; empty if it does not. A real handshake, in memory."""
    authorities = base64.b64decode(bundle).decode()
    if not authorities:
        return "nothing is trusted"
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.load_verify_locations(cadata=authorities)
    client.verify_flags |= NO_CHECK_TIME
    try:
        certificate = x509.load_der_x509_certificate(presented(server, client, host))
        subject: Any = x509.DNSName(host) if not host[0].isdigit() else x509.IPAddress(ip_address(host))
        store = Store(list(certificates_in(authorities.encode())))
        PolicyBuilder().store(store).time(now.replace(tzinfo=None)).build_server_verifier(subject).verify(certificate, [])
    except (ssl.SSLError, VerificationError) as error:
        return str(error)
    return ""


def presented(server: ssl.SSLContext, client: ssl.SSLContext, host: str = HOST) -> bytes:
    """The certificate that the server presents to the client, in DER. Raises `ssl.SSLError` if one of them refuses the other."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(6):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ends[0].getpeercert(binary_form=True) or b""
