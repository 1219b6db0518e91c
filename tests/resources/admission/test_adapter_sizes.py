"""Limits of scaling adapters: more replicas of a service are judged as those of what runs it, by `scale` and by an edit alike."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import live
from engine.resource import Body
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.base import kinds
from resources.dynamo.model.names import component
from resources.dynamo.objects.podcliqueset import podcliqueset
from resources.dynamo.versions.converted import as_version
from resources.ports.configuration import NAMESPACE_LIMITS, SET_LIMITS, DynamoSettings, WorkloadLimits
from resources.ports.references import KnownReferences, known_references
from tests.resources.admission.graphs import WITHOUT_GROVE
from tests.resources.admission.requests import SETUP, issues_of, put, small
from tests.resources.dynamo.reading import graph_in
from tests.stories.graphs import graph, service

HUGE = 2**31 - 1
LONG = "Prefill-of-long-prompts-with-a-long-name"
PODS, BYTES, GROUPS, TOGETHER = "(limits.set.pods)", "(limits.set.bytes)", "the most without Grove", "(limits.namespace.pods)"
ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
CLIQUES = ["(limits.set.cliques)", "(limits.namespace.cliques)"]


def chat(annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """A graph of six pods: two services on one node, one of which has a long name, and one on two nodes."""
    return graph("chat", annotations, **{"Front": service(1), LONG: service(1), "decode": service(2, nodes=2)})


def known(body: Body, *others: Body, has_set: bool, version: str = ALPHA) -> KnownReferences:
    """References to a graph and other objects, and to the set that the engine makes of it."""
    own = graph_in(body["metadata"], body["spec"])
    planned = podcliqueset(own, DynamoSettings(), None) if has_set else None
    sets = [live({**planned.body, "metadata": {"name": "chat", "namespace": "default"}})] if planned is not None else []
    return known_references([live(as_version(body, version)), *sets, *map(live, others)], [kinds.PODCLIQUESET.key])


def scaled(references: KnownReferences, name: str, after: int, before: int | None = 1, by_edit: bool = False, **limits: int) -> list[str]:
    """The ends of the issues of a new number of an adapter."""
    setup = replace(SETUP, limits=WorkloadLimits(replace(SET_LIMITS, **limits), replace(NAMESPACE_LIMITS, pods=200_000)))
    new, old = ({"spec": {"replicas": count}} if count is not None else None for count in (after, before))
    if by_edit:
        request = Request(Act.UPDATE if old else Act.CREATE, kinds.SCALING_ADAPTER.id("default", name), new, old, "ann")
    else:
        scale = ResourceId("autoscaling", "Scale", "default", name)
        request = Request(Act.UPDATE, scale, new, old, "hpa", "scale", kinds.SCALING_ADAPTER.plural)
    issues = issues_of(admit(request, setup, references))
    assert all(issue.startswith("spec.replicas: Invalid value: ") for issue in issues)
    return [issue[issue.rindex("(") :] if issue.endswith(")") else issue[-len(GROUPS) :] for issue in issues]


@pytest.mark.parametrize(
    ("name", "most"), [("chat-front", 95), (f"chat-{LONG.lower()}", 95), ("chat-decode", 49)], ids=["one-node", "long-name", "two-nodes"]
)
@pytest.mark.parametrize("by_edit", [False, True], ids=["scale", "edit"])
@pytest.mark.parametrize(("has_set", "annotations"), [(True, None), (False, None), (False, WITHOUT_GROVE)], ids=["set", "new", "without"])
@pytest.mark.parametrize("version", [ALPHA, BETA])
def test_more_replicas_than_a_limit_allows_are_refused(
    name: str, most: int, by_edit: bool, has_set: bool, annotations: dict[str, str] | None, version: str
) -> None:
    references = known(chat(annotations=annotations), has_set=has_set, version=version)

    assert scaled(references, name, most, by_edit=by_edit, pods=100) == []
    assert scaled(references, name, most + 1, by_edit=by_edit, pods=100) == [PODS]
    assert scaled(references, name, most + 1, before=HUGE, by_edit=by_edit, pods=100) == []
    assert scaled(references, f"{name}-x", HUGE, by_edit=by_edit, pods=100) == []


def test_a_new_adapter_is_allowed_because_it_may_be_made_again_with_the_number_of_what_runs_above_a_lower_limit() -> None:
    assert scaled(known(chat(), has_set=False), "chat-front", 150, before=None, by_edit=True, pods=100) == []


def test_the_other_limits_count_as_they_do_for_what_runs_the_service() -> None:
    grove, without = known(chat(), has_set=True), known(chat(annotations=WITHOUT_GROVE), has_set=False)
    beside = known(chat(), put(small(), {"metadata.namespace": "default", "spec.replicas": 75_000}), has_set=True)

    for name in ("chat-front", f"chat-{LONG.lower()}"):
        assert (scaled(grove, name, 90_000), scaled(without, name, 90_000)) == ([BYTES], [])
    assert (scaled(grove, "chat-decode", 20_000), scaled(without, "chat-decode", 20_000)) == (CLIQUES, [GROUPS])
    assert TOGETHER in scaled(beside, "chat-front", 60_000)


def test_the_name_is_that_of_the_adapter() -> None:
    model = graph_in(chat()["metadata"], chat()["spec"])

    assert {component(model, each) for each in model.services} == {"chat-front", f"chat-{LONG.lower()}", "chat-decode"}
