"""Event correlation: equal events are counted, similar ones combined, and no object is flooded."""

from collections import Counter

import pytest
from msgspec.structs import replace

from engine.event import Event, RootEvents
from engine.ids import ResourceId
from engine.runtime.event_correlation import (
    APART,
    BURST,
    COMBINED,
    MAX_REMEMBERED,
    MAX_SIMILAR,
    REFILL,
    SPACING,
    SUMMARY,
    WINDOW,
    Correlator,
)
from tests.engine.runtime.fakes import leaf, root

ROOT = root()


def event(message: str, reason: str = "Created", about: ResourceId = ROOT, *, warning: bool = False) -> Event:
    """An event about the root, or about one of its leaves."""
    return Event(about, f"uid-{about.name}", reason, message, warning)


def messages(count: int, reason: str = "Created", *, warning: bool = False, first: int = 0) -> list[Event]:
    """So many events about the root that differ in their message only."""
    return [event(f"leaf {number} created", reason, warning=warning) for number in range(first, first + count)]


def leaves(count: int, first: int = 0) -> list[Event]:
    """An event about each of so many leaves."""
    return [event("ready", "Ready", leaf(f"leaf-{number}")) for number in range(first, first + count)]


def of_root(*events: Event) -> list[RootEvents]:
    """What happened to the root."""
    return [RootEvents(ROOT, "uid-root", events)]


def counts(events: list[Event]) -> dict[str, int]:
    """Message -> count."""
    return {event.message: event.count for event in events}


def test_equal_events_of_a_pass_become_one_with_their_number() -> None:
    assert counts(Correlator().combine(of_root(*[event("quota exceeded")] * 5), 0)) == {"quota exceeded": 5}


def test_an_event_that_repeats_is_added_up_until_it_may_be_written_again() -> None:
    correlator = Correlator()

    written = [counts(correlator.combine(of_root(event("quota exceeded")), at)) for at in (0, 1, 2, SPACING, SPACING + 1)]

    assert [counts.get("quota exceeded", 0) for counts in written] == [1, 0, 0, 3, 0]
    assert counts(correlator.combine([], SPACING + 2, flush=True)) == {"quota exceeded": 1}


def test_ten_messages_are_written_one_by_one_and_the_others_as_one_event_with_the_last_message() -> None:
    correlator = Correlator()
    passes = [correlator.combine(of_root(*messages(5, first=5 * number)), 0) for number in range(4)]

    assert [len(written) for written in passes] == [5, 5, 0, 0]
    assert counts(correlator.combine([], SPACING)) == {f"{COMBINED}leaf 19 created": 10}


def test_a_summary_is_written_once_nothing_is_added_to_it_or_after_five_minutes() -> None:
    correlator = Correlator()
    written = {second: correlator.combine(of_root(*messages(20, first=20 * second)), second) for second in range(0, 400, 5)}

    assert [second for second, events in written.items() if events] == [SUMMARY]
    assert correlator.combine([], 395 + SPACING - 1) == []
    assert len(correlator.combine([], 395 + SPACING)) == 1


def created(count: int, about: ResourceId | None = None) -> list[Event]:
    """So many leaves have been created, about this object or each about another one."""
    return [
        replace(event(f"{name} created", about=about or leaf(f"of-{name}")), subject=name) for name in (f"leaf-{n}" for n in range(count))
    ]


def test_names_stand_where_the_subject_stood_and_not_in_the_text_before_it() -> None:
    text = "ComputeDomain {} deleted"
    events = [replace(event(text.format(name)), subject=name, subject_at=text.index("{"), of_whole=True) for name in ("main", "other")]

    (written,) = Correlator().combine(of_root(*events[::-1]), 0, flush=True)

    assert written.message == f"{COMBINED}ComputeDomain other, main deleted"


