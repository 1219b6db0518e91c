"""SetVersion: what is remembered of a set changes no decision, and is used only for what is the same."""

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.memo import Memo
from engine.paths import get
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.admission.set_version import read_version
from resources.base.fields import CLIQUES
from resources.base.kinds import PODCLIQUESET
from tests.resources.admission.mutations import mutated
from tests.resources.admission.requests import GONE, SETUP, put, small, whole

ID = PODCLIQUESET.id("ml", "web")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutated(), mutated(), st.booleans())
def test_a_decision_is_the_same_whatever_was_read_before(earlier: Any, body: Any, is_update: bool) -> None:
    memo = Memo()
    admit(Request(Act.CREATE, ID, earlier), SETUP, memo=memo)
    request = Request(Act.UPDATE, ID, body, whole()) if is_update else Request(Act.CREATE, ID, body)

    decisions = [admit(request, SETUP, memo=memo), admit(request, SETUP, memo=memo)]

    assert decisions == [admit(request, SETUP)] * 2


def test_an_update_that_leaves_out_what_is_kept_is_decided_as_if_nothing_had_been_read() -> None:
    """Every combination of a clique's fields that an update keeps, given or left out, against stored ones that are others."""
    cliques = range(len(whole()["spec"]["template"]["cliques"]))
    for number in cliques:
        for gone in ((), ("minAvailable",), ("roleName",), ("minAvailable", "roleName")):
            for replicas in (1, 2, 5):
                spec = ".".join(map(str, (*CLIQUES, number, "spec")))
                changes = {f"{spec}.{field}": GONE for field in gone if field in get(whole(), CLIQUES)[number]["spec"]}
                body = put(whole(), {f"{spec}.replicas": replicas, **changes})
                memo = Memo()
                admit(Request(Act.CREATE, ID, body), SETUP, memo=memo)
                request = Request(Act.UPDATE, ID, body, whole())
                assert admit(request, SETUP, memo=memo) == admit(request, SETUP)


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1]])
def test_a_value_that_python_takes_for_another_one_makes_another_version(value: Any) -> None:
    known = read_version(small()["spec"])

    assert read_version(copy.deepcopy(small()["spec"]), known) is known
    assert read_version(put(small(), {"spec.replicas": value})["spec"], known) is not known
