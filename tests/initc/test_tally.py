"""Tally: ready pods by the exact name of their clique, at one instant."""

from typing import Any

from initc.wait import Tally, is_ready


def pod(name: str, clique: str | None, *, ready: str = "True", deleting: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if clique is not None:
        metadata["labels"] = {"grove.io/podclique": clique}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": metadata,
        "status": {"conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}]},
    }


def test_what_is_missing_is_counted_clique_by_clique() -> None:
    tally = Tally({"x-0-l": 2, "x-0-r": 1})
    tally.apply("LIST", {"items": [pod("a", "x-0-l"), pod("b", "x-0-l", ready="False")]})

    assert tally.missing == {"x-0-l": 1, "x-0-r": 1}


def test_a_pod_counts_by_its_label_and_not_by_how_its_name_begins() -> None:
    tally = Tally({"x-0-a": 1})
    tally.apply("LIST", {"items": [pod("x-0-a-ab12c", "x-0-ab"), pod("x-0-a-xyz", None)]})

    assert tally.missing == {"x-0-a": 1}


def test_more_pods_than_required_are_enough() -> None:
    tally = Tally({"l": 1})
    tally.apply("LIST", {"items": [pod("a", "l"), pod("b", "l")]})

    assert tally.missing == {}


def test_a_pod_counts_as_long_as_it_is_ready() -> None:
    tally = Tally({"l": 1})
    for event, ready, missing in (("ADDED", "False", 1), ("MODIFIED", "True", 0), ("MODIFIED", "Unknown", 1), ("MODIFIED", "True", 0)):
        tally.apply(event, pod("a", "l", ready=ready))
        assert sum(tally.missing.values()) == missing

    tally.apply("DELETED", pod("a", "l"))
    assert tally.missing == {"l": 1}


def test_a_pod_that_is_being_deleted_does_not_count() -> None:
    assert not is_ready(pod("a", "l", deleting=True))
    assert not is_ready({"metadata": {"name": "a"}})
    assert is_ready(pod("a", "l"))


def test_a_list_replaces_what_was_known() -> None:
    tally = Tally({"l": 1})
    tally.apply("LIST", {"items": [pod("a", "l")]})
    tally.apply("LIST", {"items": None})

    assert tally.missing == {"l": 1}


def test_a_bookmark_does_not_count() -> None:
    tally = Tally({"": 1})
    tally.apply("BOOKMARK", {"metadata": {"resourceVersion": "7"}})

    assert tally.missing == {"": 1}
