"""What is known of failed calls after passes that look only at what has changed is what a look at all plans finds."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.answer import FailedCall
from engine.errors import Forbidden
from engine.ids import ResourceId
from engine.memo import Revised
from engine.operation import Outcome, Result
from engine.plan import Plan
from engine.runtime.failed_calls import FailedCalls
from tests.engine.runtime.fakes import ROOT, create

START = datetime(2026, 1, 1, tzinfo=UTC)
NOWHERE = frozenset({"Nothing"})
"""A kind that no plan has: with it all plans are looked at."""

plans_of_any_root = st.builds(
    Plan,
    st.just(ROOT.id("default", "any")),
    operations=st.lists(st.sampled_from("ab"), unique=True).map(lambda names: tuple(create(name) for name in names)),
    problems=st.sampled_from(((), (), (), ("no",))),
)


def named(number: int, plan: Plan) -> Plan:
    """The plan as that of the root with this number."""
    return replace(plan, root=ROOT.id("default", f"root-{number}"))


def entries(failed_calls: FailedCalls) -> dict[ResourceId, list[tuple[str, Exception | None, datetime]]]:
    """Root -> name, error and time of each failed call."""
    return {root: [(call.id.name, call.error, call.since) for call in calls] for root, calls in failed_calls.known.items()}


@given(st.data())
def test_what_is_known_after_looking_at_changes_is_what_a_look_at_all_plans_finds(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(plans_of_any_root, min_size=1, max_size=4))
    plans = Revised([ROOT.id("default", f"root-{number}") for number in range(len(drawn))], map(named, range(len(drawn)), drawn))
    by_changes, by_all = FailedCalls(), FailedCalls()
    known: dict[ResourceId, tuple[FailedCall, ...]] = {}
    for step in range(data.draw(st.integers(1, 6))):
        at, version = START + timedelta(minutes=step), by_changes.version
        outcomes = st.sampled_from((Outcome.DONE, Outcome.FAILED, None))
        answers = [(operation, data.draw(outcomes)) for plan in plans for operation in plan.operations]
        results = [
            Result(operation, outcome, error=Forbidden("no") if outcome is Outcome.FAILED else None)
            for operation, outcome in answers
            if outcome is not None
        ]
        by_changes.note(plans, results, at)
        by_all.note(plans, results, at, NOWHERE)

        assert entries(by_changes) == entries(by_all)
        changed = by_changes.changed_since(version)
        assert changed is not None
        assert set(changed) == {root for root in {*known, *by_changes.known} if known.get(root) is not by_changes.known.get(root)}
        known = dict(by_changes.known)
        replaced = data.draw(st.dictionaries(st.integers(0, 5), st.one_of(plans_of_any_root, st.none())))
        plans = plans.revised(
            {ROOT.id("default", f"root-{number}"): named(number, plan) if plan else None for number, plan in replaced.items()}
        )
