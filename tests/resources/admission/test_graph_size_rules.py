"""Limits of graphs that have no PodCliqueSet: only growth is refused, in webhooks and policies alike."""

from typing import Any

import pytest

from engine.resource import Body
from resources.admission.admit import UNPROTECTED
from resources.admission.request import Act
from resources.base.kinds import DYNAMO_GRAPH
from resources.dynamo.versions.converted import as_version
from resources.install.admission_policies import policies
from tests.laws.policy_server import PolicyServer
from tests.resources.admission.graphs import WITHOUT_GROVE, created_graph, graph, updated_graph, wide, worker
from tests.resources.admission.requests import SETUP, issues_of

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
