"""The condition of a set whose scheduler does not schedule its gangs."""

from msgspec.structs import replace

from engine.verb import Verb
from providers.registry import SCHEDULERS
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.laws.toy import Toy
from tests.resources.status.states import ROOT, conditions, edit, live_status, up

TYPE = "GangSchedulingUnavailable"


def condition_of(toy: Toy) -> tuple[str, str, str] | None:
    """Status, reason and message of the condition; None without it."""
    return conditions(live_status(toy, kinds.PODCLIQUESET, "demo")).get(TYPE)


def test_a_set_of_the_default_scheduler_says_that_its_gangs_are_not_scheduled_and_what_to_do() -> None:
    status, reason, message = condition_of(up(podcliqueset("demo", clique("a", 2)))) or ("", "", "")

    assert (status, reason) == ("True", "SchedulerWithoutGangs")
    assert message.startswith("default-scheduler does not schedule gangs: the pods of this set are placed one by one; ")


def test_gangs_of_one_pod_have_no_condition() -> None:
    assert condition_of(up(podcliqueset("demo", clique("a"), replicas=3))) is None


def test_a_set_from_before_gets_the_condition_by_one_status_write_and_nothing_else_happens_to_it() -> None:
    toy = up(podcliqueset("demo", clique("a", 2), replicas=2))
    expected = condition_of(toy)
    toy.objects[ROOT] = {**toy.objects[ROOT], "status": {**toy.objects[ROOT]["status"], "conditions": []}}
    toy.write(ROOT, {})

    (plan,) = toy.plans()
    assert [(operation.verb, operation.id, operation.alarms if hasattr(operation, "alarms") else ()) for operation in plan.operations] == [
        (Verb.STATUS, ROOT, ())
    ]
    toy.apply(plan.operations)
    assert condition_of(toy) == expected
    assert toy.plans()[0].operations == ()
    assert plan.alarms == ()


def test_an_edit_does_not_change_the_condition() -> None:
    toy = up(podcliqueset("demo", clique("a", 2)))
    before = condition_of(toy)

    edit(toy, ROOT, replicas=3)
    toy.settle()

    assert condition_of(toy) == before


def test_the_condition_goes_when_the_set_has_a_scheduler_that_schedules_gangs() -> None:
    toy = up(podcliqueset("demo", clique("a", 2)))
    toy.configuration = replace(toy.configuration, schedulers=SCHEDULERS, default_scheduler="lpx-scheduler")
    toy.settle()

    assert condition_of(toy) is None
