"""LPX: pods name the scheduler, and topology constraints are rejected."""

from providers.schedulers.lpx import LpxScheduler
from resources.ports.configuration import Configuration
from tests.resources.admission.requests import clique, created, issues_of, put, small

LPX = LpxScheduler()
SETUP = Configuration({LPX.name: LPX}, LPX.name, topology=True)
MESSAGE = (
    "lpx-scheduler does not support Grove topology constraints; placement topology must be expressed through the LPX workload contract"
)


def test_a_pod_names_the_scheduler_and_nothing_else() -> None:
    assert LPX.decorate_pod({"containers": []}) == {"containers": [], "schedulerName": "lpx-scheduler"}
    assert LPX.gangs is None


def test_topology_constraints_are_rejected_at_every_level() -> None:
    constraint = {"topologyName": "racks", "pack": {"required": "zone"}}
    group = {"name": "g", "cliqueNames": ["b"], "topologyConstraint": constraint}
    body = small(cliques=[clique("a", topologyConstraint=constraint), clique("b")], podCliqueScalingGroups=[group])
    body = put(body, {"spec.template.topologyConstraint": constraint})

    assert issues_of(created(body, SETUP)) == [
        f"spec.template.{holder}topologyConstraint: Invalid value: {MESSAGE}"
        for holder in ("", "cliques[0].", "podCliqueScalingGroups[0].")
    ]
    assert issues_of(created(small(), SETUP)) == []