@pytest.mark.parametrize(("about", "summarized"), [(ROOT, "Root"), (leaf("parent"), "Leaf"), (None, "Root")])
def test_many_normal_events_of_a_pass_are_one_with_their_number_and_first_names(about: ResourceId | None, summarized: str) -> None:
    (written,) = Correlator().combine(of_root(*created(500, about)), 0, flush=True)

    assert (written.about.kind, written.count) == (summarized, 500)
    assert written.message == f"{COMBINED}leaf-0, leaf-1, leaf-2 and others created"


def test_each_of_many_warnings_of_a_pass_is_reported_until_they_are_ten() -> None:
    written = Correlator().combine(of_root(*messages(500, "Failed", warning=True)), 0)

    assert [one.combined for one in written] == [False] * MAX_SIMILAR + [True]


def test_what_happens_with_a_whole_is_one_event_of_each_reason_however_it_arrives() -> None:
    correlator = Correlator()
    whole = [replace(one, of_whole=True) for one in created(3)]
    (first,) = correlator.combine(of_root(whole[0]), 0, flush=True)
    assert [correlator.combine(of_root(one), 1) for one in whole[1:]] == [[], []]
    (rest,) = correlator.combine([], 1 + SPACING)

    assert (first.message, first.count, first.about) == ("leaf-0 created", 1, ROOT)
    assert (rest.message, rest.count, rest.about) == (f"{COMBINED}leaf-1, leaf-2 created", 2, ROOT)


def test_messages_are_written_one_by_one_again_after_ten_minutes_without_them() -> None:
    correlator = Correlator()
    correlator.combine(of_root(*messages(MAX_SIMILAR)), 0)
    correlator.combine(of_root(event("one more")), 0)

    within = correlator.combine(of_root(event("another")), WINDOW)
    after = correlator.combine(of_root(event("a third")), 2 * WINDOW + 1)

    assert ([one.combined for one in within], [one.combined for one in after]) == ([True], [False])


def test_what_happens_to_more_than_ten_objects_is_reported_on_their_root() -> None:
    correlator = Correlator()

    written = [one for number in range(50) for one in correlator.combine(of_root(*leaves(10, first=10 * number)), number)]
    written += correlator.combine([], 50, flush=True)

    assert Counter(one.about.kind for one in written if not one.combined) == {"Leaf": MAX_SIMILAR}
    assert {(one.message, one.uid) for one in written if one.combined} == {(f"{COMBINED}ready", "uid-root")}
    assert sum(one.count for one in written) == 500
    assert correlator.withheld == 0


def test_objects_without_a_root_keep_their_events() -> None:
    groups = [RootEvents(each.about, "", (each,)) for each in leaves(30)]

    assert {one.about.kind for one in Correlator().combine(groups, 0)} == {"Leaf"}


def test_no_more_than_a_burst_is_written_about_one_object_and_nothing_of_it_is_lost() -> None:
    correlator = Correlator()
    reasons = ["A", "B", "C", "D"]

    written = correlator.combine(of_root(*(one for reason in reasons for one in messages(10, reason))), 0, flush=True)

    assert len(written) < BURST
    assert sum(one.count for one in written) == 40
    assert {one.reason for one in written} == set(reasons)
    assert sum(one.reason == "A" and not one.combined for one in written) == 10
    assert correlator.withheld == 0


def test_a_spent_burst_is_refilled_by_one_every_five_minutes() -> None:
    correlator = Correlator()
    # Different reasons are never combined.
    spent = correlator.combine(of_root(*(event("x", f"Reason{number}", warning=True) for number in range(100))), 0)
    correlator.combine([], 1)

    assert len(spent) == BURST
    assert correlator.combine(of_root(event("x", "Another", warning=True)), REFILL - 1) == []
    assert correlator.withheld == 1
    assert len(correlator.combine([], REFILL + 1, flush=True)) == 1


def test_what_could_not_be_written_for_ten_minutes_is_dropped_instead_of_published_as_news() -> None:
    correlator = Correlator()
    correlator.combine(of_root(*(event("x", f"Reason{number}", warning=True) for number in range(100))), 0)

    assert correlator.combine([], WINDOW + 1, flush=True) == []
    assert correlator.combine(of_root(event("y", "Now", warning=True)), WINDOW + 1) != []


