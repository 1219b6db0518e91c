"""Rollout: which replica of a set is being updated, and what may be replaced in it."""

import pytest

from resources.lifecycle.rollout import UpdateAllowance, UpdateStage, current_replica, update_allowances


def replica(index: int, state: str = "") -> UpdateStage:
    """A replica that is `outdated`, `in transition`, both or neither."""
    in_transition = "in transition" in state
    return UpdateStage(index, "outdated" in state, in_transition, scheduled=True, healthy=not in_transition)


@pytest.mark.parametrize(
    ("last", "states", "current"),
    [
        (None, ("outdated", "outdated"), 0),
        (0, ("outdated, in transition", "outdated"), 0),
        (0, ("in transition", "outdated"), 0),
        (0, ("in transition", "outdated, in transition"), 0),
        (0, ("outdated", "outdated, in transition"), 0),
        (0, ("", "outdated"), 1),
        (None, ("in transition", "outdated"), 0),
        (1, ("", "in transition"), 1),
        (1, ("in transition", "outdated"), 1),
        (1, ("", ""), None),
        (None, ("", "in transition"), 1),
    ],
)
def test_a_replica_is_being_updated_until_its_replaced_units_are_ready_again(
    last: int | None, states: tuple[str, ...], current: int | None
) -> None:
    stages = [replica(index, state) for index, state in enumerate(states)]

    assert current == current_replica(stages, last)


@pytest.mark.parametrize(
    ("states", "allowances"),
    [
        (("outdated", "outdated"), {0: UpdateAllowance.ONE}),
        (("outdated, in transition", "outdated"), {0: UpdateAllowance.BROKEN}),
        (("in transition", "outdated"), {1: UpdateAllowance.BROKEN}),
        (("", "outdated"), {1: UpdateAllowance.ONE}),
        (("", "in transition"), {}),
    ],
)
def test_one_outdated_replica_may_be_changed_and_nothing_ready_in_it_while_a_unit_is_in_transition(
    states: tuple[str, ...], allowances: dict[int, UpdateAllowance]
) -> None:
    stages = [replica(index, state) for index, state in enumerate(states)]

    assert allowances == update_allowances(stages, None)
