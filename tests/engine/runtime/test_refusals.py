"""Refusals: after a few refusals in a row other calls like them are held back, with pauses that double; one that is done ends it."""

import math
from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from engine.errors import AlreadyExists, ClusterError, Conflict, Forbidden, Invalid, NotFound, RefusedBy, ServerFault, TooLarge, Unreachable
from engine.ids import RESOURCE_QUOTA, Owner, ResourceId
from engine.memo import Revised
from engine.observed import Observed, Unlisted, live
from engine.operation import BoundOwner, Create, Operation, Outcome, Result
from engine.runtime.provider import Observation, Scope
from engine.runtime.refusals import (
    AT_A_TIME,
    FEW,
    FIRST_PAUSE,
    FORBIDDEN_PAUSE,
    KEPT,
    LONGEST_PAUSE,
    PROBES,
    QuotaRevisions,
    Refusals,
    pause_after,
)
from engine.verb import Verb
from engine.world_update import LiveChange
from tests.engine.runtime.fakes import LEAF, ROOT, FakeProvider, body, change, create, leaf, plan

MINE, OTHER = ROOT.id("default", "mine"), ROOT.id("default", "other")
FULL = Forbidden("exceeded quota: few", by=RefusedBy.QUOTA)
DENIED = Forbidden("admission webhook denied the request", by=RefusedBy.ADMISSION)


def pod(number: int, parent: str = "mine-0-worker") -> Operation:
    """The creation of a leaf with an owner."""
    owner = BoundOwner(Owner(ROOT.id("default", parent), "v1"), "uid")
    operation = create(f"{parent}-{number}")
    assert isinstance(operation, Create)
    return replace(operation, owners=(owner,))


def note(refusals: Refusals, operations: Iterable[Operation], error: ClusterError | None, at: float, root: ResourceId = MINE) -> bool:
    """Record the same answer to each operation; None: it was done. Returns the last answer of `Refusals.note`."""
    outcome = Outcome.DONE if error is None else Outcome.FAILED
    return [refusals.note(root, Result(each, outcome, error=error), at) for each in operations][-1]


def holding(error: ClusterError = FULL) -> Refusals:
    """What is known after a few refusals at the time 0."""
    refusals = Refusals(FEW)
    assert note(refusals, map(pod, range(FEW)), error, 0)
    return refusals


def admitted(refusals: Refusals, at: float, count: int = 100) -> list[Operation]:
    """What a pass sends of so many creates."""
    return list(refusals.admitted(replace(plan(*map(pod, range(count))), root=MINE), at).operations)


def observed(refusals: Refusals, at: float, generation: int = 1, uid: str = "uid") -> None:
    """A pass that observes the root `mine`."""
    metadata = {"name": "mine", "namespace": "default", "uid": uid, "generation": generation}
    root = live({**body(ROOT, "mine"), "metadata": metadata})
    refusals.observe(Revised([root.id], [Observed(root, {})]), at)


def gone(name: str, namespace: str = "default") -> LiveChange:
    """The change that a leaf is gone."""
    return LiveChange(live({**body(LEAF, name), "metadata": {"name": name, "namespace": namespace}}), None)


def test_after_a_few_refusals_in_a_row_calls_like_them_are_held_back() -> None:
    refusals = Refusals(FEW)

    assert not note(refusals, map(pod, range(FEW - 1)), FULL, 0)
    assert len(admitted(refusals, 0)) == 100
    assert note(refusals, [pod(FEW)], FULL, 0)
    assert admitted(refusals, FIRST_PAUSE - 0.1) == []


def test_calls_that_one_done_call_separates_are_not_held_back() -> None:
    refusals = Refusals(FEW)

    for number in range(100):
        note(refusals, [pod(number)], FULL if number % FEW else None, 0)

    assert len(admitted(refusals, 0)) == 100


@pytest.mark.parametrize("error", [ServerFault("500"), NotFound("no kind"), TooLarge("413"), Conflict("old"), AlreadyExists("taken")])
def test_other_errors_hold_nothing_back(error: ClusterError) -> None:
    refusals = Refusals(FEW)
    note(refusals, map(pod, range(100)), error, 0)

    assert len(admitted(refusals, 0)) == 100


@pytest.mark.parametrize("error", [FULL, DENIED, Forbidden("cannot create pods"), Invalid("spec.containers: required")])
def test_whatever_refuses_them_calls_are_held_back(error: ClusterError) -> None:
    assert admitted(holding(error), 0.5) == []


def test_by_default_as_in_a_single_run_nothing_is_held_back() -> None:
    refusals = Refusals()
    note(refusals, map(pod, range(100)), FULL, 0)

    assert len(admitted(refusals, 0)) == 100
    assert refusals.take_unreported() == []


def test_calls_of_other_roots_kinds_verbs_and_cliques_go_on() -> None:
    refusals = holding()

    assert not refusals.admits(MINE, pod(1, "mine-7-worker"), 0.5), "another replica of the same clique"
    assert refusals.admits(MINE, pod(1, "mine-0-leader"), 0.5)
    assert refusals.admits(MINE, change(Verb.DELETE, leaf("a"), {}), 0.5)
    assert refusals.admits(MINE, change(Verb.CREATE, ROOT.id("default", "a"), {}), 0.5)
    assert refusals.admits(OTHER, pod(1), 0.5)


