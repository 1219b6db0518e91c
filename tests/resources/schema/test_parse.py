"""Parsing: a mistake in a manifest is told with its field; a live object of a newer version is no mistake."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.base.kinds import OURS, PODCLIQUE, PODCLIQUESET, PODGANG, SCALING_GROUP, TOPOLOGY_BINDING
from resources.schema.issues import Fault, Rejected
from resources.schema.parse import faults, parse
from resources.schema.podcliqueset import PodCliqueSet
from tests.resources.manifests import JSON, WHOLE, clique, paths, pcs, put


def told(body: Any, **how: bool) -> list[str]:
    """Every issue of a set, as text."""
    return [str(issue) for issue in faults(PODCLIQUESET, body, **how)]


def test_a_sound_set_is_read_and_written_back_as_it_was() -> None:
    body = pcs(clique("a"), clique("b", minAvailable=1), terminationDelay="4h", cliqueStartupType="CliqueStartupTypeInOrder")

    model = parse(PODCLIQUESET, body)

    assert isinstance(model, PodCliqueSet)
    assert [clique.name for clique in model.spec.template.cliques] == ["a", "b"]
    assert model.spec.update_strategy is None
    assert model.body() == body


def test_a_pod_spec_is_not_copied_and_may_hold_what_nobody_knows_yet() -> None:
    pod_spec = {"containers": [{"name": "c", "brandNew": {"x": [1]}}], "future": True}

    model = parse(PODCLIQUESET, pcs(clique(podSpec=pod_spec)))

    assert isinstance(model, PodCliqueSet)
    assert model.spec.template.cliques[0].spec.pod_spec is pod_spec


def test_a_live_pod_spec_is_handed_on_as_it_is_if_what_we_read_of_it_can_be_read() -> None:
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
def test_a_mistake_is_told_with_its_field(body: Any, text: str) -> None:
    assert told(body) == [text]


def test_all_mistakes_are_told_together() -> None:
    body = pcs(clique(replicas="2", replcas=1), terminationDelay="soon")

    with pytest.raises(Rejected) as rejected:
        parse(PODCLIQUESET, body)

    assert [issue.kind for issue in rejected.value.issues] == [Fault.MALFORMED, Fault.UNKNOWN, Fault.MALFORMED]
    assert str(rejected.value).count("\n") == 2


def test_every_quantity_that_kubernetes_reads_is_accepted_and_no_other() -> None:
    def value(amount: Any) -> dict[str, Any]:
        target = {"type": "Value", "value": amount}
        metric = {"type": "External", "external": {"metric": {"name": "m"}, "target": target}}
        return pcs(clique(autoScalingConfig={"maxReplicas": 2, "metrics": [metric]}))

    assert [told(value(amount)) for amount in (2, "2", "500m", "4Gi", "1e3", ".5", "-1")] == [[]] * 7
    assert all(told(value(amount)) for amount in (0.5, True, "", "4 Gi", "4Gb", "x", "1\n"))


def test_a_null_is_as_good_as_nothing() -> None:
    body = pcs(clique(minAvailable=None, startsAfter=None, podSpec={"containers": [{"name": "c", "env": None}]}), topologyConstraint=None)
    body["metadata"]["creationTimestamp"] = None

    assert told(body) == []
    assert told(pcs(clique(replicas=None, roleName=None))) == []
    assert told(pcs(clique(podSpec=None))) == ["spec.template.cliques[0].spec.podSpec: Required value"]


def test_a_live_object_of_a_newer_version_is_read_without_what_it_knows_more() -> None:
    body = pcs({**clique(newer=1), "newest": {}}, newer=[1])
    body["status"] = {"updatedReplicas": 1, "availableReplicas": 1, "newer": {"x": 1}}

    assert told(body, strict=False) == []
    assert len(told(body)) == 4
    assert "newer" not in str(parse(PODCLIQUESET, body, strict=False).body())


def test_the_shape_of_a_live_object_matters_all_the_same() -> None:
    assert told(pcs(clique(replicas="2")), strict=False) == ['spec.template.cliques[0].spec.replicas: must be an integer, got "2"']


def test_what_a_stranger_wrote_does_not_steer_the_terminal() -> None:
    body = pcs(clique(replicas="\x1b[31m\u202eevil" + "x" * 10_000), **{"\x1b]0;title\x07\n": 1, "k" * 10_000: 1})

    lines = told(body)

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
def test_every_other_kind_of_ours_is_read_too(kind: Any, spec: dict[str, Any]) -> None:
    body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "x"}, "spec": spec}

    assert parse(kind, body).body() == body
    assert [str(issue) for issue in faults(kind, {**body, "spec": {**spec, "x": 1}})] == ["spec.x: unknown field"]
    assert [str(issue) for issue in faults(kind, {**body, "spec": None})] == ["spec: Required value"]


def test_a_topology_without_levels_is_none() -> None:
    body = {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "metadata": {"name": "t"}, "spec": {"levels": []}}

    assert [str(issue) for issue in faults(TOPOLOGY_BINDING, body)] == ["spec.levels: Invalid value: a list: must have at least 1 entries"]


@given(st.sampled_from(paths(WHOLE)), JSON, st.booleans())
def test_whatever_stands_in_a_manifest_it_is_read_or_rejected(path: tuple[Any, ...], junk: Any, strict: bool) -> None:
    for issue in faults(PODCLIQUESET, put(WHOLE, path, junk), strict=strict):
        assert str(issue).isprintable()


@pytest.mark.parametrize("kind", OURS)
def test_a_body_is_never_changed_by_being_read(kind: Any) -> None:
    body = {**WHOLE, "apiVersion": kind.api_version, "kind": kind.name}
    before = copy.deepcopy(body)

    faults(kind, body)

    assert body == before
