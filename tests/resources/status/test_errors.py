"""What an object tells of what could not be done for it: by which code, since when, and when it says nothing."""

from collections.abc import Iterable

from engine.errors import Forbidden
from engine.failure import FailedCall
from engine.operation import Operation
from engine.resource import Body
from engine.runtime.failed_calls import failed_call
from engine.verb import Verb
from resources.base import kinds
from resources.status import errors
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.laws.toy import START, Toy

SET = kinds.PODCLIQUESET.id("default", "demo")
GROUP = kinds.SCALING_GROUP.id("default", "demo-0-g")
CLIQUE = kinds.PODCLIQUE.id("default", "demo-0-a")
DEMO = podcliqueset(
    "demo",
    clique("a", autoScalingConfig={"maxReplicas": 3}, resourceSharing=[share("gpu")]),
    clique("b"),
    groups=(group("g", "b", resourceSharing=[share("gpu")]),),
    cliqueStartupType="CliqueStartupTypeInOrder",
    resourceClaimTemplates=[claim_template("gpu")],
    resourceSharing=[share("gpu")],
)
NO = Forbidden("no")


def failed(operations: Iterable[Operation]) -> list[FailedCall]:
    """All of it was refused."""
    return [failed_call(operation, NO, START) for operation in operations]


def bringing_up() -> Toy:
    """A cluster in which all that is planned is to make things."""
    toy = Toy()
    toy.put(DEMO)
    return toy


def codes(said: Body) -> set[str]:
    """The codes that are told."""
    return {entry["code"] for entry in said["lastErrors"]}


def test_what_could_not_be_made_is_told_by_the_code_of_its_sort() -> None:
    (plan,) = bringing_up().plans()
    failed_calls = failed(plan.operations)

    assert codes(errors.of(SET, failed_calls, {})) == {
        "ERR_CREATE_OR_UPDATE_PODCLIQUE",
        "ERR_CREATE_PODCLIQUESCALINGGROUP",
        "ERR_CREATE_PODGANG",
        "ERR_CREATE_SECRET",
        "ERR_SYNC_HPA",
        "ERR_SYNC_PCS_RESOURCE_CLAIM",
        "ERR_SYNC_PODCLIQUESET_SERVICE",
        "ERR_SYNC_ROLE",
        "ERR_SYNC_ROLEBINDING",
        "ERR_SYNC_SERVICEACCOUNT",
    }
    assert codes(errors.of(GROUP, failed_calls, {})) == {"ERR_CREATE_PODCLIQUE", "ERR_SYNC_PCSG_RESOURCE_CLAIM"}
    assert codes(errors.of(CLIQUE, failed_calls, {})) == {"ERR_CREATE_POD", "ERR_SYNC_PCLQ_RESOURCE_CLAIM"}


def test_what_could_not_be_taken_away_is_told_as_a_delete() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", 2)))
    toy.settle()
    toy.write(CLIQUE, {"spec": {"replicas": 1}})
    (plan,) = toy.plans()
    going = [operation for operation in plan.operations if operation.verb is Verb.DELETE]

    (entry,) = errors.of(CLIQUE, failed(going), {})["lastErrors"]
    assert entry == {
        "code": "ERR_DELETE_POD",
        "description": f"failed to sync Pod: [Operation: Delete, Code: ERR_DELETE_POD] message: delete {going[0].id}, cause: no",
        "observedAt": "2026-01-01T00:00:00Z",
    }


def test_an_error_that_is_told_already_keeps_its_time_and_another_gets_its_own() -> None:
    (plan,) = bringing_up().plans()
    failed_calls = failed(operation for operation in plan.operations if operation.id.kind == "Pod")
    (entry,) = errors.of(CLIQUE, failed_calls, {})["lastErrors"]
    known = {**entry, "observedAt": "2025-12-24T00:00:00Z"}

    assert errors.of(CLIQUE, failed_calls, {"lastErrors": [known]}) == {"lastErrors": [known]}
    assert errors.of(CLIQUE, failed_calls, {"lastErrors": [{**known, "description": "something else"}]}) == {"lastErrors": [entry]}


def test_nothing_is_said_by_who_has_tried_nothing() -> None:
    (plan,) = bringing_up().plans()
    untried = [failed_call(operation, None, START) for operation in plan.operations]

    assert errors.of(CLIQUE, None, {}) == {}
    assert errors.of(CLIQUE, untried, {}) == {}


def test_when_all_has_gone_well_the_field_is_taken_away() -> None:
    assert errors.of(CLIQUE, (), {}) == {"lastErrors": None}


def test_what_is_done_to_a_set_itself_and_troubles_of_others_are_not_told() -> None:
    (plan,) = bringing_up().plans()
    own = [operation for operation in plan.operations if operation.id == SET]
    pods = [operation for operation in plan.operations if operation.id.kind == "Pod"]

    assert own and pods
    assert errors.of(SET, failed([*own, *pods]), {}) == {"lastErrors": None}


def test_never_more_than_twenty_and_none_longer_than_a_kilobyte() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", 50)))
    (plan,) = toy.plans()
    failed_calls = [failed_call(operation, Forbidden("x" * 5000), START) for operation in plan.operations]

    told = errors.of(CLIQUE, failed_calls, {})["lastErrors"]
    assert len(told) == errors.MOST
    assert max(len(entry["description"]) for entry in told) == errors.LONGEST
