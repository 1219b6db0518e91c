"""Parsing of manifests and of live objects."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.base.kinds import OURS, PODCLIQUE, PODCLIQUESET, PODGANG, SCALING_GROUP, TOPOLOGY_BINDING
from resources.schema.issues import ErrorType, Rejected
from resources.schema.parse import faults, parse
from resources.schema.podcliqueset import PodCliqueSet
from tests.resources.manifests import JSON, WHOLE, clique, paths, pcs, put


def issues_of(body: Any, **how: bool) -> list[str]:
    """Every issue of a set, as text."""
    return [str(issue) for issue in faults(PODCLIQUESET, body, **how)]


def test_a_valid_set_is_parsed_and_serialized_unchanged() -> None:
    body = pcs(clique("a"), clique("b", minAvailable=1), terminationDelay="4h", cliqueStartupType="CliqueStartupTypeInOrder")

    model = parse(PODCLIQUESET, body)

    assert isinstance(model, PodCliqueSet)
    assert [clique.name for clique in model.spec.template.cliques] == ["a", "b"]
    assert model.spec.update_strategy is None
    assert model.body() == body


def test_a_pod_spec_is_not_copied_and_may_have_unknown_fields() -> None:
    pod_spec = {"containers": [{"name": "c", "brandNew": {"x": [1]}}], "future": True}

    model = parse(PODCLIQUESET, pcs(clique(podSpec=pod_spec)))

    assert isinstance(model, PodCliqueSet)
    assert model.spec.template.cliques[0].spec.pod_spec is pod_spec


def test_only_the_fields_that_are_read_are_validated_in_a_live_pod_spec() -> None:
    stored = pcs(clique(podSpec={"containers": [{"name": "c", "image": 5}], "restartPolicy": "Sometimes"}))

    assert len(faults(PODCLIQUESET, stored)) == 2
    assert faults(PODCLIQUESET, stored, strict=False) == ()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (pcs(clique(), clique("b", replcas=2)), "spec.template.cliques[1].spec.replcas: unknown field"),
        (pcs(clique(replicas="2")), 'spec.template.cliques[0].spec.replicas: must be an integer, got "2"'),
        (pcs(clique(replicas=True)), "spec.template.cliques[0].spec.replicas: must be an integer, got true"),
        (pcs(clique(replicas=1.0)), "spec.template.cliques[0].spec.replicas: must be an integer, got 1.0"),
        (pcs(clique(replicas=2**31)), "spec.template.cliques[0].spec.replicas: must fit 32 bits, got 2147483648"),
        (pcs(clique(startsAfter="a")), 'spec.template.cliques[0].spec.startsAfter: must be a list, got "a"'),
        (pcs(clique(startsAfter=["a", 1])), "spec.template.cliques[0].spec.startsAfter[1]: must be a string, got 1"),
        (pcs(clique(podSpec=[])), 'spec.template.cliques[0].spec.podSpec: Invalid value: a list: must be of type object: "array"'),
        (pcs(clique(podSpec={})), "spec.template.cliques[0].spec.podSpec.containers: Required value"),
        (
            pcs(clique(podSpec={"containers": [{"name": "c", "env": [{"value": "x"}]}]})),
            "spec.template.cliques[0].spec.podSpec.containers[0].env[0].name: Required value",
        ),
        (pcs({"name": "a"}), "spec.template.cliques[0].spec: Required value"),
        (pcs("a"), 'spec.template.cliques[0]: must be an object, got "a"'),  # type: ignore[arg-type]
        (pcs({**clique(), "labels": {"team.io/x": 1}}), "spec.template.cliques[0].labels[team.io/x]: must be a string, got 1"),
        (
            pcs(cliqueStartupType="InOrder"),
            'spec.template.cliqueStartupType: Unsupported value: "InOrder": supported values: '
            '"CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"',
        ),
        (pcs(terminationDelay="4 h"), 'spec.template.terminationDelay: must be a duration such as 30s, 4h or 1h30m, got "4 h"'),
        (pcs(terminationDelay=4), "spec.template.terminationDelay: must be a string, got 4"),
        (
            pcs(topologyConstraint={"topologyName": "t"}),
            "spec.template.topologyConstraint.pack: Required value: topologyConstraint must specify pack or deprecated packDomain",
        ),
        (
            pcs(topologyConstraint={"pack": {}}),
            "spec.template.topologyConstraint.pack: Required value: pack must specify at least one of required or preferred",
        ),
        (
            pcs(topologyConstraint={"packDomain": "rack", "pack": {"required": "rack"}}),
            "spec.template.topologyConstraint.pack.required: Invalid value: must not set both pack.required and deprecated packDomain",
        ),
        (
            pcs(topologyConstraint={"packDomain": "Rack"}),
            'spec.template.topologyConstraint.packDomain: Invalid value: "Rack": must match ^[a-z][a-z0-9-]*$',
        ),
        (
            pcs(topologyConstraint={"packDomain": ""}),
            'spec.template.topologyConstraint.packDomain: Invalid value: "": must have at least 1 characters',
        ),
        (
            pcs(clique(autoScalingConfig={"maxReplicas": 2, "metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]})),
            "spec.template.cliques[0].spec.autoScalingConfig.metrics[0].resource.target: Required value",
        ),
        ({**pcs(), "stauts": {}}, "stauts: unknown field"),
        ({**pcs(), "kind": "PodClique"}, 'kind: must be "PodCliqueSet", got "PodClique"'),
        ({**pcs(), "apiVersion": "grove.io/v1"}, 'apiVersion: must be "grove.io/v1alpha1", got "grove.io/v1"'),
        ({**pcs(), "metadata": {"name": "d", "lables": {}}}, "metadata.lables: unknown field"),
        ([], "must be an object, got a list"),
    ],
)
def test_an_issue_has_its_field(body: Any, text: str) -> None:
    assert issues_of(body) == [text]


def test_all_issues_are_reported_together() -> None:
    body = pcs(clique(replicas="2", replcas=1), terminationDelay="soon")

    with pytest.raises(Rejected) as rejected:
        parse(PODCLIQUESET, body)

    assert [issue.type for issue in rejected.value.issues] == [ErrorType.MALFORMED, ErrorType.UNKNOWN, ErrorType.MALFORMED]
    assert str(rejected.value).count("\n") == 2


def test_exactly_the_quantities_of_kubernetes_are_accepted() -> None:
    def value(amount: Any) -> dict[str, Any]:
        target = {"type": "Value", "value": amount}
        metric = {"type": "External", "external": {"metric": {"name": "m"}, "target": target}}
        return pcs(clique(autoScalingConfig={"maxReplicas": 2, "metrics": [metric]}))

    assert [issues_of(value(amount)) for amount in (2, "2", "500m", "4Gi", "1e3", ".5", "-1")] == [[]] * 7
    assert all(issues_of(value(amount)) for amount in (0.5, True, "", "4 Gi", "4Gb", "x", "1\n"))


def test_a_null_counts_as_absent() -> None:
    body = pcs(clique(minAvailable=None, startsAfter=None, podSpec={"containers": [{"name": "c", "env": None}]}), topologyConstraint=None)
    body["metadata"]["creationTimestamp"] = None

    assert issues_of(body) == []
    assert issues_of(pcs(clique(replicas=None, roleName=None))) == []
    assert issues_of(pcs(clique(podSpec=None))) == ["spec.template.cliques[0].spec.podSpec: Required value"]


def test_unknown_fields_of_a_live_object_are_ignored() -> None:
    body = pcs({**clique(newer=1), "newest": {}}, newer=[1])
    body["status"] = {"updatedReplicas": 1, "availableReplicas": 1, "newer": {"x": 1}}

    assert issues_of(body, strict=False) == []
    assert len(issues_of(body)) == 4
    assert "newer" not in str(parse(PODCLIQUESET, body, strict=False).body())


def test_a_live_object_must_have_the_right_types() -> None:
    assert issues_of(pcs(clique(replicas="2")), strict=False) == ['spec.template.cliques[0].spec.replicas: must be an integer, got "2"']


def test_issues_are_printable_and_short_for_any_input() -> None:
    body = pcs(clique(replicas="\x1b[31m\u202eevil" + "x" * 10_000), **{"\x1b]0;title\x07\n": 1, "k" * 10_000: 1})

    lines = issues_of(body)

    assert len(lines) == 3
    assert all(line.isprintable() and len(line) < 600 for line in lines)
    assert lines[0].startswith('spec.template.cliques[0].spec.replicas: must be an integer, got "\\u001b[31m')


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (PODCLIQUE, clique()["spec"]),
        (SCALING_GROUP, {"replicas": 2, "cliqueNames": ["a", "b"]}),
        (TOPOLOGY_BINDING, {"levels": [{"domain": "zone", "key": "topology.kubernetes.io/zone"}]}),
        (PODGANG, {"podgroups": [{"name": "a", "podReferences": [{"namespace": "ml", "name": "p"}], "minReplicas": 1}]}),
    ],
)
def test_every_other_kind_is_parsed(kind: Any, spec: dict[str, Any]) -> None:
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "x"}, "spec": spec}

    assert parse(kind, body).body() == body
    assert [str(issue) for issue in faults(kind, {**body, "spec": {**spec, "x": 1}})] == ["spec.x: unknown field"]
    assert [str(issue) for issue in faults(kind, {**body, "spec": None})] == ["spec: Required value"]


def test_a_topology_must_have_levels() -> None:
    body = {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "metadata": {"name": "t"}, "spec": {"levels": []}}

    assert [str(issue) for issue in faults(TOPOLOGY_BINDING, body)] == ["spec.levels: Invalid value: a list: must have at least 1 entries"]


@given(st.sampled_from(paths(WHOLE)), JSON, st.booleans())
def test_any_manifest_is_parsed_or_rejected(path: tuple[Any, ...], junk: Any, strict: bool) -> None:
    for issue in faults(PODCLIQUESET, put(WHOLE, path, junk), strict=strict):
        assert str(issue).isprintable()


@pytest.mark.parametrize("kind", OURS)
def test_parsing_does_not_change_the_body(kind: Any) -> None:
    body = {**WHOLE, "apiVersion": kind.api_version, "kind": kind.name}
    before = copy.deepcopy(body)

    faults(kind, body)

    assert body == before