def test_after_a_pause_a_few_are_sent_and_each_refusal_doubles_it() -> None:
    refusals, at = holding(), 0.0
    pauses: list[float] = []
    while len(pauses) < 8:
        due = refusals.next_due(at)
        assert due is not None
        pauses.append(due - at)
        at = due
        probes = admitted(refusals, at)
        assert len(probes) == PROBES
        note(refusals, probes, FULL, at)

    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert refusals.next_due(at + LONGEST_PAUSE) is None


def test_late_answers_to_calls_that_were_on_their_way_do_not_double_the_pause() -> None:
    refusals = holding()

    assert not note(refusals, map(pod, range(10, 58)), FULL, 0.5)
    assert refusals.next_due(0.5) == FIRST_PAUSE


def test_as_soon_as_one_is_done_everything_is_sent_also_what_was_refused() -> None:
    refusals = holding()
    note(refusals, admitted(refusals, FIRST_PAUSE)[:1], None, FIRST_PAUSE)

    assert len(admitted(refusals, FIRST_PAUSE)) == 100
    assert refusals.take_ended() == {pod(number).key for number in range(FEW)}
    assert refusals.take_ended() == set()


def test_probes_that_have_no_answer_are_replaced_by_others() -> None:
    refusals = holding()
    note(refusals, admitted(refusals, FIRST_PAUSE), ServerFault("500"), FIRST_PAUSE)

    assert len(admitted(refusals, FIRST_PAUSE + 0.5)) == PROBES
    assert len(admitted(refusals, FIRST_PAUSE + 1.0)) == PROBES


def test_what_comes_after_a_call_that_is_held_back_is_left_out_with_it() -> None:
    first, second = pod(50), create("last", "mine-0-worker-50")

    assert holding().admitted(replace(plan(first, second), root=MINE), 0.5).operations == ()


def test_an_edit_of_the_root_ends_the_pause_and_so_does_another_root_of_its_name() -> None:
    for generation, uid in ((2, "uid"), (1, "another")):
        refusals = Refusals(FEW)
        observed(refusals, 0)
        note(refusals, map(pod, range(FEW)), DENIED, 0)
        observed(refusals, 0.4)
        assert admitted(refusals, 0.4) == []
        observed(refusals, 0.5, generation, uid)

        assert len(admitted(refusals, 0.5)) == 100
        assert len(refusals.take_ended()) == FEW


def test_where_an_object_of_the_kind_is_gone_a_quota_may_have_room() -> None:
    refusals = holding()
    for at in (1.0, 3.0):
        note(refusals, admitted(refusals, at), FULL, at)
    refusals.note_changes([gone("a", "elsewhere"), LiveChange(None, gone("b").old)], 3.5)
    assert admitted(refusals, 3.5) == []

    refusals.note_changes([gone("a")], 3.5)
    probes = admitted(refusals, 3.5)
    note(refusals, probes, FULL, 3.5)

    assert len(probes) == PROBES
    assert refusals.next_due(3.5) == 3.5 + FIRST_PAUSE


def test_what_a_webhook_denies_does_not_wait_for_room() -> None:
    refusals = holding(DENIED)
    refusals.note_changes([gone("a")], 0.5)

    assert admitted(refusals, 0.5) == []
    assert refusals.awaiting_room == frozenset()
    assert holding().awaiting_room == {"default"}


def test_each_cause_has_its_own_pauses() -> None:
    refusals = holding()
    for at in (1.0, 3.0, 7.0):
        note(refusals, admitted(refusals, at), FULL, at)
    probes = admitted(refusals, 15.0)
    assert not note(refusals, probes[:-1], DENIED, 15.0), "a cause must refuse a few, too"
    note(refusals, probes[-1:], DENIED, 15.0)
    assert refusals.next_due(15.0) == 15.0 + FIRST_PAUSE

    note(refusals, admitted(refusals, 16.0), FULL, 16.0)
    assert refusals.next_due(16.0) == 16.0 + 16.0


def test_room_ends_the_pauses_of_quotas_alone_and_calls_wait_for_every_cause() -> None:
    refusals = holding()
    for at in (1.0, 3.0):
        note(refusals, admitted(refusals, at), FULL, at)
    note(refusals, map(pod, range(10, 10 + FEW)), DENIED, 3.5)
    assert refusals.next_due(3.5) == 7.0
    refusals.take_ended()
    refusals.note_room("default", 3.6)

    assert admitted(refusals, 3.6) == [], "the webhook has its own pause"
    assert pod(10).key not in refusals.take_ended()
    assert len(admitted(refusals, 3.5 + FIRST_PAUSE)) == PROBES


def test_webhooks_are_causes_of_their_own() -> None:
    refusals, named = Refusals(FEW), Forbidden("denied", by=RefusedBy.ADMISSION)
    named.refuser = "images.example.com"

    for number, error in enumerate([named, DENIED] * (FEW - 1)):
        assert not note(refusals, [pod(number)], error, 0)

    assert len(admitted(refusals, 0)) == 100


