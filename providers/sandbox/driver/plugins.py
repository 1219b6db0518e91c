"""Plugins: the driver on the nodes. Before a pod begins its node is put into the domain, and kept waiting until that has happened."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from engine.errors import NotFound
from engine.runtime.client import Client
from engine.runtime.clock import Clock
from providers.sandbox.actors import calls
from providers.sandbox.actors.agenda import Agenda
from providers.sandbox.actors.body import Body, Key, key_of, labels_of, uid_of
from providers.sandbox.actors.calls import Call
from providers.sandbox.actors.nodes import is_simulated
from providers.sandbox.actors.settings import Settings
from providers.sandbox.driver.configs import Config, config_of
from providers.sandbox.driver.facts import Facts, daemons_in
from providers.sandbox.driver.status import READY
from providers.sandbox.driver.teardown import unlabel
from providers.sandbox.installation.kinds import DOMAIN, FABRIC
from resources.base.kinds import NODE

BUDGET: Final = 45.0
"""Seconds for which one call is tried."""
FIRST_PAUSE, LAST_PAUSE = 0.25, 3.0


class Permanent(Exception):
    """No repetition within this call will help."""


class Retryable(Exception):
    """It may be different in a moment."""


class Visit(NamedTuple):
    """A claim to look at; a successor of the same name is another."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What is written down about a claim that is prepared or being prepared on a node."""

    node: str
    config: Config
    claim: Key
    is_completed: bool = False


@dataclass(slots=True)
class Attempt:
    """One call: which, since when it is tried, and how often it was."""

    number: int
    since: float
    tries: int = 0


