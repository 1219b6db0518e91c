"""LiveStore: a version replaces an older one only, whatever reports it first."""

from typing import Any

import pytest

from engine.ids import Kind
from engine.observed import Live, Source, live
from engine.operation import Cause, Expect, Release
from providers import live_store
from providers.listing import ListedLives, typed
from providers.live_store import UNPACKED, LiveStore
from providers.snapshot import Target
from resources.base.kinds import SERVICE


def service(revision: int) -> dict[str, Any]:
    """A Service with our labels."""
    metadata = {"name": "s", "namespace": "default", "uid": "1", "resourceVersion": str(revision), "labels": {"a": "b"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata}


def test_a_late_event_that_it_lost_our_labels_does_not_remove_an_object_that_has_them_again() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    store.apply("ADDED", service(5))
    store.correct(None, live(service(12)))
    store.apply("DELETED", service(10))

    assert [service.revision for service in store.lives.values()] == ["12"]


def test_an_object_that_is_deleted_after_its_last_change_is_removed() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    store.apply("ADDED", service(5))
    store.apply("DELETED", service(6))
    store.correct(None, live(service(5)))

    assert store.lives == {}


def test_of_several_deletions_of_an_object_the_last_one_counts() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    store.apply("DELETED", service(5))
    store.apply("DELETED", service(9))
    store.correct(None, live(service(7)))

    assert store.lives == {}


def test_an_answer_that_is_older_than_the_list_does_not_bring_back_what_the_list_did_not_have() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    store.apply("ADDED", service(5))
    store.begin_list()
    store.correct(None, live(service(6)))  # It is being deleted, and gone before the list was made.
    store.end_list(ListedLives((), "9", SERVICE))

    assert store.lives == {}
    store.correct(None, live(service(7)))
    assert store.lives == {}


def test_an_answer_that_is_newer_than_the_list_is_kept() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    store.begin_list()
    store.correct(None, live(service(12)))
    store.end_list(ListedLives((), "9", SERVICE))

    assert [service.revision for service in store.lives.values()] == ["12"]


def test_what_has_changed_is_known_until_there_is_another_list() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    begin = store.version
    store.apply("ADDED", service(5))
    store.apply("MODIFIED", service(6))
    middle = store.version
    store.apply("DELETED", service(7))

    revisions = [(old and old.revision, new and new.revision) for old, new in store.changes_since(begin) or ()]
    assert revisions == [(None, "5"), ("5", "6"), ("6", None)]
    assert len(store.changes_since(middle) or ()) == 1
    store.begin_list()
    store.end_list(ListedLives((), "9", SERVICE))
    assert store.changes_since(middle) is None
    assert store.changes_since(store.version) == []


def test_a_kind_that_is_found_unserved_again_has_not_changed() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    store.apply("ADDED", service(5))
    begin = store.version
    store.clear()
    assert store.changes_since(begin) is None

    unserved = store.version
    store.clear()

    assert store.changes_since(unserved) == []


def named(name: str, revision: int) -> dict[str, Any]:
    """A Service of that name."""
    return {**service(revision), "metadata": {**service(revision)["metadata"], "name": name, "uid": name}}


def packed(store: LiveStore) -> list[str]:
    """The names of the stored objects that are not parsed."""
    return [live.id.name for live in store.lives.values() if isinstance(live.source, Source)]


def test_what_has_changed_stays_parsed_until_it_is_compacted_and_stays_the_same_object() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    store.apply("ADDED", named("one", 1))
    store.apply("MODIFIED", named("one", 2))
    (before,) = store.lives.values()
    body = before.body
    assert packed(store) == []
    store.compact()

    assert packed(store) == ["one"]
    assert list(store.lives.values()) == [before]
    assert before.body == body == named("one", 2)


def test_of_many_objects_those_that_changed_last_stay_parsed() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    for number in range(UNPACKED + 2):
        store.apply("ADDED", named(f"s{number}", number + 1))
    store.apply("MODIFIED", named("s2", 1000))
    store.apply("ADDED", named("last", 1001))
    store.apply("DELETED", named("s5", 1002))
    store.apply("ADDED", named("more", 1003))

    assert packed(store) == ["s0", "s1", "s3"]


def test_a_list_leaves_nothing_parsed_that_a_world_may_keep() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    store.apply("ADDED", named("one", 1))
    (before,) = store.lives.values()
    store.begin_list()
    store.end_list(ListedLives((), "9", SERVICE))

    assert isinstance(before.source, Source)


def test_the_watch_event_of_a_version_that_an_answer_has_brought_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []

    def noted(kind: Kind, body: dict[str, Any]) -> Live:
        decoded.append(body["metadata"]["resourceVersion"])
        return typed(kind, body)

    monkeypatch.setattr(live_store, "typed", noted)
    store = LiveStore(Target(SERVICE, "", "a=b"), lambda _: None)
    store.correct(None, live(service(1)))
    for event, body in (("ADDED", service(1)), ("MODIFIED", service(2)), ("MODIFIED", service(2)), ("DELETED", service(2))):
        store.apply(event, body)

    assert decoded == ["2", "2"]
    assert store.lives == {}


def test_an_object_that_our_own_write_released_is_no_longer_known() -> None:
    store = LiveStore(Target(SERVICE, "", "a=b", ("engine/kept",)), lambda _: None)
    ours, released = ({**service(revision), "metadata": service(revision)["metadata"] | {"labels": {}}} for revision in (5, 6))
    ours["metadata"]["finalizers"] = ["engine/kept"]
    store.apply("ADDED", ours)
    store.correct(None, live(ours))
    known = dict(store.lives)
    store.assume(Release(live(ours).id, "", Cause.INTENT, expect=Expect("1", "5"), finalizers=("engine/kept",), existing=()), released)
    store.apply("MODIFIED", released)

    assert [each.name for each in known] == ["s"]
    assert store.lives == {}
