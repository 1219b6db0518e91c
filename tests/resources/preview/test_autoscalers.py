"""Notes about autoscalers: what Kubernetes scales by their limits once a plan is carried out."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Slice, World, live
from resources.base import kinds
from resources.preview.autoscalers import scaling_notes
from resources.preview.forecasting import forecast_of
from resources.preview.shown import shown
from tests.builders import clique, group, podcliqueset
from tests.resources.preview.test_forecasting import first_pass, world_after


def limits(lowest: int, highest: int) -> dict[str, Any]:
    """The autoscaling of a clique."""
    return {"minReplicas": lowest, "maxReplicas": highest}


def scaled(replicas: int, lowest: int, highest: int, sets: int = 1) -> dict[str, Any]:
    """A set of one clique with an autoscaler."""
    return podcliqueset("demo", clique("a", replicas, minAvailable=1, autoScalingConfig=limits(lowest, highest)), replicas=sets)


def notes(world: World, manifest: dict[str, Any]) -> list[str]:
    """What the preview of this manifest says of autoscalers."""
    first = first_pass(world, manifest)
    plans = shown(first, forecast_of(first)).planned.plans
    return [note for plan in plans for note in plan.notes if kinds.AUTOSCALER.name in note]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((3, 1, 3), (3, 1, 2), "from 3 to 2, its maxReplicas"),
        ((2, 1, 4), (2, 3, 4), "from 2 to 3, its minReplicas"),
        ((2, 1, 4), (2, 2, 3), None),
        ((2, 1, 4), (2, 1, 2), None),
    ],
)
def test_an_edit_of_limits_that_makes_kubernetes_scale_says_so(
    before: tuple[int, int, int], after: tuple[int, int, int], expected: str | None
) -> None:
    existing = world_after(first_pass(World(()), scaled(*before)))

    said = notes(existing, scaled(*after))

    if expected is None:
        assert not said
    else:
        assert said == [f"HorizontalPodAutoscaler scales PodClique demo-0-a {expected}; what follows from that is not shown"]


@pytest.mark.parametrize(("replicas", "said"), [(0, []), (1, ["from 1 to 2, its minReplicas"])])
def test_a_clique_that_is_scaled_to_zero_is_left_alone(replicas: int, said: list[str]) -> None:
    [observed] = world_after(first_pass(World(()), scaled(2, 2, 3))).roots
    [clique_id] = [live.id for live in observed.lives() if live.id.kind == kinds.PODCLIQUE.name]
    scaled_by_hand = {key: with_replicas(slice, clique_id, replicas) for key, slice in observed.slices.items()}

    found = scaling_notes(replace(observed, slices=scaled_by_hand))

    assert [note.partition("demo-0-a ")[2].partition(";")[0] for note in found] == said


def with_replicas(slice: Slice, id: ResourceId, replicas: int) -> Slice:
    """The objects, of which the one with this id has another number of replicas."""
    if (existing := slice.objects.get(id)) is None:
        return slice
    changed = live({**existing.body, "spec": {**existing.body["spec"], "replicas": replicas}})
    others = tuple(each for each in slice.of(id.kind) if each.id != id)
    return Slice({**slice.objects, id: changed}, {**slice.by_kind, id.kind: (*others, changed)})


def test_the_same_change_of_many_replicas_is_one_note_with_three_names() -> None:
    existing = world_after(first_pass(World(()), scaled(3, 1, 3, sets=5)))

    assert notes(existing, scaled(3, 1, 2, sets=5)) == [
        "HorizontalPodAutoscaler scales PodClique demo-0-a, demo-1-a, demo-2-a and 2 more from 3 to 2, its maxReplicas; "
        "what follows from that is not shown"
    ]


def test_groups_are_scaled_as_cliques_are() -> None:
    def of(highest: int) -> dict[str, Any]:
        return podcliqueset("demo", clique("a"), groups=(group("g", "a", replicas=3, scaleConfig=limits(1, highest)),))

    existing = world_after(first_pass(World(()), of(3)))

    assert [note.partition(";")[0] for note in notes(existing, of(2))] == [
        "HorizontalPodAutoscaler scales PodCliqueScalingGroup demo-0-g from 3 to 2, its maxReplicas"
    ]
