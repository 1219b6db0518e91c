"""Whatever a manifest contains, `review`, `diff` and `render` return a result; none of them raises."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.errors import InputError
from engine.guard import Limits
from engine.memo import Memo
from engine.proposal import propose
from engine.report.json import document
from engine.report.model import compose
from engine.report.text import text
from engine.runtime.clock import SystemClock
from engine.tick import plan_all
from engine.world import empty
from enginectl.actions.render import render
from enginectl.base.options import Options
from enginectl.input.admission import admit_roots
from enginectl.input.manifest_files import flatten
from enginectl.input.pod_findings import malformed
from enginectl.input.roots import Roots, select_roots
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import ROOTS
from providers.documents import read_documents
from resources.admission.admit import admit
from resources.admission.review import answered
from resources.ports.configuration import Configuration
from resources.preview.shown import part_of
from resources.registry import BLUEPRINTS
from resources.settings import Settings
from tests.laws.toy import START
from tests.resources.admission.mutations import SEEDS, SETUPS, mutated

WIRINGS = [Wiring(Options(), Settings(), configuration, SystemClock()) for configuration in SETUPS]


def roots_in(body: Any) -> Roots:
    """The file with that body, read as `-f` reads it."""
    documents = read_documents(json.dumps(body).encode(), "file.json")
    manifests = [manifest for document in documents for manifest in flatten(document, document.value, ())]
    return select_roots(manifests, ROOTS, malformed, namespace="default")


def preview_errors(wiring: Wiring, body: Any) -> list[str]:
    """The internal errors of `diff -f --against empty` and `render`. Both reports must be printable."""
    admitted = admit_roots(wiring, roots_in(body))
    world = propose(empty(), admitted.roots.bodies)
    plans = plan_all(BLUEPRINTS, world, START, wiring.configuration, Memo(), Limits())
    report = compose(plans.plans, part_of, objections=plans.objections)
    json.dumps(document(report))
    assert all(line.text.isprintable() for line in text(report, verbose=True))
    render(wiring, admitted.roots)
    return [repr(plan.error) for plan in plans.plans if plan.error is not None]


def review(configuration: Configuration, body: Any, old: Any) -> None:
    """Review the body as an update and as a creation: both get an answer."""
    kind = {"group": "grove.io", "version": "v1alpha1", "kind": "PodCliqueSet"}
    request = {"uid": "1", "kind": kind, "operation": "UPDATE", "name": "x", "namespace": "default", "object": body, "oldObject": old}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    for sent in (review, {**review, "request": {**request, "operation": "CREATE", "oldObject": None}}):
        answer = answered(sent, lambda request: admit(request, configuration))
        assert isinstance(json.loads(json.dumps(answer))["response"]["allowed"], bool)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutated(), st.sampled_from(WIRINGS), st.sampled_from(SEEDS))
def test_whatever_a_manifest_contains_review_diff_and_render_return_a_result(body: Any, wiring: Wiring, other: Any) -> None:
    review(wiring.configuration, body, other)
    review(wiring.configuration, other, body)
    try:
        errors = preview_errors(replace(wiring), body)
    except (InputError, ValueError) as error:
        assert isinstance(error, InputError) or "surrogates" in str(error) or "Integer" in str(error), error
    else:
        assert errors == []