class Plugins:
    """The plugins of all simulated nodes."""

    def __init__(self, client: Client, clock: Clock, settings: Settings, facts: Facts) -> None:
        self._client, self._clock, self._settings, self._facts = client, clock, settings, facts
        self._agenda: Agenda[Visit] = Agenda(clock)
        self._checkpoint: dict[str, Entry] = {}
        self._attempts: dict[str, Attempt] = {}
        self._lost_since: dict[str, float] = {}
        self._gone_since: dict[str, float] = {}
        facts.claims.tell(self._saw_claim)
        facts.cliques.tell(self._saw_clique)

    async def run(self) -> None:
        """Serve the kubelets, for ever."""
        await self._facts.synced()
        await self._forget_strangers()
        await self._agenda.work(self._look)

    def _saw_claim(self, key: Key, old: Body | None, new: Body | None) -> None:
        if new is not None and (calls.call_of(new) is not None or uid_of(new) in self._checkpoint):
            self._remember(new)
            self._agenda.add(Visit(key, uid_of(new)))
        if old is not None and uid_of(old) in self._checkpoint and (new is None or uid_of(new) != uid_of(old)):
            self._agenda.add(Visit(key, uid_of(old)))

    def _remember(self, claim: Body) -> None:
        """What was prepared before our time stands in the claim."""
        call = calls.call_of(claim)
        if call is None or not call.answered or uid_of(claim) in self._checkpoint or not calls.results_of(claim):
            return
        try:
            config = config_of(claim)
        except ValueError:
            return
        done = call.reason == calls.DONE
        self._checkpoint[uid_of(claim)] = Entry(calls.node_of(claim), config, key_of(claim), is_completed=done)

    def _saw_clique(self, key: Key, old: Body | None, new: Body | None) -> None:
        """Who has a prepared channel of the domain may have lost it, or have it back."""
        before, after = ({one["nodeName"] for one in daemons_in(body)} if body is not None else set() for body in (old, new))
        if moved := before ^ after:
            for uid, entry in self._checkpoint.items():
                if entry.node in moved:
                    self._agenda.add(Visit(entry.claim, uid))

    async def _forget_strangers(self) -> None:
        """Labels of nodes on which nothing is prepared: the claims have gone while no plugin was there to see it."""
        used = {(calls.node_of(claim), _domain_of(claim)) for claim in self._facts.claims.objects.values() if calls.call_of(claim)}
        for (_, name), node in list(self._facts.nodes.objects.items()):
            label = labels_of(node).get(DOMAIN)
            if label is not None and is_simulated(node) and (name, label) not in used:
                await unlabel(self._client, self._facts.nodes, node)

    async def _look(self, visit: Visit) -> float | None:
        claim = self._facts.claims.get(*visit.key)
        call = calls.call_of(claim) if claim is not None and uid_of(claim) == visit.uid and calls.results_of(claim) else None
        if claim is None or call is None:
            return await self._clean_up(visit.uid)
        self._gone_since.pop(visit.uid, None)
        if not is_simulated(self._facts.nodes.get("", calls.node_of(claim))):
            return None
        if not call.wanted:
            await self._unprepare(visit.uid)
            await calls.clear(self._client, self._facts.claims, claim)
            return None
        if call.is_answered:
            return await self._watch_over(claim, call)
        return await self._try(claim, call)

    async def _try(self, claim: Body, call: Call) -> float | None:
        attempt = self._attempts.get(uid_of(claim))
        if attempt is None or attempt.number != call.number:
            attempt = self._attempts[uid_of(claim)] = Attempt(call.number, self._clock.monotonic())
        try:
            await self._prepare(claim)
        except Permanent as error:
            await self._answer(claim, call, calls.FAILED, str(error))
        except Retryable as error:
            return await self._retry(claim, call, attempt, str(error))
        else:
            await self._answer(claim, call, calls.DONE, "")
        return None

    async def _retry(self, claim: Body, call: Call, attempt: Attempt, why: str) -> float | None:
        if self._clock.monotonic() - attempt.since >= BUDGET:
            await self._answer(claim, call, calls.SKIPPED, why)
            return None
        if call.answered != call.number:
            await self._answer(claim, call, calls.UNDER_WAY, why)
        attempt.tries += 1
        return float(min(FIRST_PAUSE * (1 << min(attempt.tries - 1, 16)), LAST_PAUSE))

    async def _answer(self, claim: Body, call: Call, reason: str, message: str) -> None:
        await calls.say(self._client, self._facts.claims, claim, calls.answering(call.number, reason, message, self._clock.now()))
        if reason != calls.UNDER_WAY:
            self._attempts.pop(uid_of(claim), None)

    async def _prepare(self, claim: Body) -> None:
        """The checks, in the driver's order. Raises `Permanent` and `Retryable`."""
        uid, node = uid_of(claim), calls.node_of(claim)
        try:
            config = config_of(claim)
        except ValueError as error:
            raise Permanent(str(error)) from None
        results = calls.results_of(claim)
        if len(results) != 1:
            raise Retryable("unexpected results")
        self._check_overlap(uid, node, config, results[0]["device"])
        domain = self._facts.domain(config.domain)
        if domain is None:
            raise Permanent(f"ComputeDomain not found: {config.domain}")
        self._checkpoint[uid] = Entry(node, config, key_of(claim))
        if config.is_channel:
            if domain["metadata"]["namespace"] != claim["metadata"]["namespace"]:
                raise Permanent("the ResourceClaim's namespace is different than the ComputeDomain's namespace")
            await self._label(node, config.domain)
            if (self._facts.is_in(config.domain, node) or {}).get("status") != READY:
                raise Retryable("current node not ready in ComputeDomain")
        self._checkpoint[uid] = Entry(node, config, key_of(claim), is_completed=True)

    def _check_overlap(self, uid: str, node: str, config: Config, device: str) -> None:
        """One channel a node: whoever has completed has it, until the kubelet gives it back."""
        for other, entry in self._checkpoint.items():
            if other != uid and entry.node == node and entry.is_completed and entry.config.is_channel == config.is_channel:
                raise Retryable(f"requested device {device} is already allocated to different claim {entry.claim[1]}")

    async def _label(self, node: str, domain: str) -> None:
        """Put the node into the domain; a domain that is on its way out is as good as any."""
        found = self._facts.nodes.get("", node)
        if found is None:
            raise Retryable(f"node {node} not found")
        label = labels_of(found).get(DOMAIN)
        if label == domain:
            return
        if label is not None:
            raise Retryable("label already exists for a different ComputeDomain")
        metadata = {"resourceVersion": found["metadata"]["resourceVersion"], "labels": {DOMAIN: domain}}
        try:
            self._facts.nodes.assume(await self._client.patch(NODE, "", node, {"metadata": metadata}))
        except NotFound:
            raise Retryable(f"node {node} not found") from None

    async def _clean_up(self, claim: str) -> float | None:
        """Taken away by force: its containers are still there for a moment, and so is what was prepared for them."""
        if claim not in self._checkpoint:
            return None
        now = self._clock.monotonic()
        left = self._gone_since.setdefault(claim, now) + self._settings.termination - now
        if left > 0:
            return left
        await self._unprepare(claim)
        return None

    async def _unprepare(self, claim: str) -> None:
        """Out of the domain again, if the node is in that one; whether the preparation had been completed or not."""
        entry = self._checkpoint.get(claim)
        if entry is None:
            return
        node = self._facts.nodes.get("", entry.node)
        if entry.config.is_channel and node is not None and labels_of(node).get(DOMAIN) == entry.config.domain:
            await unlabel(self._client, self._facts.nodes, node)
        for book in (self._checkpoint, self._attempts, self._lost_since, self._gone_since):
            book.pop(claim, None)

    async def _watch_over(self, claim: Body, call: Call) -> float | None:
        """A prepared channel whose daemon has gone from its node is lost to its containers after a while, and back when the daemon is."""
        uid, now = uid_of(claim), self._clock.monotonic()
        entry = self._checkpoint.get(uid)
        if entry is None or not entry.is_completed or not entry.config.is_channel or not self._has_fabric(entry.node):
            return None
        gone = self._facts.is_in(entry.config.domain, entry.node) is None
        left = self._lost_since.setdefault(uid, now) + self._settings.driver.imex_loss - now if gone else 0.0
        if not gone:
            self._lost_since.pop(uid, None)
        if left > 0:
            return left
        if call.is_lost != gone:
            await calls.say(self._client, self._facts.claims, claim, calls.losing(gone, self._clock.now()))
        return None

    def _has_fabric(self, node: str) -> bool:
        found = self._facts.nodes.get("", node)
        return found is not None and bool(labels_of(found).get(FABRIC))


def _domain_of(claim: Body) -> str:
    try:
        return config_of(claim).domain
    except ValueError:
        return ""
