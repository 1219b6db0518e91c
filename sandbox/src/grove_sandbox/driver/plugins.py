"""Plugins: the driver's kubelet plugins; before a pod starts, its node joins the domain and has to become Ready in it."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct

from grove_sandbox.actors import prepare_calls
from grove_sandbox.actors.body import Body, Key, key_of, labels_of, status_of, uid_of
from grove_sandbox.actors.nodes import is_simulated
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.prepare_calls import PrepareCall
from grove_sandbox.actors.work_queue import WorkQueue
from grove_sandbox.driver.cache import Cache, daemons_in
from grove_sandbox.driver.status import READY
from grove_sandbox.driver.teardown import remove_label
from grove_sandbox.installation.kinds import CHANNEL_CONFIG, CONFIG_VERSION
from grove_sandbox.product import Client, Clock, NotFound, nvidia

_FIELDS: Final = {
    CHANNEL_CONFIG: frozenset({"apiVersion", "kind", "domainID", "allocationMode"}),
    nvidia.DAEMON_CONFIG: frozenset({"apiVersion", "kind", "domainID"}),
}


class ClaimConfig(Struct, frozen=True):
    """The uid of the domain, and whether the device is a channel of it (or its daemon)."""

    domain: str
    is_channel: bool


def config_of(claim: Body) -> ClaimConfig:
    """The configuration of the claim. Raises `ValueError` if it can never be prepared."""
    devices = (status_of(claim).get("allocation") or {}).get("devices") or {}
    opaque = [entry.get("opaque") or {} for entry in devices.get("config") or ()]
    configs = [entry.get("parameters") for entry in opaque if entry.get("driver") == nvidia.DRIVER]
    if not configs:
        raise ValueError("no opaque configuration for this driver")
    # The last one counts, and all of them must be valid.
    return [_parse(parameters) for parameters in configs][-1]


def _parse(parameters: Any) -> ClaimConfig:
    if not isinstance(parameters, Mapping):
        raise ValueError("error decoding config parameters: not an object")
    kind, version = parameters.get("kind"), parameters.get("apiVersion")
    if not isinstance(kind, str) or kind not in _FIELDS or version != CONFIG_VERSION:
        raise ValueError(f"error decoding config parameters: no kind {_quoted(kind)} is registered for {_quoted(version)}")
    for name in parameters:
        if name not in _FIELDS[kind]:
            raise ValueError(f"strict decoding error: unknown field {_quoted(name)}")
    domain = parameters.get("domainID")
    if not isinstance(domain, str) or not domain:
        raise ValueError("invalid config: domainID cannot be empty")
    return ClaimConfig(domain, kind == CHANNEL_CONFIG)


def _quoted(text: Any) -> str:
    """A user's text, clipped, on one line."""
    printable = "".join(letter if letter.isprintable() else "?" for letter in str(text)[:80])
    return f'"{printable}"'


CALL_TIMEOUT: Final = 45.0
"""Seconds for which one call is retried."""
FIRST_PAUSE, LAST_PAUSE = 0.25, 3.0


class PermanentError(Exception):
    """The claim cannot be prepared, however often it is tried."""


class RetryableError(Exception):
    """The claim cannot be prepared yet."""


class ClaimItem(NamedTuple):
    """A claim to process; a successor of the same name is another item."""

    key: Key
    uid: str


class Checkpoint(Struct, frozen=True):
    """What a plugin has stored of a claim that is prepared, or being prepared, on its node."""

    node: str
    config: ClaimConfig
    claim: Key
    is_completed: bool = False


class Attempts(Struct):
    """The attempts to answer one call."""

    call: int
    since: float
    count: int = 0