def test_warnings_are_written_first_and_normal_events_leave_room_for_them() -> None:
    correlator = Correlator()
    normal, warnings = [one for reason in "ABC" for one in messages(10, reason)], messages(5, "Failed", warning=True)

    together = correlator.combine(of_root(*normal, *warnings), 0)
    later = correlator.combine(of_root(event("leaf lost", "Lost", warning=True)), 1)

    assert [one.warning for one in together] == [True] * 5 + [False] * (len(together) - 5)
    assert counts(later) == {"leaf lost": 1}


def test_one_object_cannot_use_up_what_others_may_write() -> None:
    correlator = Correlator()
    correlator.combine(of_root(*(event("x", f"Reason{number}", warning=True) for number in range(100))), 0)
    other = root("other")

    assert counts(correlator.combine([RootEvents(other, "uid-other", (event("hello", about=other),))], 1)) == {"hello": 1}


def test_an_hour_of_churn_does_not_let_the_memory_grow() -> None:
    correlator = Correlator()

    for second in range(3600):
        about = root(f"root-{second}")
        group = RootEvents(about, f"uid-{second}", tuple(event(f"message {number}", about=about) for number in range(MAX_SIMILAR)))
        correlator.combine([group], float(second))

    sizes = {len(store) for store in (correlator._similar, correlator._streams, correlator._allowances)}
    assert max(sizes) == MAX_REMEMBERED
    assert len(correlator._pending) == 0


def of_namespace(namespace: str, count: int) -> list[RootEvents]:
    """An event about each of so many roots of a namespace."""
    abouts = [ROOT._replace(namespace=namespace, name=f"root-{number}") for number in range(count)]
    return [RootEvents(about, "uid", (Event(about, "uid", "Refused", "quota exceeded", True),)) for about in abouts]


def test_what_is_remembered_of_one_namespace_is_not_forgotten_because_of_another() -> None:
    correlator = Correlator()
    quiet = of_namespace("quiet", MAX_REMEMBERED // 3)
    correlator.combine(quiet, 0)
    for namespace in ("loud", "other", "loud"):
        correlator.combine(of_namespace(namespace, 2 * MAX_REMEMBERED), 1)

    assert correlator.combine(quiet, 2) == []
    assert {event.count for event in correlator.combine([], SPACING + 1)} == {1}
    assert {len(store) for store in (correlator._similar, correlator._streams, correlator._allowances)} == {MAX_REMEMBERED}


def test_of_many_namespaces_with_one_event_each_the_first_are_forgotten() -> None:
    correlator = Correlator()
    for number in range(MAX_REMEMBERED + 100):
        assert len(correlator.combine(of_namespace(f"pull-request-{number}", 1), number)) == 1

    assert {len(store) for store in (correlator._similar, correlator._streams, correlator._allowances)} == {MAX_REMEMBERED}


def test_events_that_are_counted_apart_are_not_combined_and_pods_do_not_use_up_what_they_may_write() -> None:
    correlator = Correlator()
    apart = [replace(one, counted_apart=True) for kind in ("Created", "Deleted") for one in messages(30, kind)]
    crowd = [event("x", f"Reason{number}", warning=True) for number in range(100)]

    written = correlator.combine(of_root(*crowd, *messages(500, "Created", first=100), *apart), 0)

    assert sum(one.counted_apart and not one.combined for one in written) == 60
    assert sum(not one.counted_apart for one in written) <= BURST


def test_even_events_that_are_counted_apart_do_not_flood_a_server() -> None:
    apart = [replace(one, counted_apart=True) for one in messages(5000)]

    written = Correlator().combine(of_root(*apart), 0)

    assert (len(written), sum(one.count for one in written)) == (APART.similar + 1, 5000)
