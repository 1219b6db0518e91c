"""`lastErrors`: which failed calls an object reports, with which code and time, and when the field stays as it is."""

from collections.abc import Iterable, Sequence

from engine.answer import FailedCall
from engine.errors import Forbidden
from engine.ids import ResourceId
from engine.operation import Operation
from engine.resource import Body
from engine.runtime.failed_calls import failed_call
from engine.verb import Verb
from resources.base import kinds
from resources.children.table import CHILDREN
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
    """All these operations were refused."""
    return [failed_call(operation, NO, START) for operation in operations]


def bringing_up() -> Toy:
    """A cluster in which everything has to be created."""
    toy = Toy()
    toy.put(DEMO)
    return toy


def last_errors(parent: ResourceId, failed_calls: Sequence[FailedCall] | None, old: Body) -> Body:
    """The field of the status of an object."""
    return errors.of(parent, failed_calls, old, CHILDREN.codes)


def codes(status: Body) -> set[str]:
    """The reported codes."""
    return {entry["code"] for entry in status["lastErrors"]}


def test_a_failed_creation_is_reported_with_the_code_of_its_kind() -> None:
    (plan,) = bringing_up().plans()
    failed_calls = failed(plan.operations)

    assert codes(last_errors(SET, failed_calls, {})) == {
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
    assert codes(last_errors(GROUP, failed_calls, {})) == {"ERR_CREATE_PODCLIQUE", "ERR_SYNC_PCSG_RESOURCE_CLAIM"}
    assert codes(last_errors(CLIQUE, failed_calls, {})) == {"ERR_CREATE_POD", "ERR_SYNC_PCLQ_RESOURCE_CLAIM"}


def test_a_failed_deletion_is_reported_as_a_delete() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", 2)))
    toy.settle()
    toy.write(CLIQUE, {"spec": {"replicas": 1}})
    (plan,) = toy.plans()
    deletions = [operation for operation in plan.operations if operation.verb is Verb.DELETE]

    (entry,) = last_errors(CLIQUE, failed(deletions), {})["lastErrors"]
    assert entry == {
        "code": "ERR_DELETE_POD",
        "description": f"failed to sync Pod: [Operation: Delete, Code: ERR_DELETE_POD] message: delete {deletions[0].id}, cause: no",
        "observedAt": "2026-01-01T00:00:00Z",
    }


def test_a_known_error_keeps_its_time_and_another_one_gets_its_own() -> None:
    (plan,) = bringing_up().plans()
    failed_calls = failed(operation for operation in plan.operations if operation.id.kind == "Pod")
    (entry,) = last_errors(CLIQUE, failed_calls, {})["lastErrors"]
    known = {**entry, "observedAt": "2025-12-24T00:00:00Z"}

    assert last_errors(CLIQUE, failed_calls, {"lastErrors": [known]}) == {"lastErrors": [known]}
    assert last_errors(CLIQUE, failed_calls, {"lastErrors": [{**known, "description": "something else"}]}) == {"lastErrors": [entry]}


def test_the_field_stays_as_it_is_until_the_calls_have_been_made() -> None:
    (plan,) = bringing_up().plans()
    untried = [failed_call(operation, None, START) for operation in plan.operations]

    assert last_errors(CLIQUE, None, {}) == {}
    assert last_errors(CLIQUE, untried, {}) == {}


def test_the_field_is_removed_when_no_call_failed() -> None:
    assert last_errors(CLIQUE, (), {}) == {"lastErrors": None}


def test_failed_calls_for_the_set_itself_and_for_children_of_others_are_not_reported() -> None:
    (plan,) = bringing_up().plans()
    own = [operation for operation in plan.operations if operation.id == SET]
    pods = [operation for operation in plan.operations if operation.id.kind == "Pod"]

    assert own and pods
    assert last_errors(SET, failed([*own, *pods]), {}) == {"lastErrors": None}


def test_at_most_twenty_errors_of_a_kilobyte_each_are_reported() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo", clique("a", 50)))
    (plan,) = toy.plans()
    failed_calls = [failed_call(operation, Forbidden("x" * 5000), START) for operation in plan.operations]

    entries = last_errors(CLIQUE, failed_calls, {})["lastErrors"]
    assert len(entries) == errors.MAX_ERRORS
    assert max(len(entry["description"]) for entry in entries) == errors.MAX_DESCRIPTION
