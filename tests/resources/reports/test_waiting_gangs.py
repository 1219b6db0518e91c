"""Waiting gangs: the sentence on what a gang lacks, for one pod and for several."""

from typing import Any

import pytest

from engine.observed import live
from resources.base import kinds
from resources.placement.gang_room import GangRoom
from resources.reports.set_pods import SetPods
from resources.reports.waiting_gangs import WaitingGang, diagnosis, waiting_gangs, waiting_text
from tests.builders import clique, podcliqueset
from tests.mnnvl.asking import root, up
from tests.resources.reports.test_obstacles import place, unscheduled


@pytest.mark.parametrize(
    ("minimum", "placed", "fit", "counts"),
    [
        (3, 0, 1, "0 of its minimum of 3 pods are on nodes, 1 of the other 3 has room"),
        (3, 1, 0, "1 of its minimum of 3 pods is on a node, 0 of the other 2 have room"),
        (3, 2, 0, "2 of its minimum of 3 pods are on nodes, the other one has no room"),
        (2, 1, 1, "1 of its minimum of 2 pods is on a node, the other one has room"),
        (1, 0, 0, "0 of its minimum of 1 pod is on a node, it has no room"),
    ],
)
def test_one_pod_and_several_have_their_words(minimum: int, placed: int, fit: int, counts: str) -> None:
    lacking = minimum - placed
    bodies = ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p-{number}", "namespace": "ml"}} for number in range(lacking))
    pods = tuple(map(live, bodies))
    gang = WaitingGang(kinds.PODGANG.id("ml", "web-0"), minimum, ("n",) * placed, pods, (), "no")
    room = GangRoom(lacking, fit, "" if fit == lacking else "something is short; free or add nodes", "")

    assert waiting_text(diagnosis(gang, room, "")).startswith(f"{counts}; ")


def test_where_the_podgang_is_what_the_scheduler_goes_by_its_constraints_are_the_areas_of_the_gang() -> None:
    def required(level: str, **more: Any) -> dict[str, Any]:
        return {"topologyConstraint": {"packConstraint": {"required": level}}, **more}

    toy = up(podcliqueset("demo", clique("a"), clique("b")))
    parts = [required("row", podGroupNames=["demo-0-a", "demo-0-b"]), required("host", podGroupNames=["demo-0-b"])]
    toy.write(kinds.PODGANG.id("default", "demo-0"), {"spec": required("rack", topologyConstraintGroupConfigs=parts)})
    for pod in toy.pods():
        place(toy, pod, unscheduled())
    (observed,) = (observed for observed in toy.world().roots if observed.root.id == root())

    (gang,) = waiting_gangs(SetPods.of(observed, (), ("default-scheduler",)))
    assert [(area.level, len(area.pods)) for area in gang.areas] == [("rack", 2), ("row", 2), ("host", 1)]
    (gang,) = waiting_gangs(SetPods.of(observed))
    assert gang.areas == (), "Kube-scheduler goes by PodGroups, and there is none."
