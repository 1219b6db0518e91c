"""Limits: how large a set may be, alone and with the others of its namespace. Only growth is refused."""

import itertools
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from engine.ids import Kind, ResourceId
from resources.admission.admit import UNPROTECTED, admit
from resources.admission.request import Act, Request
from resources.base import names
from resources.base.kinds import PODCLIQUE, PODCLIQUESET, SCALING_ADAPTER, SCALING_GROUP
from resources.base.set_size import SetSize, SetSizes, size_of
from resources.install.admission_policies import policies
from resources.ports.configuration import NAMESPACE_LIMITS, SET_LIMITS, WorkloadLimits
from tests.laws.policy_server import PolicyServer
from tests.resources.admission.graphs import WITHOUT_GROVE, graph, worker
from tests.resources.admission.requests import (
    GONE,
    SETUP,
    Body,
    EmptyReferences,
    clique,
    created,
    issues_of,
    put,
    references_to,
    small,
    updated,
)

HUGE = 2**31 - 1
CLIQUE, GROUP = "spec.template.cliques.0.spec", "spec.template.podCliqueScalingGroups.0"
PODS, CLIQUES, BYTES = "(limits.set.pods)", "(limits.set.cliques)", "(limits.set.bytes)"


def grouped() -> Body:
    """A set of a clique of two pods, and a group of two cliques of two pods."""
    groups = [{"name": "g", "cliqueNames": ["b", "c"], "replicas": 2, "minAvailable": 1}]
    return small(cliques=[clique("a"), clique("b"), clique("c")], podCliqueScalingGroups=groups)


@pytest.mark.parametrize(
    ("changes", "exceeded"),
    [
        ({}, []),
        ({"spec.replicas": 10_000}, [CLIQUES]),
        ({"spec.replicas": HUGE}, ["(limits.set.replicas)", PODS, CLIQUES]),
        ({f"{CLIQUE}.replicas": HUGE}, [PODS, BYTES]),
        ({f"{CLIQUE}.autoScalingConfig": {"maxReplicas": HUGE}}, [PODS, BYTES]),
        ({f"{GROUP}.replicas": HUGE}, [PODS, CLIQUES]),
        ({f"{GROUP}.scaleConfig": {"maxReplicas": 4_000}}, []),
        ({f"{GROUP}.scaleConfig": {"maxReplicas": 5_000}}, [CLIQUES]),
        ({"spec.replicas": HUGE, f"{GROUP}.replicas": HUGE, f"{CLIQUE}.replicas": HUGE}, ["(limits.set.replicas)", PODS, CLIQUES, BYTES]),
        ({f"{CLIQUE}.podSpec.containers.0.args": ["x" * 1_500_000]}, [BYTES]),
    ],
)
def test_a_new_set_is_refused_for_each_limit_that_it_exceeds(changes: dict[str, Any], exceeded: list[str]) -> None:
    issues = issues_of(created(put(grouped(), changes)))

    assert [issue[issue.rindex("(") :] for issue in issues] == exceeded


def test_only_an_edit_that_grows_what_exceeds_a_limit_is_refused() -> None:
    large = put(grouped(), {f"{CLIQUE}.replicas": 200_000})
    smaller, labelled = put(large, {f"{CLIQUE}.replicas": 190_000}), put(large, {"metadata.labels": {"a": "b"}})
    larger = put(large, {f"{CLIQUE}.replicas": 200_001})

    assert [updated(large, new).allowed for new in (large, smaller, labelled, put(labelled, {"metadata.finalizers": []}))] == [True] * 4
    assert not updated(large, larger).allowed
    assert not updated(large, put(large, {"spec.replicas": 2})).allowed
    assert updated(large, put(large, {"spec.replicas": 0})).allowed


def in_namespace(body: Body, old: Body | None, *others: Body) -> list[str]:
    """The issues of a set whose namespace has these sets besides it, and may have 10 pods in sets."""
    setup = replace(SETUP, limits=WorkloadLimits(of_namespace=replace(NAMESPACE_LIMITS, pods=10)))
    known = references_to(*others, *([old] if old else []))
    return issues_of(updated(old, body, setup, known) if old else created(body, setup, known))


def test_the_sets_of_a_namespace_count_together() -> None:
    web, other = put(small(), {"spec.replicas": 3}), put(small(), {"metadata.name": "other", "spec.replicas": 2})
    foreign = put(other, {"metadata.namespace": "elsewhere", "spec.replicas": 4})

    assert in_namespace(web, None, other, foreign) == []
    assert in_namespace(put(web, {"spec.replicas": 4}), web, other) == [
        "spec: Invalid value: 12: the PodCliqueSets of the namespace, and graphs without one, must not have more than "
        "10 pods together (limits.namespace.pods)"
    ]
    assert in_namespace(put(web, {"spec.replicas": 5}), put(web, {"spec.replicas": 6}), other) == []


