"""What a revised sequence knows of its changes is what a look at all items finds."""

from hypothesis import given
from hypothesis import strategies as st

from engine.memo import Revised, differences, revised, selected


class Item:
    """Compared by identity, as plans and observations are."""

    def __init__(self, number: int) -> None:
        self.number = number


def is_even(item: Item) -> bool:
    return item.number % 2 == 0


def is_large(item: Item) -> bool:
    return item.number > 50


items = st.builds(Item, st.integers(0, 100))


@given(st.data())
def test_what_is_known_of_a_revision_is_what_a_look_at_all_items_finds(data: st.DataObject) -> None:
    sequence: Revised[Item] = Revised(data.draw(st.lists(items, min_size=1, max_size=8)))
    history: list[Revised[Item]] = [sequence]
    for _ in range(data.draw(st.integers(1, 5))):
        for holds in data.draw(st.lists(st.sampled_from((is_even, is_large)), max_size=2)):
            sequence.where(holds)
        positions = data.draw(st.sets(st.integers(0, len(sequence) - 1)))
        replaced = {position: data.draw(st.one_of(st.just(sequence[position]), items)) for position in positions}
        sequence = sequence.revised(replaced)
        history.append(sequence)

        assert tuple(sequence) == tuple(replaced.get(position, item) for position, item in enumerate(history[-2]))
        for holds in (is_even, is_large):
            assert selected(sequence, holds) == [item for item in sequence if holds(item)]
        for old in history:
            found = differences(old, sequence)
            assert found is not None
            assert list(found) == differences(tuple(old), tuple(sequence))


def test_a_sequence_in_which_nothing_is_replaced_is_the_same_object() -> None:
    sequence = Revised([Item(1), Item(2)])

    assert sequence.revised({}) is sequence
    assert sequence.revised({1: sequence[1]}) is sequence
    assert differences(sequence, sequence) == ()


def test_sequences_of_other_lengths_have_no_positions_in_common() -> None:
    assert differences([Item(1)], []) is None


def test_a_plain_tuple_is_revised_as_well() -> None:
    one, two, three = Item(1), Item(2), Item(3)

    assert tuple(revised((one, two), {0: three})) == (three, two)
    assert differences((one, two), revised((one, two), {0: three})) == [0]
