"""N24: while cliques have no PodClique, the PodGang of their replica records their domains; an edited set moves no pod."""

from typing import Any

import orjson
import pytest

from engine.resource import Body
from engine.verb import Verb
from providers.fabrics.nvidia.names import AUTO, GROUP, NAMED
from resources.base import kinds, labels
from tests.builders import clique, group, podcliqueset
from tests.laws.fabric_worlds import settle
from tests.laws.rack import Rack
from tests.mnnvl.asking import claimed, root, up
from tests.mnnvl.sets import OPTED_OUT, auto, gpu, named, said
from tests.mnnvl.test_membership import annotate, edit, new_image, pod_uids, podcliques, remove

DEMO = root()
GANG = kinds.PODGANG.id("default", "demo-0")
KEY = labels.DOMAIN_MEMBERSHIP
IN_GROUP = [{GROUP: "model"}, {GROUP: "other"}, {NAMED: "elsewhere"}, {GROUP: "none"}, {}]
"""Annotations that a user may give cliques and scaling groups."""


def grouped(annotations: Body, of_group: Body, of_set: Body) -> Body:
    """A set with a scaling group of one replica, whose only clique is replaced as a whole, and a clique beside it."""
    cliques = (gpu("m", annotations=dict(annotations)), gpu("beside"))
    config = {**group("g", "m", replicas=1), "annotations": dict(of_group)}
    return said(podcliqueset("demo", *cliques, groups=(config,)), of_set)


def edit_everything(toy: Rack, annotations: Body) -> None:
    """A user edits the annotations of the set, its cliques and scaling groups, and the image, and no webhook objects."""
    of_set = {GROUP: annotations.get(GROUP), AUTO: None}
    configs = [{**config, "annotations": dict(annotations)} for config in toy.objects[DEMO]["spec"]["template"]["podCliqueScalingGroups"]]
    toy.write(DEMO, {"metadata": {"annotations": of_set}, "spec": {"template": {"podCliqueScalingGroups": configs}}})
    edit(toy, lambda entry: new_image({**entry, "annotations": dict(annotations)}))


@pytest.mark.parametrize("edited", IN_GROUP)
@pytest.mark.parametrize(
    "manifest",
    [
        grouped({GROUP: "model"}, {}, {GROUP: "none"}),
        grouped({GROUP: "none"}, {GROUP: "model"}, {GROUP: "model"}),
        grouped({}, {GROUP: "other"}, {GROUP: "none"}),
        grouped({}, {}, {GROUP: "none"}),
        grouped({NAMED: "rack"}, {}, OPTED_OUT),
        grouped({}, {}, OPTED_OUT),
        grouped({}, {}, {AUTO: "enabled"}),
    ],
    ids=["own group", "own opt-out", "inherited group", "inherited opt-out", "named", "disabled", "automatic"],
)
def test_N24_the_only_replica_of_a_scaling_group_is_replaced_into_the_domain_that_it_had(manifest: Body, edited: Body) -> None:
    toy = up(manifest)
    before, pods = claimed(toy), pod_uids(toy)
    edit_everything(toy, edited)
    settle(toy)

    assert claimed(toy) == before
    assert pods.isdisjoint(pod_uids(toy)), "the new image has replaced every pod"


@pytest.mark.parametrize("edited", IN_GROUP)
@pytest.mark.parametrize(
    "manifest", [grouped({GROUP: "none"}, {GROUP: "model"}, {GROUP: "model"}), named("rack"), auto(1, gpu(), clique("f"))]
)
def test_N24_all_podcliques_of_a_set_are_made_anew_in_the_domains_that_they_had(manifest: Body, edited: Body) -> None:
    toy = up(manifest)
    before = claimed(toy)
    edit(toy, lambda entry: {**entry, "annotations": dict(edited)})
    remove(toy, *podcliques(toy), *toy.pods())
    settle(toy)

    assert claimed(toy) == before


def test_N24_what_the_podgang_says_is_nothing_against_the_claims_of_podcliques() -> None:
    toy = up(grouped({GROUP: "model"}, {}, {GROUP: "none"}))
    before, record, pods = claimed(toy), recorded(toy), pod_uids(toy)
    forged = {"nvidia": {"m": {"domain": "demo-$(GROVE_PCS_INDEX)-other"}, "beside": {"domain": 7, "annotations": ["x"]}}}
    toy.write(GANG, {"metadata": {"annotations": {KEY: orjson.dumps(forged).decode()}}})
    settle(toy)

    assert (claimed(toy), pod_uids(toy), recorded(toy)) == (before, pods, record)


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"nvidia": 1}', '{"nvidia": {"m": []}}', '{"nvidia": {"m": {"domain": ["x"]}}}'])
def test_N24_an_edited_record_without_a_meaning_counts_as_none(text: str) -> None:
    toy = up(grouped({GROUP: "model"}, {}, {GROUP: "none"}))
    before = claimed(toy)
    toy.write(GANG, {"metadata": {"annotations": {KEY: text}}})
    remove(toy, *podcliques(toy), *toy.pods())
    settle(toy)

    assert claimed(toy) == before


def test_N24_podgangs_of_another_operator_get_the_record_when_the_set_is_edited_and_only_then() -> None:
    toy = up(auto(1, gpu(), clique("f")))
    record, pods = recorded(toy), pod_uids(toy)
    toy.write(GANG, {"metadata": {"annotations": {KEY: None}}})
    before = [operation.key for plan in toy.plans() for operation in plan.operations]
    annotate(toy, None)
    written = {(operation.verb, operation.id) for plan in toy.plans() for operation in plan.operations}
    settle(toy)

    assert before == [] and (Verb.PATCH, GANG) in written
    assert (recorded(toy), pod_uids(toy)) == (record, pods)


@pytest.mark.parametrize("edited", IN_GROUP)
def test_N24_a_podgang_of_another_operator_records_before_podcliques_are_replaced(edited: Body) -> None:
    toy = up(grouped({GROUP: "none"}, {GROUP: "model"}, {GROUP: "model"}))
    before = claimed(toy)
    toy.write(GANG, {"metadata": {"annotations": {KEY: None}}})
    edit_everything(toy, edited)
    settle(toy)

    assert claimed(toy) == before


def test_R14_a_set_that_has_opted_out_has_no_record() -> None:
    assert KEY not in (up(said(podcliqueset("demo", gpu()), OPTED_OUT)).objects[GANG]["metadata"].get("annotations") or {})


def test_N24_the_record_has_each_clique_with_its_annotations_and_its_domain() -> None:
    assert recorded(up(grouped({GROUP: "model"}, {}, {GROUP: "none"}))) == {
        "nvidia": {
            "beside": {"eligible": True},
            "m": {"annotations": {GROUP: "model"}, "domain": "demo-$(GROVE_PCS_INDEX)-model", "eligible": True},
        }
    }


def recorded(toy: Rack) -> Any:
    """What the base PodGang of replica 0 records."""
    return orjson.loads(toy.objects[GANG]["metadata"]["annotations"][KEY])
