"""Observations say what has changed since the one before, where that is known."""

from typing import Any

from engine.observed import live
from engine.runtime.provider import Observation, Scope
from providers.listing import ListedLives
from providers.live_store import LiveStore
from providers.observed_changes import MOST, ObservedChanges
from providers.snapshot import Target, observation
from resources.base.kinds import PODCLIQUESET, SECRET, SERVICE

SCOPE = Scope(roots=(PODCLIQUESET,), children=(SERVICE, SECRET), selector="app=ours", references=(SECRET,))


def body(name: str, revision: int, kind: str = "Service", **labels: str) -> dict[str, Any]:
    """An object of the core group."""
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(revision), "labels": labels},
    }


class Watched:
    """Two stores that are observed."""

    def __init__(self) -> None:
        self.services, self.secrets = (LiveStore(Target(kind, "", ""), lambda _: None) for kind in (SERVICE, SECRET))
        self.history = ObservedChanges()
        self.services.apply("ADDED", body("one", 1))

    def observe(self) -> Observation:
        """As the provider does."""
        stores = [self.services, self.secrets]
        if (later := self.history.later(SCOPE, stores, {}, frozenset())) is not None:
            return later
        whole = observation(SCOPE, ((store.target.kind, store.lives.values()) for store in stores))
        self.history.begin(whole, stores)
        return whole


def names(seen: Observation) -> list[str]:
    """The names of the children."""
    return sorted(live.id.name for live in seen.children)


def test_an_observation_says_what_has_changed_since_the_one_before() -> None:
    watched = Watched()
    first = watched.observe()
    watched.services.apply("ADDED", body("two", 2))
    second = watched.observe()
    watched.services.apply("DELETED", body("one", 3))
    third = watched.observe()

    assert (first.after, second.after, third.after) == (None, first.token, second.token)
    assert [(change.id.name, change.old) for change in second.changes.lives] == [("two", None)]
    assert [(change.id.name, change.new) for change in third.changes.lives] == [("one", None)]
    assert (names(first), names(second), names(third)) == (["one"], ["one", "two"], ["two"])
    assert (len(first.children), len(second.children), len(third.children)) == (1, 2, 1)


def test_an_object_that_is_both_a_child_and_a_reference_changes_as_what_it_is() -> None:
    watched = Watched()
    watched.observe()
    watched.secrets.apply("ADDED", body("key", 2, "Secret", app="ours"))
    watched.secrets.apply("ADDED", body("other", 3, "Secret"))
    second = watched.observe()
    watched.secrets.apply("MODIFIED", body("key", 4, "Secret"))
    watched.secrets.apply("MODIFIED", body("other", 5, "Secret"))
    third = watched.observe()

    assert [change.id.name for change in second.changes.lives] == ["key"]
    assert [change.id.name for change in second.changes.references] == ["key", "other"]
    assert [(change.id.name, change.new) for change in third.changes.lives] == [("key", None)]
    assert [change.id.name for change in third.changes.references] == ["key", "other"]
    assert (names(second), names(third)) == (["key", "one"], ["one"])
    assert [live.revision for live in third.references] == ["4", "5"]


def test_after_another_list_it_is_not_known_what_has_changed() -> None:
    watched = Watched()
    watched.observe()
    watched.services.begin_list()
    watched.services.end_list(ListedLives([live(body("three", 3))], "4", SERVICE))
    second = watched.observe()

    assert second.after is None
    assert names(second) == ["three"]


def test_after_many_changes_the_list_is_complete() -> None:
    watched = Watched()
    watched.observe()
    for number in range(MOST * 2):
        watched.services.apply("ADDED", body(f"s{number:04}", number + 2))
        last = watched.observe()

    assert names(last) == ["one", *(f"s{number:04}" for number in range(MOST * 2))]
    assert len(last.children) == MOST * 2 + 1