class Plugins:
    """The plugins of all simulated nodes. All maps are by the uid of a claim."""

    def __init__(self, client: Client, clock: Clock, options: ActorOptions, cache: Cache) -> None:
        self._client, self._clock, self._options, self._cache = client, clock, options, cache
        self._queue: WorkQueue[ClaimItem] = WorkQueue(clock)
        self._checkpoints: dict[str, Checkpoint] = {}
        self._attempts: dict[str, Attempts] = {}
        self._daemon_gone_since: dict[str, float] = {}
        self._claim_gone_since: dict[str, float] = {}
        cache.claims.subscribe(self._on_claim)
        cache.cliques.subscribe(self._on_clique)

    async def run(self) -> None:
        """Answer the kubelets' calls until cancelled."""
        await self._cache.synced()
        await self._remove_unused_labels()
        await self._queue.run(self._process)

    def _on_claim(self, key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None and (prepare_calls.call_of(new) is not None or uid_of(new) in self._checkpoints):
            self._restore_checkpoint(new)
            self._queue.add(ClaimItem(key, uid_of(new)))
        if old is not None and uid_of(old) in self._checkpoints and (new is None or uid_of(new) != uid_of(old)):
            self._queue.add(ClaimItem(key, uid_of(old)))

    def _restore_checkpoint(self, claim: Body) -> None:
        """After a restart the claims say what is prepared."""
        call = prepare_calls.call_of(claim)
        if call is None or not call.answered or uid_of(claim) in self._checkpoints or not prepare_calls.results_of(claim):
            return
        try:
            config = config_of(claim)
        except ValueError:
            return
        is_completed = call.reason == prepare_calls.DONE
        self._checkpoints[uid_of(claim)] = Checkpoint(prepare_calls.node_of(claim), config, key_of(claim), is_completed=is_completed)

    def _on_clique(self, key: Key, old: Body | None, new: Body | None) -> None:
        """Claims on nodes whose daemon has joined or left may have got their domain back, or lost it."""
        before, after = ({daemon["nodeName"] for daemon in daemons_in(body)} if body is not None else set() for body in (old, new))
        if changed := before ^ after:
            for uid, checkpoint in self._checkpoints.items():
                if checkpoint.node in changed:
                    self._queue.add(ClaimItem(checkpoint.claim, uid))

    async def _remove_unused_labels(self) -> None:
        """Remove the labels of nodes on which nothing is prepared: the claims were deleted while no plugin ran."""
        claims = [claim for claim in self._cache.claims.objects.values() if prepare_calls.call_of(claim)]
        used = {(prepare_calls.node_of(claim), _domain_of(claim)) for claim in claims}
        for (_, name), node in list(self._cache.nodes.objects.items()):
            label = labels_of(node).get(nvidia.DOMAIN_LABEL)
            if label is not None and is_simulated(node) and (name, label) not in used:
                await remove_label(self._client, self._cache.nodes, node)

    async def _process(self, item: ClaimItem) -> float | None:
        claim = self._cache.claims.get(*item.key)
        is_current = claim is not None and uid_of(claim) == item.uid and bool(prepare_calls.results_of(claim))
        call = prepare_calls.call_of(claim) if claim is not None and is_current else None
        if claim is None or call is None:
            return await self._clean_up(item.uid)
        self._claim_gone_since.pop(item.uid, None)
        if not is_simulated(self._cache.nodes.get("", prepare_calls.node_of(claim))):
            return None
        if not call.is_prepare:
            await self._unprepare(item.uid)
            await prepare_calls.clear(self._client, self._cache.claims, claim)
            return None
        if call.is_answered:
            return await self._check_fabric(claim, call)
        return await self._try(claim, call)

    async def _try(self, claim: Body, call: PrepareCall) -> float | None:
        attempts = self._attempts.get(uid_of(claim))
        if attempts is None or attempts.call != call.number:
            attempts = self._attempts[uid_of(claim)] = Attempts(call.number, self._clock.monotonic())
        try:
            await self._prepare(claim)
        except PermanentError as error:
            await self._answer(claim, call, prepare_calls.FAILED, str(error))
        except RetryableError as error:
            return await self._retry(claim, call, attempts, str(error))
        else:
            await self._answer(claim, call, prepare_calls.DONE, "")
        return None

    async def _retry(self, claim: Body, call: PrepareCall, attempts: Attempts, error: str) -> float | None:
        if self._clock.monotonic() - attempts.since >= CALL_TIMEOUT:
            await self._answer(claim, call, prepare_calls.SKIPPED, error)
            return None
        if call.answered != call.number:
            await self._answer(claim, call, prepare_calls.IN_PROGRESS, error)
        attempts.count += 1
        return float(min(FIRST_PAUSE * (1 << min(attempts.count - 1, 16)), LAST_PAUSE))

    async def _answer(self, claim: Body, call: PrepareCall, reason: str, message: str) -> None:
        condition = prepare_calls.prepared_condition(call.number, reason, message, self._clock.now())
        await prepare_calls.set_condition(self._client, self._cache.claims, claim, condition)
        if reason != prepare_calls.IN_PROGRESS:
            self._attempts.pop(uid_of(claim), None)

    async def _prepare(self, claim: Body) -> None:
        """The checks, in the driver's order. Raises `PermanentError` and `RetryableError`."""
        uid, node = uid_of(claim), prepare_calls.node_of(claim)
        try:
            config = config_of(claim)
        except ValueError as error:
            raise PermanentError(str(error)) from None
        results = prepare_calls.results_of(claim)
        if len(results) != 1:
            raise RetryableError("unexpected results")
        self._check_overlap(uid, node, config, results[0]["device"])
        domain = self._cache.domain(config.domain)
        if domain is None:
            raise PermanentError(f"ComputeDomain not found: {config.domain}")
        self._checkpoints[uid] = Checkpoint(node, config, key_of(claim))
        if config.is_channel:
            if domain["metadata"]["namespace"] != claim["metadata"]["namespace"]:
                raise PermanentError("the ResourceClaim's namespace is different than the ComputeDomain's namespace")
            if not self._options.driver.host_managed:
                await self._join(node, config.domain)
        self._checkpoints[uid] = Checkpoint(node, config, key_of(claim), is_completed=True)

    async def _join(self, node: str, domain: str) -> None:
        await self._add_label(node, domain)
        if (self._cache.membership(domain, node) or {}).get("status") != READY:
            raise RetryableError("current node not ready in ComputeDomain")

    def _check_overlap(self, uid: str, node: str, config: ClaimConfig, device: str) -> None:
        """A node has one channel: it belongs to the claim that has completed until that is unprepared."""
        for other, checkpoint in self._checkpoints.items():
            is_same_device = checkpoint.node == node and checkpoint.config.is_channel == config.is_channel
            if other != uid and is_same_device and checkpoint.is_completed:
                raise RetryableError(f"requested device {device} is already allocated to different claim {checkpoint.claim[1]}")

    async def _add_label(self, name: str, domain: str) -> None:
        """Add the node to the domain, also if the domain is being deleted."""
        node = self._cache.nodes.get("", name)
        if node is None:
            raise RetryableError(f"node {name} not found")
        label = labels_of(node).get(nvidia.DOMAIN_LABEL)
        if label == domain:
            return
        if label is not None:
            raise RetryableError("label already exists for a different ComputeDomain")
        try:
            await self._cache.nodes.patch(self._client, node, {"metadata": {"labels": {nvidia.DOMAIN_LABEL: domain}}})
        except NotFound:
            raise RetryableError(f"node {name} not found") from None

    async def _clean_up(self, claim: str) -> float | None:
        """Unprepare a claim that was force-deleted, after the time that stopping its containers takes."""
        if claim not in self._checkpoints:
            return None
        now = self._clock.monotonic()
        remaining = self._claim_gone_since.setdefault(claim, now) + self._options.termination - now
        if remaining > 0:
            return remaining
        await self._unprepare(claim)
        return None

    async def _unprepare(self, claim: str) -> None:
        """Remove the node from the domain, if it is in this one, whether the preparation was completed or not."""
        checkpoint = self._checkpoints.get(claim)
        if checkpoint is None:
            return
        node = self._cache.nodes.get("", checkpoint.node)
        if checkpoint.config.is_channel and node is not None and labels_of(node).get(nvidia.DOMAIN_LABEL) == checkpoint.config.domain:
            await remove_label(self._client, self._cache.nodes, node)
        for by_claim in (self._checkpoints, self._attempts, self._daemon_gone_since, self._claim_gone_since):
            by_claim.pop(claim, None)

    async def _check_fabric(self, claim: Body, call: PrepareCall) -> float | None:
        """Report a prepared channel as lost some time after the daemon has left its node, and as back when the daemon is."""
        uid, now = uid_of(claim), self._clock.monotonic()
        checkpoint = self._checkpoints.get(uid)
        if checkpoint is None or not checkpoint.is_completed or not checkpoint.config.is_channel or not self._has_fabric(checkpoint.node):
            return None
        is_gone = self._cache.membership(checkpoint.config.domain, checkpoint.node) is None
        if not is_gone:
            self._daemon_gone_since.pop(uid, None)
        elif (remaining := self._daemon_gone_since.setdefault(uid, now) + self._options.driver.imex_loss - now) > 0:
            return remaining
        if call.is_fabric_lost != is_gone:
            condition = prepare_calls.fabric_lost_condition(is_gone, self._clock.now())
            await prepare_calls.set_condition(self._client, self._cache.claims, claim, condition)
        return None

    def _has_fabric(self, name: str) -> bool:
        node = self._cache.nodes.get("", name)
        is_watched = not self._options.driver.host_managed
        return is_watched and node is not None and bool(labels_of(node).get(nvidia.NVLINK_CLIQUE_LABEL))


def _domain_of(claim: Body) -> str:
    try:
        return config_of(claim).domain
    except ValueError:
        return ""
