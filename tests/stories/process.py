"""A process of ours, as its cluster sees it: what it asks, how the network treats it, and when it is killed."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

import anyio

from engine.errors import ClusterError, NotFound
from engine.ids import Kind
from engine.runtime.lease import LEASE
from engine.runtime.provider import Client
from resources.base import kinds

READS = frozenset({"list", "get"})
WRITES = frozenset({"create", "replace", "patch", "delete"})
ASIDE = frozenset({LEASE.name, kinds.EVENT.name})
"""Kinds that do not count as writes: the lease, and Events."""

Call = tuple[str, Kind, str]
"""Verb, kind and name; the name is empty for a list."""


class Killed(Exception):
    """The process is killed: nothing of it runs on, not even its cleanup."""


class Process:
    """A `Client` over another one that counts, refuses, loses answers, and dies."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.writes: Counter[str] = Counter()
        """Verb and kind (and subresource) -> how often it was done."""
        self.created: Counter[str] = Counter()
        """Kind and name -> how often it was created."""
        self.refused: list[str] = []
        self.refuses: Callable[[Call], ClusterError | None] = lambda call: None
        """Called before each call; an error that it returns is raised in place of the call."""
        self.tried: list[str] = []
        """The names of the pods that were tried in a dry run."""
        self.refuses_trial: Callable[[Mapping[str, Any]], ClusterError | None] = lambda pod: None
        """Called with each pod that is tried; an error that it returns is raised in place of the call."""
        self.answers_trials = True
        """Whether a trial is answered at all."""
        self.loses: Callable[[Call], ClusterError | None] = lambda call: None
        """Called after each write; an error that it returns is raised in place of the answer."""
        self.dies_before = self.dies_after = 0
        """The number of the write, counted from one, before or after which the process is killed."""
        self.on_write: Callable[[], None] = lambda: None
        self.on_status: Callable[[dict[str, Any]], None] = lambda body: None
        """Called with each object whose status was written."""
        self.on_look: Callable[[], None] = lambda: None
        """Called after each observation of the cluster."""
        self.dead = False
        self.uid = ""
        """The uid that the current call is bound to."""

    @property
    def count(self) -> int:
        """How many writes were done."""
        return self.writes.total()

    async def kinds(self) -> Sequence[Kind]:
        """What the API serves."""
        return await self._client.kinds()

    async def watch(self, kind: Kind, namespace: str = "", **options: Any) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
        """The events of a watch; a killed process receives none."""
        async with aclosing(self._client.watch(kind, namespace, **options)) as events:
            async for event in events:
                if self.dead:
                    await anyio.sleep_forever()
                yield event

    def trying(self) -> Any:
        """A client whose writes are dry runs."""
        return _Trying(self)

    async def attempt_trial(self, kind: Kind, namespace: str, body: Mapping[str, Any]) -> Any:
        """The answer of the API to a create that it only checks."""
        self._live_or_die(False)
        self.tried.append(body["metadata"]["name"])
        if not self.answers_trials:
            await anyio.sleep_forever()
        if refusal := self.refuses_trial(body):
            raise refusal
        return await cast(Any, self._client).trying().create(kind, namespace, body)

    def __getattr__(self, verb: str) -> Any:
        if verb not in READS | WRITES:
            raise AttributeError(verb)

        async def ask(kind: Kind, namespace: str = "", *rest: Any, **options: Any) -> Any:
            counts = verb in WRITES and kind.name not in ASIDE
            call = (verb, kind, _name(verb, rest))
            self.uid = options.get("uid", "")
            self._live_or_die(counts and self.count + 1 == self.dies_before)
            if refusal := self.refuses(call):
                self.refused.append(f"{verb} {kind.name} {call[2]}")
                raise refusal
            answer = await self._attempt(call, namespace, rest, options)
            if counts:
                self._note(call, options)
                if options.get("subresource") == "status":
                    self.on_status(answer)
                self._live_or_die(self.count == self.dies_after)
                self.on_write()
            if verb in WRITES and (lost := self.loses(call)):
                raise lost
            return answer

        return ask

    async def _attempt(self, call: Call, namespace: str, rest: tuple[Any, ...], options: dict[str, Any]) -> Any:
        verb, kind, name = call
        try:
            return await getattr(self._client, verb)(kind, namespace, *rest, **options)
        except ClusterError as error:
            if verb in WRITES or not isinstance(error, NotFound):  # That an object or a kind does not exist is an answer.
                self.refused.append(f"{verb} {kind.name} {name}")
            raise

    def _note(self, call: Call, options: dict[str, Any]) -> None:
        verb, kind, name = call
        self.writes[" ".join(filter(None, (verb, kind.name, options.get("subresource", ""))))] += 1
        if verb == "create":
            self.created[f"{kind.name} {name}"] += 1

    def _live_or_die(self, now: bool) -> None:
        self.dead = self.dead or now
        if self.dead:
            raise Killed


class _Trying:
    """The dry runs of a process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def create(self, kind: Kind, namespace: str, body: Mapping[str, Any]) -> Any:
        """Check a create without storing anything."""
        return await self._process.attempt_trial(kind, namespace, body)


def _name(verb: str, rest: tuple[Any, ...]) -> str:
    if verb == "create":
        return cast(str, rest[0]["metadata"].get("name", ""))
    return rest[0] if rest and isinstance(rest[0], str) else ""