def test_what_is_held_back_is_reported_once_for_each_cause() -> None:
    refusals = holding()
    observed(refusals, 0)
    (first,) = refusals.take_unreported()
    assert (first.root, first.verb, first.kind, first.error) == (MINE, Verb.CREATE, LEAF.name, FULL)
    for at in (1.0, 3.0):
        note(refusals, admitted(refusals, at), Forbidden("exceeded quota: few, used: 6", by=RefusedBy.QUOTA), at)
    note(refusals, [pod(1)], None, 7.0)
    observed(refusals, 7.5, generation=2)
    note(refusals, map(pod, range(FEW)), FULL, 8.0)
    assert refusals.take_unreported() == []

    note(refusals, map(pod, range(FEW)), DENIED, 9.0)
    (second,) = refusals.take_unreported()
    assert second.error is DENIED

    observed(refusals, 10.0 + KEPT)
    note(refusals, map(pod, range(FEW)), DENIED, 11.0 + KEPT)
    assert len(refusals.take_unreported()) == 1


def test_refusals_that_no_longer_matter_are_forgotten() -> None:
    refusals = Refusals(FEW)
    for number in range(1000):
        note(refusals, map(pod, range(FEW)), FULL, number, ROOT.id("default", f"{number}"))
        refusals.observe(Revised(), number)

    assert len(refusals._roots) <= KEPT + 2


def test_a_pause_is_never_longer_than_the_longest() -> None:
    assert [pause_after(count) for count in (0, 1, 4, 5, 10**9)] == [1, 2, 16, LONGEST_PAUSE, LONGEST_PAUSE]
    assert math.isfinite(pause_after(10**9))


pytestmark = pytest.mark.anyio


class Quotas(FakeProvider):
    """A provider of quotas, each of them the only one in its namespace."""

    def __init__(self, namespaces: Iterable[str]) -> None:
        super().__init__()
        self.revisions = dict.fromkeys(namespaces, 1)
        self.scopes: list[Scope] = []
        self.unlisted: Unlisted | None = None

    async def observe(self, scope: Scope) -> Observation:
        """The quotas of the scope."""
        self.scopes.append(scope)
        if self.observe_errors:
            raise self.observe_errors.pop(0)
        if self.unlisted is not None:
            return Observation((), (), {RESOURCE_QUOTA.key: self.unlisted})
        metadata = ({"name": "few", "namespace": name, "resourceVersion": str(self.revisions[name])} for name in scope.namespaces)
        return Observation((), (), references=[live({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": each}) for each in metadata])


async def test_a_quota_that_changes_after_it_was_read_is_noticed_once() -> None:
    quotas, room = Quotas("ab"), QuotaRevisions()
    assert await room.changed(quotas, {"a", "b"}, 0) == frozenset()
    assert await room.changed(quotas, {"a", "b"}, 2) == frozenset()
    quotas.revisions["b"] += 1

    assert await room.changed(quotas, {"a", "b"}, 4) == {"b"}
    assert await room.changed(quotas, {"a", "b"}, 6) == frozenset()


async def test_nothing_is_read_while_no_namespace_waits() -> None:
    quotas = Quotas("ab")

    assert await QuotaRevisions().changed(quotas, set(), 0) == frozenset()
    assert quotas.scopes == []


async def test_what_has_changed_while_a_namespace_did_not_wait_is_not_reported() -> None:
    quotas, room = Quotas("a"), QuotaRevisions()
    await room.changed(quotas, {"a"}, 0)
    await room.changed(quotas, set(), 2)
    quotas.revisions["a"] += 1

    assert await room.changed(quotas, {"a"}, 4) == frozenset()


async def test_of_many_namespaces_a_few_are_read_at_a_time_and_all_in_turn() -> None:
    names = {f"team-{number}" for number in range(3 * AT_A_TIME)}
    quotas, room = Quotas(names), QuotaRevisions()
    for step in range(6):
        await room.changed(quotas, names, step)

    assert [len(scope.namespaces) for scope in quotas.scopes] == [AT_A_TIME] * 6
    assert {name for scope in quotas.scopes[:3] for name in scope.namespaces} == names
    assert {name for scope in quotas.scopes[3:] for name in scope.namespaces} == names


async def test_a_read_that_fails_or_is_not_permitted_changes_nothing() -> None:
    quotas, room = Quotas("a"), QuotaRevisions()
    await room.changed(quotas, {"a"}, 0)
    quotas.observe_errors = [Unreachable("no answer")]
    assert await room.changed(quotas, {"a"}, 2) == frozenset()
    quotas.unlisted = Unlisted("forbidden", is_forbidden=True)
    assert await room.changed(quotas, {"a"}, 4) == frozenset()
    asked = len(quotas.scopes)
    quotas.unlisted, quotas.revisions["a"] = None, 2

    assert await room.changed(quotas, {"a"}, FORBIDDEN_PAUSE) == frozenset()
    assert len(quotas.scopes) == asked
    assert await room.changed(quotas, {"a"}, 4 + FORBIDDEN_PAUSE) == {"a"}
