"""Verdicts: what each answer to a trial says, how often the server is asked, and what is forgotten."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from engine.answer import TrialOutcome
from engine.errors import ClusterError, Unreachable
from engine.ids import ResourceId
from engine.operation import Cause, Create, Operation, Trial
from engine.plan import Plan
from engine.runtime.verdicts import CONCURRENCY, Verdicts, outcome_of
from providers.kubernetes.errors import error_of_status

pytestmark = pytest.mark.anyio

ROOT = ResourceId("grove.io", "PodCliqueSet", "default", "web")
ACCEPTED, REFUSED, UNANSWERED = TrialOutcome.ACCEPTED, TrialOutcome.REFUSED, TrialOutcome.UNANSWERED
NOT_PERMITTED, IMPOSSIBLE = TrialOutcome.NOT_PERMITTED, TrialOutcome.IMPOSSIBLE


def answer(code: int, message: str, *, kind: str = "Status", **details: Any) -> ClusterError:
    """An answer of an API server, or of a proxy in front of it."""
    return error_of_status({"kind": kind, "message": message, "code": code, "details": details}, code)


ANSWERS: Mapping[str, tuple[ClusterError, TrialOutcome]] = {
    "PodSecurity": (answer(403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged', name="a"), REFUSED),
    "a webhook": (answer(403, 'admission webhook "images.example.com" denied the request: the image is not signed'), REFUSED),
    "a webhook that names no status": (answer(400, 'admission webhook "i.example.com" denied the request without explanation'), REFUSED),
    "a policy": (answer(422, "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"), REFUSED),
    "a policy that says it is too large": (answer(413, "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request"), REFUSED),
    "too large": (answer(413, "Request entity too large: limit is 3145728"), IMPOSSIBLE),
    "a field": (answer(422, 'Pod "a" is invalid: spec.containers[0].image: Required value'), REFUSED),
    "a type": (answer(400, 'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go'), REFUSED),
    "what a quota requires": (answer(403, 'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: main'), REFUSED),
    "a quota": (answer(403, 'pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3'), ACCEPTED),
    "a failure": (answer(500, "Internal error occurred: failed calling webhook"), UNANSWERED),
    "unavailable": (answer(503, "the server is currently unable to handle the request"), UNANSWERED),
    "too many requests": (answer(429, "too many requests"), UNANSWERED),
    "a name that is taken": (answer(409, 'pods "a" already exists'), UNANSWERED),
    "no answer": (Unreachable("closed the connection before it had answered"), UNANSWERED),
    "a proxy that denies": (answer(403, "<html>denied", kind=""), UNANSWERED),
    "a proxy that rejects": (answer(400, "<html>bad request", kind=""), IMPOSSIBLE),
    "no credentials": (answer(401, "Unauthorized"), IMPOSSIBLE),
    "no right": (answer(403, 'pods is forbidden: User "u" cannot create resource "pods" in API group ""'), NOT_PERMITTED),
    "no right to own": (answer(403, 'pods "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to'), NOT_PERMITTED),
    "side effects": (answer(400, 'admission webhook "images.example.com" does not support dry run'), IMPOSSIBLE),
    "no namespace": (answer(404, 'namespaces "default" not found'), IMPOSSIBLE),
    "a namespace that goes": (answer(403, 'pods "a" is forbidden: no', causes=[{"reason": "NamespaceTerminating"}]), IMPOSSIBLE),
    "no such method": (answer(405, "the server does not allow this method"), IMPOSSIBLE),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_only_what_rejects_the_object_refuses_it(what: str) -> None:
    error, expected = ANSWERS[what]

    assert outcome_of(error) is expected


class Dial:
    """A clock that is turned by hand; sleepers wake when it is."""

    def __init__(self) -> None:
        self.at = 0.0
        self._turned = anyio.Event()

    def now(self) -> datetime:
        """The wall clock."""
        return datetime.fromtimestamp(self.at, UTC)

    def monotonic(self) -> float:
        """The same as seconds."""
        return self.at

    async def sleep(self, seconds: float) -> None:
        """Wait until it is turned that far."""
        until = self.at + seconds
        while self.at < until:
            await self._turned.wait()

    def turn(self, seconds: float) -> None:
        """Let time pass."""
        self.at += seconds
        turned, self._turned = self._turned, anyio.Event()
        turned.set()


class Server:
    """A provider whose dry runs are answered as told; everything else is not called."""

    def __init__(self, clock: Dial) -> None:
        self.clock = clock
        self.asked: list[str] = []
        self.says: Mapping[str, ClusterError] = {}
        self.stores: Mapping[str, Any] = {}
        self.takes = 0.0
        self.busy = self.most = 0

    def trying(self) -> "Server":
        """Itself."""
        return self

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any]:
        """The answer to a trial."""
        self.asked.append(operation.id.name)
        self.busy += 1
        self.most = max(self.most, self.busy)
        try:
            await anyio.lowlevel.checkpoint()
            if self.takes:
                await self.clock.sleep(self.takes)
        finally:
            self.busy -= 1
        if operation.id.name in self.says:
            raise self.says[operation.id.name]
        return self.stores


def trial(name: str) -> Trial:
    """A trial of a pod of that name."""
    return Trial(name, f"clique {name}", Create(ResourceId("", "Pod", "default", name), "", Cause.INTENT, manifest={}))


def plans(*names: str) -> Sequence[Plan]:
    """The plan of one root that relies on these trials."""
    return (Plan(ROOT, trials=tuple(map(trial, names))),)


async def ask(verdicts: Verdicts, server: Any, *names: str) -> bool:
    """One pass."""
    verdicts.prepare(server)
    return await verdicts.ask(server, server.clock, plans(*names))


async def test_fields_that_an_accepted_object_would_lose_are_noted() -> None:
    server: Any = Server(Dial())
    verdicts = Verdicts()
    sent = {"metadata": {"name": "a"}, "spec": {"known": [{"b": 1}], "unknown": 1}}
    server.stores = {"metadata": {"name": "a", "uid": "1"}, "spec": {"known": [{}]}}
    verdicts.prepare(server)

    await verdicts.ask_about(server, server.clock, {ROOT: [replace(trial("a"), create=replace(trial("a").create, manifest=sent))]})

    assert verdicts.of(ROOT).verdicts["a"].dropped == {("spec", "unknown")}


async def test_what_is_accepted_is_asked_once_until_no_plan_relies_on_it() -> None:
    clock = Dial()
    server, verdicts = Server(clock), Verdicts()

    assert await ask(verdicts, server, "a")
    clock.turn(10_000)
    assert not await ask(verdicts, server, "a")
    assert verdicts.next_due is None
    assert verdicts.of(ROOT).verdicts["a"].outcome is ACCEPTED
    assert not await ask(verdicts, server)
    assert await ask(verdicts, server, "a")

    assert server.asked == ["a", "a"]


@pytest.mark.parametrize("error", [ANSWERS["a webhook"][0], ANSWERS["a failure"][0]], ids=["refused", "unanswered"])
async def test_everything_else_is_asked_again_after_pauses_that_grow_to_a_limit(error: ClusterError) -> None:
    clock, verdicts = Dial(), Verdicts()
    server, pauses = Server(clock), []
    server.says = {"a": error}

    await ask(verdicts, server, "a")
    before = verdicts.of(ROOT)
    for _ in range(8):
        due = verdicts.next_due
        assert due is not None
        pauses.append(due - clock.at)
        clock.turn(pauses[-1] - 1)
        await ask(verdicts, server, "a")
        clock.turn(1)
        assert not await ask(verdicts, server, "a")

    assert pauses == [10, 20, 40, 80, 160, 300, 300, 300]
    assert len(server.asked) == 9
    assert verdicts.of(ROOT) is before


async def test_the_server_may_ask_for_a_longer_pause() -> None:
    verdicts, server = Verdicts(), Server(Dial())
    server.says = {"a": error_of_status({"kind": "Status", "message": "later"}, 429, "120")}

    await ask(verdicts, server, "a")

    assert verdicts.next_due == 120


async def test_a_refusal_stays_until_the_server_accepts_and_has_the_words_of_the_last_one() -> None:
    clock, verdicts = Dial(), Verdicts()
    server = Server(clock)
    seen = []
    for error in (ANSWERS["a webhook"][0], ANSWERS["a failure"][0], ANSWERS["PodSecurity"][0], None):
        server.says = {"a": error} if error is not None else {}
        await ask(verdicts, server, "a")
        seen.append(verdicts.of(ROOT).verdicts["a"])
        clock.turn(1000)

    assert [verdict.outcome for verdict in seen] == [REFUSED, REFUSED, REFUSED, ACCEPTED]
    assert seen[0] is seen[1]
    assert [verdict.why for verdict in seen[1:]] == [str(ANSWERS["a webhook"][0]), str(ANSWERS["PodSecurity"][0]), ""]


async def test_many_are_asked_together_and_slow_answers_leave_the_rest_for_the_next_pass() -> None:
    clock, verdicts = Dial(), Verdicts()
    server, names = Server(clock), [f"pod-{number}" for number in range(3 * CONCURRENCY)]
    server.takes = 3600.0

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, verdicts, server, *names)
        while len(server.asked) < CONCURRENCY:
            await anyio.lowlevel.checkpoint()
        clock.turn(5)

    known = verdicts.of(ROOT).verdicts
    assert (server.most, len(known)) == (CONCURRENCY, CONCURRENCY)
    assert {verdict.outcome for verdict in known.values()} == {UNANSWERED}
    assert verdicts.next_due == 6.0


async def test_without_a_server_nothing_is_asked_and_nothing_is_waited_for() -> None:
    verdicts = Verdicts()

    verdicts.prepare(object())  # type: ignore[arg-type]

    assert not verdicts.of(ROOT).are_made
    assert not await verdicts.ask(object(), Dial(), plans("a"))  # type: ignore[arg-type]


async def test_what_was_not_answered_is_told_once_until_the_answer_is_another() -> None:
    clock, verdicts = Dial(), Verdicts()
    server, reasons = Server(clock), []
    for what in ("a failure", "unavailable", "side effects", "a webhook"):
        server.says = {"a": ANSWERS[what][0]}
        await ask(verdicts, server, "a")
        reasons.append([why for _, _, why in verdicts.take_unanswered()])
        clock.turn(1000)

    assert reasons == [[str(ANSWERS["a failure"][0])], [], [str(ANSWERS["side effects"][0])], []]


async def test_only_the_roots_of_which_something_new_is_known_have_changed() -> None:
    verdicts, server = Verdicts(), Server(Dial())

    await ask(verdicts, server, "a")
    assert verdicts.take_changed() == {ROOT}
    await ask(verdicts, server, "a")
    assert verdicts.take_changed() == frozenset()
    await ask(verdicts, server)
    assert verdicts.take_changed() == {ROOT}
