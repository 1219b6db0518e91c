"""Whatever somebody puts into a manifest, `review`, `diff` and `render` answer; none of them falls over it."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import InputError
from engine.guard import Limits
from engine.memo import Memo
from engine.report.json import document
from engine.report.model import compose
from engine.report.text import text
from engine.runtime.clock import SystemClock
from engine.tick import plan_all
from engine.world import empty, propose
from enginectl import wiring
from enginectl.admitting import admitted_beside
from enginectl.manifest_files import Wanted, flattened, wanted
from enginectl.options import Options
from enginectl.rendering import rendered
from enginectl.wiring import ROOTS, Wiring
from providers.documents import read_documents
from resources.admission.admit import admit
from resources.admission.review import answered
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from resources.settings import Settings
from tests.laws.toy import START
from tests.resources.admission.spoiling import SEEDS, SETUPS, mutated

WIRED = [Wiring(Options(), Settings(), setup, SystemClock()) for setup in SETUPS]


def asked(body: Any) -> Wanted:
    """The file with that body, read as `-f` reads it."""
    read = read_documents(json.dumps(body).encode(), "file.json")
    found = [manifest for one in read for manifest in flattened(one, one.value, ())]
    return wanted(found, ROOTS, wiring.check, namespace="default")


def previewed(wired: Wiring, body: Any) -> list[str]:
    """What `diff -f --against empty` says of it, as text and as a document; the problems that nobody has foreseen."""
    admitted = admitted_beside(wired, asked(body))
    world = propose(empty(), admitted.wanted.roots)
    found = plan_all(BLUEPRINTS, world, START, wired.setup, Memo(), Limits())
    report = compose(found.plans, wiring.part_of, objections=found.objections)
    json.dumps(document(report))
    assert all(line.text.isprintable() for line in text(report, verbose=True))
    _, problems = rendered(wired, admitted.wanted)
    return [problem for plan in found.plans for problem in (*plan.problems, *problems) if "cannot be understood" in problem]


def reviewed(setup: Configuration, body: Any, old: Any) -> None:
    """What `review` answers."""
    kind = {"group": "grove.io", "version": "v1alpha1", "kind": "PodCliqueSet"}
    request = {"uid": "1", "kind": kind, "operation": "UPDATE", "name": "x", "namespace": "default", "object": body, "oldObject": old}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    for asked in (review, {**review, "request": {**request, "operation": "CREATE", "oldObject": None}}):
        answer = answered(asked, lambda one: admit(one, setup))
        assert isinstance(json.loads(json.dumps(answer))["response"]["allowed"], bool)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(mutated(), st.sampled_from(WIRED), st.sampled_from(SEEDS))
def test_whatever_a_manifest_holds_review_diff_and_render_answer(body: Any, wired: Wiring, other: Any) -> None:
    reviewed(wired.setup, body, other)
    reviewed(wired.setup, other, body)
    try:
        unforeseen = previewed(replace(wired), body)
    except (InputError, ValueError) as told:
        assert isinstance(told, InputError) or "surrogates" in str(told) or "Integer" in str(told), told
    else:
        assert unforeseen == []
