"""How many objects a set counts for when passes decide which sets wait for their turn: as many as are computed for it."""

import pytest

from engine.ids import ResourceId
from engine.intent import NOTHING
from engine.runtime.memory import Memory, sizes_of_planned
from engine.runtime.portions import LARGE, MOST, Portions
from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import Toy

WEB = kinds.PODCLIQUESET.id("default", "web")


def size_of_web(cluster: Toy) -> int:
    sizes = sizes_of_planned(
        Memory(portions=Portions(LARGE, MOST)), cluster.blueprints, cluster.configuration, cluster.world(), NOTHING, cluster.now
    )
    assert sizes is not None
    return sizes[WEB]


@pytest.mark.parametrize("replicas", [5_000, 60_000, 2**31 - 1])
@pytest.mark.parametrize("scaled", [kinds.PODCLIQUE.id("default", "web-0-worker"), kinds.SCALING_GROUP.id("default", "web-0-g")])
def test_a_set_with_a_clique_or_group_that_was_scaled_far_is_large(scaled: ResourceId, replicas: int) -> None:
    cluster = Toy()
    cluster.put(podcliqueset("web", clique("worker"), clique("member"), groups=(group("g", "member"),)))
    cluster.settle()
    assert size_of_web(cluster) < 20

    cluster.write(scaled, {"spec": {"replicas": replicas}, "metadata": {"generation": 3}})

    assert size_of_web(cluster) > LARGE


def test_a_set_that_no_gang_has_room_for_is_large() -> None:
    cluster = Toy()
    cluster.put(podcliqueset("web", clique("worker", 60_000)))

    assert size_of_web(cluster) > LARGE
