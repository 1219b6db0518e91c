"""Of the large roots that are to be planned anew, a pass plans the one that has waited longest."""

import pytest

from engine.ids import ResourceId
from engine.runtime.portions import INTERRUPTIONS, Portions
from resources.base import kinds

SMALL, FIRST, SECOND, THIRD = (kinds.PODCLIQUESET.id("default", name) for name in ("a-small", "b-first", "c-second", "d-third"))
SIZES = {SMALL: 10, FIRST: 11, SECOND: 500, THIRD: 11}


def waiting(portions: Portions, *roots: ResourceId, at: float = 0.0) -> list[ResourceId]:
    """The roots that wait after the beginning of a pass at this time that is to plan these roots."""
    portions.begin({root: SIZES[root] for root in roots}, at)
    return list(portions.waiting)


def test_small_roots_go_first_and_large_ones_follow_one_in_a_pass() -> None:
    portions = Portions(10)

    assert waiting(portions, SMALL, FIRST, SECOND, THIRD) == [FIRST, SECOND, THIRD]
    assert waiting(portions, FIRST, SECOND, THIRD) == [SECOND, THIRD]
    assert waiting(portions, SECOND, THIRD) == [THIRD]
    assert waiting(portions, THIRD) == []


def test_small_roots_that_change_all_the_time_hold_back_no_large_one() -> None:
    portions = Portions(10)

    assert waiting(portions, SMALL, FIRST, SECOND) == [FIRST, SECOND]
    assert waiting(portions, SMALL, FIRST, SECOND) == [SECOND, SMALL]
    assert waiting(portions, SMALL, SECOND) == [SECOND]
    assert waiting(portions, SMALL, SECOND) == [SMALL]


def test_what_has_waited_longest_is_planned_first_whatever_changes_meanwhile() -> None:
    portions = Portions(10)

    assert waiting(portions, FIRST, SECOND, THIRD) == [SECOND, THIRD]
    assert waiting(portions, FIRST, SECOND, THIRD) == [THIRD, FIRST]
    assert waiting(portions, FIRST, SECOND, THIRD) == [FIRST, SECOND]
    assert waiting(portions, FIRST) == []


def test_only_large_roots_rest_after_a_large_one() -> None:
    portions = Portions(10)

    assert waiting(portions, FIRST, at=0.0) == []
    assert portions.rest(2.0, at=1.0)
    assert portions.next_due(at=1.0) is None

    assert waiting(portions, FIRST, at=1.2) == [FIRST]
    assert portions.rest(2.0, at=1.3)
    assert portions.next_due(at=1.3) == 3.0

    assert waiting(portions, FIRST, at=3.0) == []
    assert waiting(portions, SMALL, at=5.0) == []
    assert not portions.rest(2.0, at=5.1)


def test_an_interrupted_root_lets_small_ones_go_first_and_is_the_next_one() -> None:
    portions = Portions(10)

    assert waiting(portions, FIRST, SECOND) == [SECOND]
    portions.interrupt()
    assert portions.begun == {FIRST, SECOND}
    assert waiting(portions, SMALL, FIRST, SECOND) == [FIRST, SECOND]
    assert not portions.plans_large
    portions.end()
    assert portions.begun == frozenset()

    assert waiting(portions, SMALL, FIRST, SECOND) == [SECOND, SMALL]
    assert portions.plans_large


def test_a_root_that_was_interrupted_often_is_planned_to_its_end_whatever_is_more_urgent() -> None:
    portions, interruptions = Portions(10), 0

    for _ in range(100):
        portions.begin({SMALL: 10, FIRST: 11}, 0.0)
        if portions.may_be_interrupted:
            portions.interrupt()
            interruptions += 1
        elif portions.plans_large:
            break
        portions.end()
    else:
        pytest.fail("It is never planned.")

    assert interruptions == INTERRUPTIONS
    portions.end()
    assert waiting(portions, FIRST) == []
    assert portions.may_be_interrupted


def test_how_often_a_root_was_interrupted_is_forgotten_with_it() -> None:
    portions = Portions(10)
    for _ in range(INTERRUPTIONS):
        portions.begin({FIRST: 11}, 0.0)
        portions.interrupt()
    portions.begin({FIRST: 11}, 0.0)
    assert not portions.may_be_interrupted

    portions.begin({}, 0.0)
    portions.end()

    # Another one of its name is a root of its own.
    portions.begin({FIRST: 11}, 0.0)
    assert portions.may_be_interrupted


def test_what_is_not_to_be_planned_any_more_does_not_wait() -> None:
    portions = Portions(10)
    portions.begin(SIZES, 0.0)

    assert waiting(portions, THIRD) == []
    assert waiting(portions) == []


def test_by_default_nothing_waits() -> None:
    assert waiting(Portions(), *SIZES) == []


def test_a_root_of_another_namespace_does_not_wait_for_many_that_changed_at_once_and_none_waits_for_ever() -> None:
    portions = Portions(2_000, 10_000)
    crowd = {kinds.PODCLIQUESET.id("loud", f"set-{number}"): 1_900 for number in range(50)}
    small = kinds.PODCLIQUESET.id("quiet", "web")
    passes, left = 0, dict(crowd)

    while left:
        sizes = {**left, small: 20}
        portions.begin(sizes, float(passes))
        planned = sizes.keys() - portions.waiting
        assert small in planned and sum(sizes[root] for root in planned) <= 10_000
        assert (portions.next_due(float(passes)) == passes) is bool(portions.waiting)
        assert not portions.rest(2.0, float(passes))
        left = {root: size for root, size in left.items() if root not in planned}
        passes += 1

    assert passes == 10


def test_the_root_that_has_waited_longest_is_planned_whatever_small_ones_change_all_the_time() -> None:
    portions = Portions(2_000, 10_000)
    large, steady = kinds.PODCLIQUESET.id("a", "large"), {kinds.PODCLIQUESET.id(f"ns-{number}", "web"): 1_000 for number in range(10)}

    portions.begin({**steady, large: 1_900}, 0.0)
    assert large in portions.waiting
    portions.begin({**steady, large: 1_900}, 1.0)
    assert large not in portions.waiting
