"""Component pods: which pods of Deployments leave their nodes in a forecast."""

from typing import Any

import pytest

from engine.observed import Live, live
from resources.cluster_model.component_pods import vacated
from resources.preview.forecasting import RoomNeeds

NAME = "llm-decode"
LABELS = {"selector": NAME}


def deployment(replicas: int, image: str = "x:1") -> Live:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    return live({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME, "namespace": "ml", "uid": "u"}, "spec": spec})


def leaving(after: Live | None, *pods: tuple[dict[str, Any], bool]) -> list[bool]:
    """Whether each pod leaves its node, of those that are there and have these labels; then whether it is being deleted."""
    lives = {after.id: after} if after is not None else {}
    leaves = RoomNeeds((), frozenset(), vacated([deployment(3)], lives)).leaves
    return [leaves is not None and leaves("ml", labels, is_ending) for labels, is_ending in pods]


STAYS = (LABELS, False)


@pytest.mark.parametrize(
    "after, expected",
    [
        (deployment(3), [False, False, False]),
        (deployment(1), [True, True, False]),
        (deployment(0), [True, True, True]),
        (deployment(2, "x:2"), [True, True, True]),
        (None, [True, True, True]),
    ],
    ids=["unchanged", "smaller", "empty", "replaced", "gone"],
)
def test_of_a_component_that_becomes_smaller_only_so_many_pods_leave(after: Live | None, expected: list[bool]) -> None:
    assert leaving(after, STAYS, STAYS, STAYS) == expected


def test_pods_of_others_stay_and_those_that_are_being_deleted_are_not_counted() -> None:
    assert leaving(deployment(2), ({"selector": "other"}, False), (LABELS, True), STAYS, STAYS) == [False, True, True, False]
