"""Rules for ClusterTopologyBindings."""

from typing import Any

import pytest

from resources.admission.request import Act
from resources.base.kinds import TOPOLOGY_BINDING
from resources.ports.configuration import Configuration
from resources.ports.scheduler import Scheduler
from tests.maps import Maps
from tests.resources.admission.requests import SCHEDULERS, binding, created, decided, issues_of, put, updated


class Racked(Scheduler):
    """A scheduler with topology objects."""

    name = "racked"
    topologies = Maps()


SETUP = Configuration({**SCHEDULERS, "racked": Racked()}, "default-scheduler")
REFERENCES = "spec.schedulerTopologyBindings"


def referring(*schedulers: str) -> dict[str, Any]:
    """A binding that names a topology object for each of these schedulers."""
    references = [{"schedulerName": name, "topologyReference": "mine"} for name in schedulers]
    return put(binding("zone", "rack"), {REFERENCES: references})


CASES = [
    pytest.param(
        put(binding("zone", "rack"), {"spec.levels.1.domain": "zone"}),
        ['spec.levels[1].domain: Duplicate value: "zone"'],
        id="no two levels have one domain",
    ),
    pytest.param(
        put(binding("zone", "rack"), {"spec.levels.1.key": "example.com/zone"}),
        ['spec.levels[1].key: Duplicate value: "example.com/zone"'],
        id="no two levels have one key",
    ),
    pytest.param(
        referring("racked", "racked"), [f'{REFERENCES}[1].schedulerName: Duplicate value: "racked"'], id="a scheduler is named once (Q19)"
    ),
    pytest.param(
        referring("other"),
        [f'{REFERENCES}[0].schedulerName: Invalid value: "other": scheduler backend is not enabled in Grove'],
        id="a scheduler is enabled",
    ),
    pytest.param(
        referring("racked", "default-scheduler"),
        [
            f'{REFERENCES}[1].schedulerName: Invalid value: "default-scheduler": '
            "scheduler backend does not implement topology-aware scheduling"
        ],
        id="a scheduler knows what a topology is",
    ),
    pytest.param(
        put(binding("zone"), {"spec.levels": []}), ["spec.levels: Invalid value: a list: must have at least 1 entries"], id="levels"
    ),
    pytest.param(
        put(binding("zone"), {"spec.levels.0.key": "-/x"}),
        [
            'spec.levels[0].key: Invalid value: "-/x": must match '
            "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
        ],
        id="a key is the key of a label",
    ),
    pytest.param(
        put(binding("zone"), {"metadata.namespace": "ml"}), ["metadata.namespace: Forbidden: not allowed on this type"], id="no namespace"
    ),
    pytest.param(referring("racked"), [], id="a sound one passes"),
]


@pytest.mark.parametrize(("body", "issues"), CASES)
def test_a_new_binding(body: dict[str, Any], issues: list[str]) -> None:
    decision = created(body, SETUP, kind=TOPOLOGY_BINDING)

    assert issues_of(decision) == issues
    assert decision.body is body


@pytest.mark.parametrize(("body", "issues"), CASES)
def test_the_same_rules_apply_to_a_changed_binding(body: dict[str, Any], issues: list[str]) -> None:
    assert issues_of(updated(binding("zone", "rack", "host"), body, SETUP, kind=TOPOLOGY_BINDING)) == issues


def test_any_binding_may_be_deleted() -> None:
    assert decided(Act.DELETE, None, binding("zone", "zone"), SETUP, kind=TOPOLOGY_BINDING).allowed


def test_an_unknown_field_is_a_warning() -> None:
    decision = created(put(binding("zone"), {"spec.levls": [], "spec.levels.0.kye": "x"}), SETUP, kind=TOPOLOGY_BINDING)

    assert decision.allowed
    assert set(decision.warnings) == {'unknown field "spec.levls"', 'unknown field "spec.levels[0].kye"'}
