"""SelfMadeCertificate: certificates that we make, keep in a Secret that all replicas share, and renew; authorities that we publish."""

import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import Any, Final

from cryptography import x509
from msgspec import Struct

from engine.errors import AlreadyExists, ClusterError, Conflict, Forbidden, NotFound
from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from engine.runtime.provider import Client
from providers.certificates import bundles as configurations
from providers.certificates import secret as secrets
from providers.certificates.bundles import Bundles, ServedService, WebhookTarget, bundles_of
from providers.certificates.judging import is_signed_by, time_fault
from providers.certificates.live_context import LiveCertificate
from providers.certificates.making import Pair
from providers.certificates.rotation import Action, RotationStep, Stored, after, issuer_of, next_step, pair_fault, published_authorities
from providers.certificates.server_certificate import Problems
from resources.base.kinds import SECRET

PERIOD: Final = 10.0
"""Seconds between two rounds: how long an overwritten `caBundle`, or a certificate of another replica, is not noticed."""
RETRY: Final = 1.0
"""Seconds after the first round that has failed; then twice as many, up to `PERIOD`."""
MOST_DOUBLINGS: Final = 5
ATTEMPTS: Final = 6
"""How often the Secret is read in one round. Other replicas may be faster, and a step may be followed by another one."""

ROUND: Final = "certificate provisioning"


class CertificatePlace(Struct, frozen=True):
    """Where an installation keeps its certificates, and by which names and configurations it is called."""

    namespace: str
    """The namespace of the Secret."""
    secret: str
    service: ServedService
    targets: tuple[WebhookTarget, ...]
    address: str = ""
    """The address that the server listens on, if it is a specific one: webhooks with a URL may use it."""

    def names(self) -> tuple[str, ...]:
        """What the server's certificate is valid for, the name that API servers use first."""
        service, namespace = self.service.name, self.service.namespace
        dns = (f"{service}.{namespace}.svc", service, f"{service}.{namespace}", f"{service}.{namespace}.svc.cluster.local")
        return (*dns, self.address) if self.address.strip(":0.") else dns


