"""Waiting gangs: the sentence on what a gang lacks, for one pod and for several."""

import pytest

from engine.observed import live
from resources.base import kinds
from resources.placement.gang_room import GangRoom
from resources.reports.waiting_gangs import WaitingGang, diagnosis, waiting_text


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
    gang = WaitingGang(kinds.PODGANG.id("ml", "web-0"), minimum, ("n",) * placed, pods, "", "no")
    room = GangRoom(lacking, fit, "" if fit == lacking else "something is short; free or add nodes", "")

    assert waiting_text(diagnosis(gang, room, "")).startswith(f"{counts}; ")
