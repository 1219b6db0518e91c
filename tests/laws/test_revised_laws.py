"""What a revised sequence knows of its changes is what a look at all items finds."""

from hypothesis import given
from hypothesis import strategies as st

from engine.ids import ResourceId
from engine.memo import Memo, Revised, differences, selected
from tests.engine.runtime.fakes import ROOT


class Item:
    """Compared by identity, as plans and observations are."""

    def __init__(self, number: int) -> None:
        self.number = number


def is_even(item: Item) -> bool:
    return item.number % 2 == 0


def is_large(item: Item) -> bool:
    return item.number > 50


items = st.builds(Item, st.integers(0, 100))
roots = st.builds(lambda name: ROOT.id("default", name), st.sampled_from("abcdefgh"))
contents = st.dictionaries(roots, items, max_size=8)


def sequence_of(content: dict[ResourceId, Item]) -> Revised[Item]:
    """A sequence that was made from no other."""
    return Revised(sorted(content), [content[root] for root in sorted(content)])


def content_of(sequence: Revised[Item]) -> dict[ResourceId, Item]:
    """Root -> its item."""
    return dict(zip(sequence.roots, sequence, strict=True))


def revision(data: st.DataObject, sequence: Revised[Item]) -> Revised[Item]:
    """A later revision: some roots come, go, change or stay."""
    changes: dict[ResourceId, Item | None] = {}
    for root in data.draw(st.sets(roots, max_size=4)):
        changes[root] = data.draw(st.one_of(st.none(), st.just(sequence.get(root)), items))
    return sequence.revised(changes)


def exact(old: Revised[Item], new: Revised[Item]) -> tuple[ResourceId, ...]:
    """The roots of which the items differ, found by looking at all."""
    return tuple(root for root in sorted({*old.roots, *new.roots}) if old.get(root) is not new.get(root))


@given(st.data())
def test_what_is_known_of_a_revision_is_what_a_look_at_all_items_finds(data: st.DataObject) -> None:
    sequence = sequence_of(data.draw(contents))
    history = [sequence]
    for _ in range(data.draw(st.integers(1, 8))):
        for holds in data.draw(st.lists(st.sampled_from((is_even, is_large)), max_size=2)):
            sequence.where(holds)
        sequence = revision(data, sequence)
        history.append(sequence)

        assert list(sequence.roots) == sorted(set(sequence.roots))
        assert [sequence.get(root) for root in sequence.roots] == list(sequence)
        for holds in (is_even, is_large):
            assert selected(sequence, holds) == [item for item in sequence if holds(item)]
        for old in history:
            found = differences(old, sequence)
            assert list(found) == sorted(set(found))
            assert set(exact(old, sequence)) <= set(found)
            assert exact(old, sequence) == differences(sequence_of(content_of(old)), sequence)
        assert exact(history[-2], sequence) == differences(history[-2], sequence)


@given(st.data())
def test_what_is_computed_of_each_root_that_has_changed_is_what_is_computed_of_all(data: st.DataObject) -> None:
    """With results that expire, facts that change, passes that are left out, and sequences that were made from no other."""
    memo, sequence, offset = Memo(), sequence_of(data.draw(contents)), 0
    asked: list[ResourceId] = []
    before: dict[ResourceId, Item] | None = None
    for _ in range(data.draw(st.integers(1, 6))):
        expired = data.draw(st.sets(roots, max_size=2))
        is_offset = data.draw(st.booleans()) and data.draw(st.booleans())
        offset += is_offset
        asked.clear()

        def result_of(item: Item, now: Revised[Item] = sequence, more: int = offset) -> int:
            asked.extend(root for root in now.roots if now.get(root) is item)
            return item.number + more

        results = memo.each("numbers", sequence, (offset,), result_of, also=expired)

        content = content_of(sequence)
        assert dict(zip(results.roots, results, strict=True)) == {root: item.number + offset for root, item in content.items()}
        if before is not None and not is_offset:
            assert set(asked) == {root for root in content if root in expired or before.get(root) is not content[root]}
        else:
            assert sorted(asked) == list(sequence.roots)
        before = content
        for _ in range(data.draw(st.integers(0, 6))):
            sequence = revision(data, sequence)
        if data.draw(st.booleans()):
            sequence = sequence_of(content_of(sequence))


def test_a_sequence_in_which_nothing_differs_is_the_same_object() -> None:
    one, two, three = (ROOT.id("default", name) for name in "abc")
    sequence = Revised([one, two], [Item(1), Item(2)])

    assert sequence.revised({}) is sequence
    assert sequence.revised({two: sequence[1], three: None}) is sequence
    assert differences(sequence, sequence) == ()


def test_the_roots_are_the_same_object_while_none_comes_or_goes() -> None:
    one, two = (ROOT.id("default", name) for name in "ab")
    sequence = Revised([one, two], [Item(1), Item(2)])

    assert sequence.revised({two: Item(3)}).roots is sequence.roots
    assert sequence.revised({one: None}).roots == (two,)
