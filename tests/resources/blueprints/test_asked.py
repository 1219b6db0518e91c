"""Asked: how many objects a set asks for, with what its fabrics and its scheduler add."""

import pytest
from msgspec.structs import replace

from engine.observed import Observed, live
from engine.resource import Body
from providers.fabrics.nvidia.names import AUTO
from resources.blueprints.asked import asked
from tests.builders import clique, podcliqueset
from tests.laws.native import Native
from tests.laws.toy import Toy
from tests.mnnvl.sets import gpu, said


def seen(body: Body) -> Observed:
    """A set as it is stored, without any object."""
    return Observed(live(body), {})


@pytest.mark.parametrize("kind", ["domains", "gangs"])
def test_domains_and_objects_of_schedulers_for_gangs_count_before_they_exist(kind: str) -> None:
    fabric_set = said(podcliqueset("web", gpu("worker", 10), replicas=4), {AUTO: "enabled"})
    body = fabric_set if kind == "domains" else podcliqueset("web", clique("worker", 10), replicas=4)
    configuration = Toy.configuration if kind == "domains" else Native.configuration

    counted = asked(seen(body), configuration).objects

    without = replace(Toy.configuration, fabrics=())
    assert counted == asked(seen(body), without).objects + 4