def scaled(resource: str, name: str, after: int, before: int = 1, **limits: int) -> list[str]:
    """The issues of a change of `scale`."""
    setup = replace(SETUP, limits=WorkloadLimits(of_set=replace(SET_LIMITS, **limits)))
    new, old = ({"kind": "Scale", "spec": {"replicas": count}} for count in (after, before))
    request = Request(Act.UPDATE, ResourceId("autoscaling", "Scale", "ml", name), new, old, "hpa", "scale", resource)
    return issues_of(admit(request, setup, references_to(grouped(), put(grouped(), {"metadata.name": "web-0"}))))


@pytest.mark.parametrize(
    ("resource", "name", "after", "exceeds"),
    [
        ("podcliquesets", "web", 10, False),
        ("podcliquesets", "web", 11, True),
        ("podcliques", "web-0-a", 92, False),
        ("podcliques", "web-0-a", 93, True),
        ("podcliques", "web-0-g-1-b", 93, True),
        ("podcliques", "web-0-other", HUGE, False),
        ("podcliquescalinggroups", "web-0-g", 24, False),
        ("podcliquescalinggroups", "web-0-g", 25, True),
    ],
)
def test_a_scale_that_grows_above_a_limit_is_refused(resource: str, name: str, after: int, exceeds: bool) -> None:
    expected = "spec.replicas: Invalid value: "
    found = scaled(resource, name, after, pods=100)

    assert [issue.startswith(expected) and issue.endswith(PODS) for issue in found] == [True] * exceeds


def test_however_many_sets_there_are_a_review_looks_at_few_and_computes_no_size_again() -> None:
    sets = {f"web-{number}": put(grouped(), {"metadata.name": f"web-{number}"}) for number in range(300)}
    kept = {name: size_of(body, "ml") for name, body in sets.items()}
    new, old = ({"kind": "Scale", "spec": {"replicas": count}} for count in (2, 1))
    scale = Request(Act.UPDATE, ResourceId("autoscaling", "Scale", "ml", "web-7-0-a"), new, old, "hpa", "scale", "podcliques")

    class Cached(EmptyReferences):
        def sizes(self, namespace: str) -> SetSizes:
            return SetSizes(dict(kept))

    def review() -> None:
        assert admit(scale, SETUP, Cached()).allowed
        assert created(put(small(), {"metadata.name": "new"}), SETUP, Cached()).allowed

    review()
    with (
        patch.object(SetSize, "with_replicas", autospec=True, side_effect=SetSize.with_replicas) as computed,
        patch.object(names, "replica_of", side_effect=names.replica_of) as looked_at,
    ):
        review()

    assert computed.call_count < 5 and looked_at.call_count < 10


def test_a_scale_that_does_not_grow_is_never_refused() -> None:
    assert scaled("podcliques", "web-0-a", 400, before=500, pods=100) == []
    assert scaled("podcliques", "web-0-a", 500, before=500, pods=100) == []


COUNTS = (0, 1, 10, 11, 20, 21, 100, 101, HUGE)
LIMITS = {"replicas": 10, "cliques": 20, "pods": 100}


@pytest.mark.parametrize("kind", [PODCLIQUESET, PODCLIQUE, SCALING_GROUP, SCALING_ADAPTER], ids=lambda kind: kind.plural)
def test_a_policy_refuses_a_scale_that_exceeds_a_limit_by_itself(kind: Kind) -> None:
    """It sees the `scale` alone. So the set here has one replica of one pod besides, or nothing: then both say the same."""
    setup = replace(SETUP, limits=WorkloadLimits(replace(SET_LIMITS, **LIMITS)))
    server = PolicyServer(policies(setup, UNPROTECTED, mutating=False), kind, "scale")
    one = clique("a", spec={"replicas": 1})
    alone = small(cliques=[one])
    grouped = small(cliques=[one], podCliqueScalingGroups=[{"name": "g", "cliqueNames": ["a"], "replicas": 1, "minAvailable": 1}])
    named = graph({"a": worker()}, name="web", annotations=WITHOUT_GROVE)
    body, name = {
        PODCLIQUESET: (alone, "web"),
        PODCLIQUE: (alone, "web-0-a"),
        SCALING_GROUP: (grouped, "web-0-g"),
        SCALING_ADAPTER: (put(named, {"metadata.namespace": "ml"}), "web-a"),
    }[kind]

    for before, after in itertools.product(COUNTS, COUNTS):
        new, old = ({"metadata": {"name": name}, "spec": {"replicas": count} if count else {}} for count in (after, before))
        request = Request(Act.UPDATE, ResourceId("autoscaling", "Scale", "ml", name), new, old, "hpa", "scale", kind.plural)
        expected = {issue[issue.rindex("(") :] for issue in issues_of(admit(request, setup, references_to(body)))}

        denied = {denial.text[denial.text.rindex("(") :] for denial in server.denials(Act.UPDATE, new, old)}

        assert denied <= expected and bool(denied) == bool(expected), (before, after)


def test_parts_of_any_shape_have_a_size() -> None:
    for changes in ({"spec": None}, {"spec": {"replicas": "x", "template": []}}, {"spec.template.cliques": [None, {"name": 1}]}):
        assert size_of(put(grouped(), changes), "ml").totals.pods >= 0
    assert size_of(put(small(), {f"{CLIQUE}.replicas": GONE}), "ml").totals.pods == 1
    assert size_of({}, PODCLIQUESET.name).totals.replicas == 0
