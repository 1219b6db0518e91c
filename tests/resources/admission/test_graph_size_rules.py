"""Limits of graphs that have no PodCliqueSet: only growth is refused, in webhooks and policies alike."""

from typing import Any

import pytest
from msgspec.structs import replace

from engine.observed import live
from engine.resource import Body
from resources.admission.admit import UNPROTECTED, admit
from resources.admission.request import Act, Request
from resources.base.kinds import DYNAMO_GRAPH, PODCLIQUESET
from resources.dynamo.versions.converted import as_version
from resources.install.admission_policies import policies
from resources.ports.configuration import NAMESPACE_LIMITS, WorkloadLimits
from resources.ports.references import known_references
from tests.laws.policy_server import PolicyServer
from tests.resources.admission.graphs import WITHOUT_GROVE, created_graph, graph, updated_graph, wide, worker
from tests.resources.admission.requests import SETUP, issues_of, put, small

HUGE = 2**31 - 1
BETA = "nvidia.com/v1beta1"
PODS, BYTES, GROUPS = "(limits.set.pods)", "(limits.set.bytes)", "the most without Grove"


def plain(**services: Any) -> dict[str, Any]:
    """A graph with Grove off."""
    return graph(services, annotations=WITHOUT_GROVE)


def ends(issues: list[str]) -> list[str]:
    """What each of these issues ends with, of the ends that are tested here."""
    return [end for issue in issues for end in (PODS, BYTES, GROUPS) if issue.endswith(end)]


@pytest.mark.parametrize(
    ("body", "exceeded"),
    [
        (plain(a=worker(replicas=60_000), b=worker(replicas=40_000)), []),
        (plain(a=worker(replicas=60_000), b=worker(replicas=40_001)), [PODS]),
        (plain(a=worker(replicas=HUGE)), [PODS]),
        (plain(a=wide(nodes=10, replicas=10_000)), []),
        (plain(a=wide(nodes=11, replicas=10_000)), [PODS]),
        (plain(a=wide(replicas=HUGE)), [GROUPS, PODS]),
        (plain(a=worker("x" * 1_500_000)), [BYTES]),
        (graph({"a": worker(replicas=HUGE)}), [PODS, BYTES]),
    ],
)
@pytest.mark.parametrize("version", ["nvidia.com/v1alpha1", BETA])
def test_a_new_graph_is_refused_for_each_limit_that_it_exceeds(body: dict[str, Any], exceeded: list[str], version: str) -> None:
    assert ends(issues_of(created_graph(as_version(body, version)))) == exceeded


def test_only_an_edit_that_grows_what_exceeds_a_limit_is_refused() -> None:
    large = plain(a=wide(nodes=11, replicas=20_000))
    smaller, larger = plain(a=wide(nodes=11, replicas=15_000)), plain(a=wide(nodes=11, replicas=20_001))
    labelled = {**large, "metadata": {**large["metadata"], "finalizers": ["a/b"]}}

    assert [issues_of(updated_graph(large, new)) for new in (large, smaller, labelled)] == [[]] * 3
    assert ends(issues_of(updated_graph(large, larger))) == [GROUPS, PODS]


@pytest.mark.parametrize("version", ["nvidia.com/v1alpha1", BETA])
@pytest.mark.parametrize("annotations", [None, WITHOUT_GROVE])
def test_a_policy_states_the_limit_of_pods(version: str, annotations: dict[str, str] | None) -> None:
    server = PolicyServer(policies(SETUP, UNPROTECTED, mutating=False), DYNAMO_GRAPH)
    small, large, larger = (
        as_version(graph({"a": wide(nodes=10, replicas=replicas), "b": worker(replicas=0)}, annotations=annotations), version)
        for replicas in (10_000, 10_001, HUGE)
    )

    def denials(new: Body, old: Body | None = None) -> list[str]:
        return ends([denial.text for denial in server.denials(Act.UPDATE if old else Act.CREATE, new, old)])

    assert [denials(new) for new in (small, large, larger)] == [[], [PODS], [PODS]]
    assert [denials(new, old) for new, old in ((large, larger), (large, large), (larger, large))] == [[], [], [PODS]]
    assert denials(as_version(graph({"a": worker()}), version)) == []


def in_namespace(body: Body, old: Body | None, *others: Body) -> list[str]:
    """The issues of a graph or a set whose namespace has these objects besides it, and may have 10 pods."""
    setup = replace(SETUP, limits=WorkloadLimits(of_namespace=replace(NAMESPACE_LIMITS, pods=10)))
    stored = [*others, *([old] if old else [])]
    known = known_references(map(live, stored), [PODCLIQUESET.key])
    kind = DYNAMO_GRAPH if body["kind"] == DYNAMO_GRAPH.name else PODCLIQUESET
    request = Request(Act.UPDATE if old else Act.CREATE, kind.id("ml", body["metadata"]["name"]), body, old)
    return [str(issue) for issue in admit(request, setup, known).issues]


def test_graphs_without_a_set_count_in_their_namespace_and_only_what_grows_is_refused() -> None:
    without, component = {"nvidia.com/enable-grove": "false"}, {"nvidia.com/workload-provider": "component"}
    web, large = put(small(), {"spec.replicas": 2}), put(small(), {"spec.replicas": 4})
    four, eight, by_grove, recorded = (
        put(graph({"decode": wide(replicas=count)}, annotations=each), {"metadata.namespace": "ml"})
        for count, each in ((2, without), (4, without), (4, {}), (4, component))
    )
    together = "and graphs without one, must not have more than 10 pods together (limits.namespace.pods)"

    assert in_namespace(four, None, web) == in_namespace(eight, eight, large) == in_namespace(four, eight, large) == []
    assert in_namespace(large, None, by_grove) == in_namespace(web, large, eight) == []
    for refused in (in_namespace(eight, four, web), in_namespace(eight, None, web), in_namespace(large, web, eight)):
        assert len(refused) == 1 and refused[0].endswith(together)
    assert in_namespace(large, web, recorded)[0].endswith(together)