class SelfMadeCertificate(LiveCertificate):
    """A `ServerCertificate` for `certProvisionMode: auto`. Replicas need not know one another: each looks, and takes the next step."""

    def __init__(self, client: Client, clock: Clock, log: Log, place: CertificatePlace) -> None:
        self._client = client
        self._clock = clock
        self._log = log
        self._place = place
        self._names = place.names()
        super().__init__()
        self._trust = Trust()
        self._problems = Problems(log)
        self._is_known_to_be_trusted = False
        """Whether no webhook configuration has refused what is served, when that was read for the first time."""
        self._signing_until: datetime | None = None

    @property
    def authority_expires_at(self) -> datetime | None:
        """When the authority in the Secret expires."""
        return self._signing_until

    def is_ready(self) -> bool:
        """Whether a valid certificate is served that the webhook configurations have trusted.

        A `caBundle` that is overwritten later does not make us unready: without endpoints the API server could not call us either.
        """
        pair = self._live.pair
        return self._is_known_to_be_trusted and pair is not None and not time_fault(pair.certificate, self._clock.now())

    async def run(self) -> None:
        """Look and take the next step every `PERIOD` seconds, for ever."""
        failures = 0
        while True:
            failures = 0 if await self._round_survived() else min(failures + 1, MOST_DOUBLINGS)
            pause = min(RETRY * 2 ** (failures - 1), PERIOD) if failures else PERIOD
            await self._clock.sleep(pause * random.uniform(0.9, 1.1))

    async def _round_survived(self) -> bool:
        """One round. Returns whether nothing is left that should be tried again soon; raises nothing."""
        try:
            finished = await self._round()
        except ClusterError as error:
            self._problems.note(ROUND, str(error))
            return False
        except Exception as error:  # A defect of ours must not end the server that the certificate is for.
            self._problems.note(ROUND, repr(error), exc_info=error)
            return False
        self._problems.end(ROUND)
        return finished

    async def _round(self) -> bool:
        """Read, take steps, publish, serve. Returns whether nothing is left that should be tried again soon."""
        # Before the Secret: if another replica publishes an authority that we have not read, our own publication conflicts with it.
        reading = await self._read_configurations()
        self._observe(reading)
        stored = await self._brought_forward(reading)
        published = await self._publish(reading, stored)
        self._observe(published)
        self._serve(stored)
        return not published.has_failed

    def _observe(self, reading: "Reading") -> None:
        self._trust.observe(reading.bundles if reading.is_complete else None, self._clock.monotonic())

    async def _read_configurations(self) -> "Reading":
        """Our entries in the webhook configurations that exist."""
        read: list[Bundles] = []
        is_complete, has_failed = True, False
        for target in self._place.targets:
            try:
                bundles = bundles_of(await self._client.get(target.kind, "", target.name), target, self._place.service)
            except NotFound:
                continue
            except ClusterError as error:
                is_complete, has_failed = False, has_failed or not isinstance(error, Forbidden)
                self._note(str(target), error, f"get {target.kind.plural} {target.name}")
                continue
            if isinstance(bundles, str):
                self._problems.note(str(target), f"left alone: {bundles}")
            elif bundles.texts:
                read.append(bundles)
        return Reading(tuple(read), is_complete, has_failed)

    async def _brought_forward(self, reading: "Reading") -> Stored:
        """What the Secret contains after every step that can be taken now."""
        for _ in range(ATTEMPTS):
            secret = await self._secret()
            stored = secrets.stored_in(secret or {})
            if secret is not None and secrets.is_of_cert_manager(secret):
                self._problems.note(self._place.secret, "cert-manager fills this Secret; set server.webhooks.certProvisionMode to manual")
                return stored
            step = next_step(stored, self._names, self._is_settled, self._clock.now())
            if step.action is Action.NOTHING:
                return stored
            await self._take(step, secret, stored, reading)
        raise Conflict(f"the Secret {self._place.namespace}/{self._place.secret} changes all the time")

    async def _take(self, step: RotationStep, secret: dict[str, Any] | None, stored: Stored, reading: "Reading") -> None:
        """Write the Secret as it is after the step, if it has not changed since it was read."""
        trusted = [authority for bundles in reading.bundles for authority in bundles.named()]
        wanted = after(step, stored, trusted, self._names, self._clock.now())
        namespace, name = self._place.namespace, self._place.secret
        try:
            if secret is None:
                await self._client.create(SECRET, namespace, secrets.new_secret(namespace, name, wanted))
            else:
                await self._client.patch(SECRET, namespace, name, secrets.change_of(secret, wanted))
        except (Conflict, AlreadyExists):
            return  # Another replica was faster.
        except ClusterError as error:
            self._note(name, error, f"{'create' if secret is None else 'patch'} secrets in {namespace}")
            raise
        self._problems.end(name)
        self._log.info(step.action.value, secret=f"{namespace}/{name}", because=step.reason)

    async def _publish(self, reading: "Reading", stored: Stored) -> "Reading":
        """Let our webhooks trust the authorities in the Secret. Returns what they trust then."""
        now, has_failed = [], reading.has_failed
        for bundles in reading.bundles:
            target, authorities = bundles.target, published_authorities(stored, bundles.named(), self._clock.now())
            change = configurations.change_of(bundles, authorities) if stored.authorities else None
            try:
                if change is not None:
                    await self._client.patch(target.kind, "", target.name, change, how="strategic")
                    self._log.info("certificate authorities were published", configuration=str(target))
                    bundles = bundles.with_authorities(authorities)
            except (Conflict, NotFound):
                has_failed = True  # It has changed since it was read, and is read again soon.
            except ClusterError as error:
                has_failed = has_failed or not isinstance(error, Forbidden)
                self._note(str(target), error, f"patch {target.kind.plural} {target.name}")
            else:
                self._problems.end(str(target))
            now.append(bundles)
        return Reading(tuple(now), reading.is_complete, has_failed)

    def _serve(self, stored: Stored) -> None:
        """Serve the pair in the Secret, unless the one that is served is still trusted and the other not yet."""
        pair, served, now = stored.pair, self._live.pair, self._clock.now()
        self._signing_until = stored.signing.certificate.not_valid_after_utc if stored.signing else None
        if pair is not None and not pair_fault(stored, (), now) and (served is None or served.certificate != pair.certificate):
            if served is None or time_fault(served.certificate, now) or self._trust.refuses(served) or self._is_trusted(pair, stored):
                self._live.use(pair)
                self._is_known_to_be_trusted = False
                self._log.info("server certificate is in use", expires=pair.expires_at.isoformat())
        if self._live.pair is not None and not self._trust.refuses(self._live.pair):
            self._is_known_to_be_trusted = True

    def _is_trusted(self, pair: Pair, stored: Stored) -> bool:
        issuer = issuer_of(pair, stored.authorities)
        return issuer is not None and self._is_settled(issuer)

    def _is_settled(self, authority: x509.Certificate) -> bool:
        return self._trust.is_settled(authority, self._clock.monotonic())

    async def _secret(self) -> dict[str, Any] | None:
        try:
            return await self._client.get(SECRET, self._place.namespace, self._place.secret)
        except NotFound:
            return None
        except ClusterError as error:
            self._note(self._place.secret, error, f"get secrets {self._place.secret} in {self._place.namespace}")
            raise

    def _note(self, subject: str, error: ClusterError, permission: str) -> None:
        """Log the error once; of a 403 the permission that is missing."""
        missing = f"the permission is missing: {permission}" if isinstance(error, Forbidden) else str(error)
        self._problems.note(subject, missing)


class Reading(Struct, frozen=True):
    """What one round has read of the webhook configurations."""

    bundles: tuple[Bundles, ...]
    is_complete: bool
    """Whether all that exist could be read."""
    has_failed: bool
    """Whether reading failed for a reason that may pass."""


SETTLED: Final = 10.0
"""Seconds after which every API server calls webhooks with a configuration that we have read: each keeps a copy that it watches."""


class Trust:
    """What one replica has read of the webhook configurations. Seconds are those of its monotonic clock."""

    def __init__(self) -> None:
        self._bundles: Sequence[Bundles] | None = None
        self._since: Mapping[x509.Certificate, float] = {}
        """When this replica has first read that every configuration trusts an authority, without a gap since."""

    def observe(self, bundles: Sequence[Bundles] | None, now: float) -> None:
        """Note what was read; None if something could not be read, so that nothing is known."""
        self._bundles = bundles
        everywhere = reduce(frozenset.intersection, map(frozenset, (each.trusted() for each in bundles or ()))) if bundles else frozenset()
        self._since = {authority: self._since.get(authority, now) for authority in everywhere}

    def is_settled(self, authority: x509.Certificate, now: float) -> bool:
        """Whether every API server trusts the authority. True if there is no configuration."""
        if self._bundles is None:
            return False
        return not self._bundles or now - self._since.get(authority, now) >= SETTLED

    def refuses(self, pair: Pair) -> bool:
        """Whether some configuration is known not to trust the pair."""
        return bool(self._bundles) and not any(is_signed_by(pair.certificate, authority) for authority in self._since)
