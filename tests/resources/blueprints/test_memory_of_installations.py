"""The memory that an installation gives the engine: what is admitted by default has room in it."""

import pytest

from engine.memory_budget import bytes_for_objects, with_allowances
from engine.quantity import amount
from resources.admission.size_rules import set_issues
from resources.install.workloads import RESOURCES
from resources.ports.configuration import SET_LIMITS, WorkloadLimits
from tests.builders import clique, group, podcliqueset
from tests.resources.blueprints.test_memory_budget import Limited

LARGEST = SET_LIMITS.pods // SET_LIMITS.replicas
"""The pods of each replica of the largest set that is admitted by default."""
SCALED = {"minReplicas": 1, "maxReplicas": 1}
ALL_ADMITTED = {
    "the largest set": [podcliqueset("web", clique("worker", LARGEST), replicas=SET_LIMITS.replicas)],
    "with groups that are scaled": [
        podcliqueset("web", clique("worker", LARGEST), groups=(group("pool", "worker", scaleConfig=SCALED),), replicas=SET_LIMITS.replicas)
    ],
    "the largest cluster that Kubernetes supports": [
        podcliqueset("web", clique("worker", 10), replicas=7_500, namespace=namespace) for namespace in ("one", "two")
    ],
}


@pytest.mark.parametrize("case", ALL_ADMITTED)
def test_what_is_admitted_by_default_has_room_in_the_memory_of_an_installation(case: str) -> None:
    most = bytes_for_objects(int(amount(RESOURCES["limits"]["memory"]) or 0))
    cluster = Limited(most)
    for body in ALL_ADMITTED[case]:
        assert not list(set_issues(body, None, body["metadata"]["namespace"], WorkloadLimits(), None))
        cluster.put(body)
    world = cluster.world()

    assert with_allowances(world, cluster.blueprints, cluster.configuration, most, cluster.memo) is world
