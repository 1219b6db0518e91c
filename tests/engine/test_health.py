"""The conditions Ready, Reconciling and Stalled: which are there in which situation, since when, and when time alone changes them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from engine.health import PATIENCE, TYPES, Obstacle, Readiness, RootHealth, health, obstacle_of, with_health
from engine.ids import ResourceId
from engine.observed import Live, live, timestamp
from engine.plan import Alarm, Wait
from engine.reason import Reason
from engine.resource import NOW
from engine.root_status import obstructed
from tests.kstatus import kstatus

AT = datetime(2026, 11, 28, 12, tzinfo=UTC)
BEFORE = timestamp(AT - timedelta(seconds=30))
CHILD = ResourceId("", "Service", "default", "demo-0")
SERVES = Readiness(True, "AllReplicasAvailable", "1 of 1 replica available and updated")
COMES_UP = Readiness(False, "ComingUp", "0 of 1 replica available")
LACKS_PODS = Readiness(False, "ComingUp", "0 of 1 replica available", may_have_lost=True)
TAKEN = Wait(CHILD, "already exists", blocked=True, reason=Reason.NAME_CONFLICT)
MISSING = Wait(CHILD, "does not exist", blocked=True, reason=Reason.REFERENCE_MISSING)
UNLISTED = Wait(CHILD, "services could not be listed", blocked=True, reason=Reason.NOT_LISTED)


def root(*conditions: Mapping[str, Any], generation: int = 2) -> Live:
    metadata = {"name": "demo", "namespace": "default", "uid": "u", "generation": generation}
    return live({"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": metadata, "status": {"conditions": [*conditions]}})


def known(type: str, status: str, reason: str, generation: int = 2, at: str = BEFORE) -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": "m", "observedGeneration": generation, "lastTransitionTime": at}


def judged(
    readiness: Readiness, *conditions: Mapping[str, Any], deferred: Sequence[Wait] = (), alarms: Sequence[Alarm] = (), now: datetime = AT
) -> tuple[dict[str, tuple[str, str]], RootHealth]:
    result = health(readiness, deferred, alarms, root(*conditions), now)
    return {each["type"]: (each["status"], each["reason"]) for each in result.conditions}, result


def test_a_root_that_serves_is_ready_and_nothing_else() -> None:
    shown, result = judged(SERVES)

    assert shown == {"Ready": ("True", "AllReplicasAvailable")}
    assert result.conditions[0]["observedGeneration"] == 2 and result.until is None


def test_a_root_that_comes_up_is_being_reconciled() -> None:
    shown, _ = judged(COMES_UP)

    assert shown == {"Ready": ("False", "ComingUp"), "Reconciling": ("True", "ComingUp")}


@pytest.mark.parametrize(
    ("ready", "reason"),
    [
        (known("Ready", "True", "AllReplicasAvailable"), "MinAvailableBreached"),
        (known("Ready", "False", "MinAvailableBreached"), "MinAvailableBreached"),
        (known("Ready", "True", "AllReplicasAvailable", generation=1), "ComingUp"),
        (known("Ready", "False", "ComingUp"), "ComingUp"),
    ],
)
def test_pods_are_lost_only_by_a_root_that_was_ready_in_this_generation(ready: dict[str, Any], reason: str) -> None:
    assert judged(LACKS_PODS, ready)[0]["Reconciling"] == ("True", reason)
    assert judged(COMES_UP, ready)[0]["Reconciling"] == ("True", "ComingUp")


@pytest.mark.parametrize(
    ("deferred", "alarms", "reason"),
    [
        ((TAKEN,), (), "NameConflict"),
        ((MISSING, TAKEN), (), "NameConflict"),
        ((MISSING,), (Alarm("UpdateRefused", "no", blocking=True),), "UpdateRefused"),
        ((), (Alarm("Any", "spec.x is wrong", fault=True),), "ValidationFailed"),
    ],
)
def test_what_cannot_pass_stalls_a_root_at_once(deferred: tuple[Wait, ...], alarms: tuple[Alarm, ...], reason: str) -> None:
    for readiness in (SERVES, COMES_UP):
        shown, result = judged(readiness, deferred=deferred, alarms=alarms)

        assert shown == {"Ready": ("False", reason), "Stalled": ("True", reason)} and result.until is None


def test_what_another_tool_may_still_provide_stalls_a_root_after_a_minute() -> None:
    shown, result = judged(COMES_UP, deferred=(MISSING,))
    assert shown == {"Ready": ("False", "ReferenceMissing"), "Reconciling": ("True", "ReferenceMissing")}
    assert result.until == AT + PATIENCE and result.conditions[1]["lastTransitionTime"] is NOW

    waiting = known("Reconciling", "True", "ReferenceMissing")
    shown, result = judged(COMES_UP, waiting, deferred=(MISSING,))
    assert shown["Reconciling"] == ("True", "ReferenceMissing") and result.conditions[1]["lastTransitionTime"] == BEFORE
    assert result.until == AT + timedelta(seconds=30)

    shown, result = judged(COMES_UP, waiting, deferred=(MISSING,), now=AT + timedelta(seconds=30))
    assert shown == {"Ready": ("False", "ReferenceMissing"), "Stalled": ("True", "ReferenceMissing")} and result.until is None

    stalled = known("Stalled", "True", "ReferenceMissing")
    assert "Stalled" in judged(COMES_UP, stalled, deferred=(MISSING,))[0]
    assert judged(COMES_UP, stalled)[0] == {"Ready": ("False", "ComingUp"), "Reconciling": ("True", "ComingUp")}


def test_it_stalls_a_root_that_was_ready_in_this_generation_at_once() -> None:
    assert "Stalled" in judged(COMES_UP, known("Ready", "True", "AllReplicasAvailable"), deferred=(MISSING,))[0]


@pytest.mark.parametrize("at", ["yesterday", "", "2026-11-28", "2026-11-28T11:00:00"])
def test_a_time_that_is_none_counts_as_now(at: str) -> None:
    _, result = judged(COMES_UP, known("Reconciling", "True", "ReferenceMissing", at=at), deferred=(MISSING,))

    assert result.until == AT + PATIENCE


def test_what_could_not_be_listed_is_unknown_and_stalls_nothing() -> None:
    assert judged(SERVES, deferred=(UNLISTED,))[0] == {"Ready": ("Unknown", "NotListed"), "Reconciling": ("True", "NotListed")}


def test_a_blueprint_may_write_ready_itself() -> None:
    own = Readiness(False, "some", "text", has_own_ready=True)
    theirs, old = known("Ready", "False", "some"), known("Stalled", "True", "Old")
    stored = root(theirs, old)

    written = with_health({"state": "pending", "conditions": [theirs, old]}, health(own, (), (), stored, AT), stored)["conditions"]

    assert [each["type"] for each in written] == ["Reconciling", "Ready"] and written[1] is theirs


@pytest.mark.parametrize(("deferred", "status", "reason"), [(MISSING, "False", "ReferenceMissing"), (UNLISTED, "Unknown", "NotListed")])
def test_a_root_that_is_ready_by_its_own_words_is_not_while_its_edit_is_not_carried_out(deferred: Wait, status: str, reason: str) -> None:
    own, theirs = Readiness(True, "some", "text", has_own_ready=True), known("Ready", "True", "some", generation=1)
    stored = root(theirs)

    written = with_health({"conditions": [theirs | {"observedGeneration": 2}]}, health(own, (deferred,), (), stored, AT), stored)

    assert {each["type"]: (each["status"], each["reason"]) for each in written["conditions"]} == {
        "Ready": (status, reason),
        "Reconciling": ("True", reason),
    }


def test_a_root_that_is_ready_by_its_own_words_is_not_while_its_plan_is_denied() -> None:
    stored = root(known("Ready", "True", "some"))

    write = obstructed(stored, Obstacle("PlanDenied", "no"), AT, TYPES[1:])

    assert write is not None
    found = {each["type"]: (each["status"], each["reason"]) for each in write.patch["status"]["conditions"]}
    assert found == {"Ready": ("False", "PlanDenied"), "Stalled": ("True", "PlanDenied")}


def test_conditions_of_others_stay_where_they_are() -> None:
    theirs, old, more = known("Theirs", "True", "X"), known("Reconciling", "True", "ComingUp"), known("More", "True", "X")
    ready = known("Ready", "True", "AllReplicasAvailable")

    def written(*stored: dict[str, Any]) -> list[str]:
        status = {"conditions": [*stored, more]}
        return [each["type"] for each in with_health(status, judged(SERVES, *stored)[1], root(*stored))["conditions"]]

    assert written(old, theirs) == ["Ready", "Theirs", "More"]
    assert written(theirs, ready) == ["Theirs", "Ready", "More"]


def test_ready_reconciling_and_stalled_exclude_one_another_in_every_situation() -> None:
    progresses = (SERVES, COMES_UP, LACKS_PODS, Readiness(False, "R", "m", obstacle=Obstacle("DomainCut", "m")))
    pasts = (
        (),
        *(
            (known(type, status, reason),)
            for type in ("Ready", "Reconciling", "Stalled")
            for status in ("True", "False")
            for reason in ("ComingUp", "ReferenceMissing")
        ),
    )
    for readiness, past, deferred in product(progresses, pasts, ((), (TAKEN,), (MISSING,), (UNLISTED,), (MISSING, UNLISTED))):
        shown, result = judged(readiness, *past, deferred=deferred)

        assert set(shown) in ({"Ready"}, {"Ready", "Reconciling"}, {"Ready", "Stalled"})
        assert (shown["Ready"][0] == "True") == (len(shown) == 1)
        status = {"observedGeneration": 2, "conditions": list(result.conditions)}
        expected = {1: "Current"}.get(len(shown), "Failed" if "Stalled" in shown else "InProgress")
        assert kstatus({"metadata": {"generation": 2}, "status": status}) == expected


def test_a_message_is_not_too_long() -> None:
    (ready, _) = judged(Readiness(False, "R", "x" * 5000))[1].conditions

    assert len(ready["message"]) == 1024


def test_mistakes_come_first() -> None:
    assert obstacle_of((TAKEN,), (), ("a is wrong", "b is wrong")) == Obstacle("ValidationFailed", "a is wrong; b is wrong")
    assert obstacle_of((), (Alarm("Told", "only"),)) is None
