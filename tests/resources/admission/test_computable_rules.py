"""Computable rules: the objects of a stored set are computed, or it has problems."""

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.memo import Memo
from engine.observed import live
from engine.world import assemble
from resources.admission.set_version import read_version
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from tests.laws.toy import START
from tests.resources.admission.mutations import BLUEPRINT, SETUPS, mutated, nested
from tests.resources.admission.requests import SETUP, clique, put, small

T = "spec.template"


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutated(), st.sampled_from(SETUPS))
def test_a_stored_set_is_computed_or_has_problems(body: Any, setup: Configuration) -> None:
    metadata = {"name": "web", "namespace": "ml", "uid": "u-1", "finalizers": ["grove.io/podcliqueset.grove.io"]}
    try:
        stored = orjson.dumps({"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "spec": body["spec"], "metadata": metadata})
    except (TypeError, KeyError):
        return  # Nothing of the kind can be stored.
    (observed,) = assemble(BLUEPRINTS, [live(orjson.loads(stored))], [], {}).roots

    desired = BLUEPRINT.desire(observed, START, setup, Memo())

    assert desired.problems or desired.graph.resources


@pytest.mark.parametrize("spec", [None, [], "x", 1, {}, {"template": None}, {"template": {"cliques": []}}, {"x": nested(5_000)}])
def test_a_malformed_spec_is_a_problem(spec: Any) -> None:
    assert read_version(spec).problems(SETUP)


def test_a_set_that_would_not_be_admitted_today_is_still_computed() -> None:
    late = put(
        small(cliques=[clique("A_b"), clique("b", spec={"roleName": "A_b", "autoScalingConfig": {"minReplicas": 0, "maxReplicas": 1}})]),
        {"spec.replicas": 1, f"{T}.terminationDelay": "-1s"},
    )

    assert read_version(late["spec"]).problems(SETUP) == ()
