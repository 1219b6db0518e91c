"""One writer: of the roots that write an object in one pass one does, and the others wait for what becomes of it."""

import pytest

from engine.ids import ResourceId
from engine.operation import Cause, WriteStatus
from engine.operation_order import with_one_writer
from engine.plan import Objection, Plan
from engine.verb import Verb
from tests.operations import operation_of

SHARED = ResourceId("example.com", "Thing", "default", "shared")


def root(name: str) -> ResourceId:
    return ResourceId("example.com", "Root", "default", name)


def plan(name: str, *verbs: Verb, objections: tuple[Objection, ...] = ()) -> Plan:
    """A plan with an operation on the shared object for each verb, after which it writes the status of its root."""
    writes = tuple(operation_of(verb, SHARED, "because", Cause.INTENT) for verb in verbs)
    report = WriteStatus(root(name), "report", Cause.STATUS, patch={}, after=frozenset(each.key for each in writes))
    return Plan(root(name), (*writes, report), objections=objections)


@pytest.mark.parametrize(
    ("verbs", "first"),
    [
        ((Verb.PATCH, Verb.PATCH), 0),
        ((Verb.DELETE, Verb.PATCH), 1),  # The one that leaves as the last of those that it knows does not delete what another one joins.
        ((Verb.STATUS, Verb.DELETE), 1),
        ((Verb.SCALE, Verb.PATCH), 0),
        ((Verb.RELEASE, Verb.RELEASE), 0),
    ],
)
def test_one_root_writes_an_object_and_the_other_waits_with_what_comes_after(verbs: tuple[Verb, Verb], first: int) -> None:
    plans = [plan(name, verb) for name, verb in zip("ab", verbs, strict=True)]

    result = with_one_writer(plans)

    second = 1 - first
    assert result[first] is plans[first]
    assert result[second].operations == ()
    waits = [(wait.id, wait.blocked) for wait in result[second].deferred]
    assert waits == ([] if verbs[second] is Verb.STATUS else [(SHARED, False)])


def test_plans_that_write_different_objects_or_create_the_same_one_stay_as_they_are() -> None:
    apart = [plan("a"), plan("b", Verb.PATCH)]
    creating = [plan("a", Verb.CREATE), plan("b", Verb.CREATE)]
    alone = [plan("a", Verb.DELETE, Verb.RELEASE)]
    for plans in (apart, creating, alone):
        assert with_one_writer(plans) is plans


def test_a_plan_that_a_guard_refuses_keeps_nobody_waiting() -> None:
    plans = [plan("a", Verb.PATCH, objections=(Objection("delete-budget", "too many"),)), plan("b", Verb.PATCH)]

    assert with_one_writer(plans) is plans
