"""N26: groups, as in current Grove: a domain for the cliques of a replica that are in one group (docs/behaviour)."""

from itertools import product
from typing import Any

import pytest
from msgspec.structs import replace

from engine.errors import Forbidden
from engine.resource import Body
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import AUTO, GROUP, NAMED
from resources.domains.requests import requested_by_set
from resources.domains.status import domain_statuses
from resources.model.domain import domain_requests_of, specified_in
from tests.builders import clique, group, podcliqueset
from tests.laws.fabric_worlds import scale, settle
from tests.laws.rack import Rack
from tests.laws.toy import CONFIGURATION
from tests.mnnvl.asking import annotations, ask, claimed, complaints, deferred, events, plan_of, root, uids, up
from tests.mnnvl.sets import OPTED_OUT, gpu, gpus, said

OFF = (
    "MNNVL is not enabled in the operator configuration. Either enable MNNVL globally or remove the grove.io/mnnvl-group annotation. "
    "It is enabled by network.autoMNNVLEnabled: true in the file of --config, or without one in the configuration of the installation"
)
LAYERS = ("metadata", "spec.template.cliques[0]", "spec.template.podCliqueScalingGroups[0]")
CLASH = "ComputeDomain default/a-0-1-x already exists but is not controlled by PodCliqueSet default/a-0"


def in_group(name: str | None) -> dict[str, str]:
    """The annotation with this value, or none."""
    return {} if name is None else {GROUP: name}


def grouped(of_set: str | None, *cliques: dict[str, Any], name: str = "demo", replicas: int = 1, **more: Any) -> Body:
    """A set with this group and these cliques."""
    return said(podcliqueset(name, *(cliques or (gpu(),)), replicas=replicas, **more), in_group(of_set))


def layered(values: dict[str, str | None], cliques: tuple[str, ...] = ("worker",)) -> Body:
    """A set whose first clique is in a scaling group, with an annotation in each layer that `values` names."""
    of_set, of_clique, of_group = (in_group(values.get(layer)) for layer in LAYERS)
    members = [gpu(name, annotations=of_clique if name == "worker" else None) for name in cliques]
    return said(podcliqueset("demo", *members, groups=(group("pool", "worker", annotations=of_group),)), of_set)


def test_N26_the_cliques_of_a_replica_in_one_group_have_a_domain() -> None:
    toy = up(grouped("x", gpu("a"), gpu("b", annotations=in_group("y")), clique("cpu"), replicas=2))

    assert claimed(toy) == {
        f"demo-{index}-{name}": domains
        for index, (name, domains) in product(range(2), (("a", ["demo-{}-x"]), ("b", ["demo-{}-y"]), ("cpu", [])))
        for domains in [[domain.format(index) for domain in domains]]
    }
    assert list(toy.domains()) == ["demo-0-x", "demo-0-y", "demo-1-x", "demo-1-y"]
    assert toy.domains()["demo-1-y"]["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": "demo",
        "app.kubernetes.io/name": "demo-1-y",
        "app.kubernetes.io/component": "pcs-computedomain",
        "grove.io/podcliqueset-replica-index": "1",
        "grove.io/mnnvl-group": "y",
    }
    assert [body["kind"] for body in toy.domains()["demo-0-x"]["metadata"]["ownerReferences"] if body["controller"]] == ["PodCliqueSet"]


@pytest.mark.parametrize(
    ("of_set", "of_group", "of_clique", "domain"),
    [
        ("my-group", "none", None, None),
        ("my-group", "none", "my-group", "my-group"),
        ("my-group", None, None, "my-group"),
        ("my-group", None, "none", None),
        ("my-group", "other", None, "other"),
        ("none", "other", None, "other"),
        (None, "other", "third", "third"),
        (None, None, "third", "third"),
        ("none", None, None, None),
    ],
)
def test_N26_the_clique_then_its_scaling_group_then_the_set_decides(
    of_set: str | None, of_group: str | None, of_clique: str | None, domain: str | None
) -> None:
    toy = up(layered({"metadata": of_set, LAYERS[1]: of_clique, LAYERS[2]: of_group}))

    assert claimed(toy) == {"demo-0-pool-0-worker": [f"demo-0-{domain}"] if domain else []}
    assert list(toy.domains()) == ([f"demo-0-{domain}"] if domain else [])


@pytest.mark.parametrize(
    ("of_set", "of_group", "expected"), [("x", None, "x"), ("none", None, "none"), ("x", "none", "none"), (None, "y", "y")]
)
def test_N26_scaling_groups_without_the_annotation_get_that_of_the_set(of_set: str | None, of_group: str | None, expected: str) -> None:
    toy = up(layered({"metadata": of_set, LAYERS[2]: of_group}))
    (pool,) = [body for id, body in toy.objects.items() if id.kind == "PodCliqueScalingGroup"]

    assert pool["metadata"]["annotations"] == {GROUP: expected}


def test_N26_a_group_without_gpus_has_no_domain() -> None:
    toy = up(grouped("x", clique("cpu"), clique("other", annotations=in_group("y"))))

    assert (toy.domains(), claimed(toy)) == ({}, {"demo-0-cpu": [], "demo-0-other": []})


@pytest.mark.parametrize("place", LAYERS)
@pytest.mark.parametrize(
    ("value", "flag", "message"),
    [
        ("", True, "mnnvl-group value must not be empty"),
        ("A.b", True, 'mnnvl-group value "A.b" is not a valid DNS-1123 label: a lowercase RFC 1123 label must consist of'),
        ("a.b", True, 'mnnvl-group value "a.b" is not a valid DNS-1123 label: must not contain dots'),
        ("a" * 64, True, f'mnnvl-group value "{"a" * 64}" is not a valid DNS-1123 label: must be no more than 63 characters'),
        ("x", False, OFF),
    ],
)
def test_N26_an_invalid_group_is_rejected_in_each_place(place: str, value: str, flag: bool, message: str) -> None:
    (complaint,) = complaints(layered({place: value}), flag=flag)

    assert complaint.startswith(f'{place}.annotations.grove.io/mnnvl-group: Invalid value: "{value}": {message}')


@pytest.mark.parametrize("place", LAYERS)
@pytest.mark.parametrize("flag", [True, False])
def test_N26_none_is_valid_in_each_place_whatever_the_configuration(place: str, flag: bool) -> None:
    assert complaints(layered({place: "none"}), flag=flag) == []


def test_N26_the_name_of_the_domain_must_be_valid() -> None:
    fits, too_long = "s" * 186, "s" * 188
    (complaint,) = (each for each in complaints(grouped("g" * 63, gpu("w"), name=too_long)) if each.startswith("metadata.annotations"))

    assert complaint.endswith("the ComputeDomain of the group would have an invalid name: must be no more than 253 characters")
    assert not any("ComputeDomain" in each for each in complaints(grouped("g" * 63, gpu("w"), name=fits)))


@pytest.mark.parametrize("place", LAYERS)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (None, "x", "Forbidden: annotation grove.io/mnnvl-group cannot be added after creation"),
        ("x", None, "Forbidden: annotation grove.io/mnnvl-group cannot be removed after creation"),
        ("x", "none", 'Invalid value: "none": annotation grove.io/mnnvl-group is immutable and cannot be changed from "x" to "none"'),
        ("x", "x", None),
    ],
)
def test_N26_the_annotation_is_immutable_in_each_place(place: str, old: str | None, new: str | None, message: str | None) -> None:
    expected = [f"{place}.annotations.grove.io/mnnvl-group: {message}"] if message else []

    assert complaints(layered({place: new}), old=layered({place: old})) == expected
    assert complaints(layered({place: new}), old=layered({place: old}), flag=False) == expected


def test_N26_cliques_and_scaling_groups_are_matched_by_name_when_a_set_is_changed() -> None:
    def with_pools(*names: str, annotated: str) -> Body:
        cliques = [gpu(name, annotations=in_group(name) if name == annotated else None) for name in names]
        return podcliqueset("demo", *cliques, groups=tuple(group(f"of-{name}", name, annotations=in_group(f"g{name}")) for name in names))

    message = "cannot be added after creation"
    old = with_pools("a", "b", annotated="a")

    assert complaints(with_pools("b", "a", annotated="a"), old=old) == []
    (complaint, _) = complaints(with_pools("a", "b", annotated="b"), old=old)
    assert complaint.startswith("spec.template.cliques[0]")
    assert [each for each in complaints(with_pools("b", "a", annotated="b"), old=old) if message in each] == [
        f"spec.template.cliques[0].annotations.grove.io/mnnvl-group: Forbidden: annotation grove.io/mnnvl-group {message}"
    ]


@pytest.mark.parametrize("place", LAYERS)
@pytest.mark.parametrize("value", ["x", "none"])
def test_N26_a_set_with_the_annotation_anywhere_gets_no_automatic_domains(place: str, value: str) -> None:
    manifest = layered({place: value}, ("worker", "another"))

    assert AUTO not in annotations(manifest)
    assert "demo-0" not in up(manifest).domains()


@pytest.mark.parametrize(
    ("mode", "value", "is_allowed"),
    [("enabled", "x", False), ("enabled", "none", False), ("disabled", "x", False), ("disabled", "none", True)],
)
@pytest.mark.parametrize("place", LAYERS)
def test_N26_annotations_that_contradict_each_other_are_rejected(mode: str, value: str, is_allowed: bool, place: str) -> None:
    manifest = layered({place: value})
    manifest["metadata"]["annotations"] = {**manifest["metadata"]["annotations"], AUTO: mode}
    found = complaints(manifest)

    assert (found == []) == is_allowed
    assert all(each.startswith("metadata.annotations.grove.io/auto-mnnvl: Forbidden: contradictory MNNVL annotations: ") for each in found)


@pytest.mark.parametrize("flag", [True, False])
def test_N26_named_domains_are_for_cliques_that_are_in_no_group(flag: bool) -> None:
    beside = grouped(None, gpu("a", annotations={**in_group("none"), NAMED: "rack"}), gpu("b", annotations={NAMED: "rack"}))
    within = grouped("none", gpu("a", annotations={**in_group("x"), NAMED: "rack"}))
    named = "spec.template.cliques[0].annotations[nvidia.com/computedomain]"

    assert complaints(beside, flag=flag) == []
    assert claimed(up(beside, flag=flag)) == {"demo-0-a": ["rack"], "demo-0-b": ["rack"]}
    assert f'{named}: Invalid value: "rack": contradictory MNNVL annotations: the clique is in the group "x"' in "".join(
        complaints(within, flag=flag)
    )


@pytest.mark.parametrize(("name", "is_allowed"), [("demo-0-x", False), ("demo-$(GROVE_PCS_INDEX)-x", False), ("demo-0-y", True)])
def test_N26_a_name_must_not_be_that_of_the_domain_of_a_group(name: str, is_allowed: bool) -> None:
    found = complaints(grouped("x", gpu("a"), gpu("b", annotations={**in_group("none"), NAMED: name})))

    assert (found == []) == is_allowed
    assert all("a ComputeDomain of this name belongs to a group" in each for each in found)


def test_N26_a_stored_set_that_contradicts_itself_keeps_the_domains_that_it_had() -> None:
    body = podcliqueset("demo", *(gpu(name, annotations={**in_group("x"), **more}) for name, more in (("a", {}), ("b", {NAMED: "rack"}))))

    def names(mode: dict[str, str]) -> dict[str, set[str]]:
        return {request.name: set(request.cliques) for request in domain_requests_of(Nvidia(), "demo", specified_in(said(body, mode)))}

    assert names({AUTO: "enabled"}) == {"demo-$(GROVE_PCS_INDEX)": {"a", "b"}}
    assert names(OPTED_OUT) == {"rack": {"b"}}
    assert names({}) == {"rack": {"b"}, "demo-$(GROVE_PCS_INDEX)-x": {"a"}}


def test_N26_a_claim_of_the_name_of_ours_or_a_second_channel_is_rejected() -> None:
    def with_claim(name: str, template: str) -> Body:
        claims = [{"name": name, "resourceClaimTemplateName": template}]
        return grouped("x", gpu("a", pod_spec={**gpus(), "resourceClaims": claims}))

    assert "mnnvl-claim" in "".join(complaints(with_claim("mnnvl-claim", "mine")))
    assert "a node has one channel" in "".join(complaints(with_claim("extra", "demo-0-x")))
    assert complaints(with_claim("extra", "demo-0-z")) == []


def test_N26_sets_whose_domains_have_the_same_name_never_share_one() -> None:
    toy = up(grouped("1-x", name="a"))
    toy.put(grouped("x", name="a-0", replicas=2))
    settle(toy)
    plan = plan_of(toy, "a-0")

    assert {name: body["metadata"]["ownerReferences"][0]["name"] for name, body in toy.domains().items()} == {
        "a-0-1-x": "a",
        "a-0-0-x": "a-0",
    }
    assert claimed(toy) == {"a-0-worker": ["a-0-1-x"], "a-0-0-worker": ["a-0-0-x"]}
    assert [(alarm.reason, alarm.text) for alarm in plan.alarms] == [
        ("ComputeDomainFailed", f"Failed to create ComputeDomain a-0-1-x for replica 1: {CLASH}")
    ]
    assert CLASH in deferred(plan).values()


def test_N26_events_name_the_domain_and_its_replica() -> None:
    toy = Rack()
    toy.put(grouped("x"))
    (plan,) = toy.plans()

    assert events(plan) == [(False, "ComputeDomainCreated", "ComputeDomain demo-0-x created")]
    assert events(plan, Forbidden("no quota")) == [
        (True, "ComputeDomainFailed", "Failed to create ComputeDomain demo-0-x for replica 0: no quota")
    ]


def test_N26_the_domains_follow_the_replicas_of_the_set() -> None:
    toy = up(grouped("x", gpu("a"), gpu("b", annotations=in_group("y")), replicas=1))
    before = uids(toy)
    scale(toy, root(), 2)
    settle(toy)
    assert before.items() <= uids(toy).items() and list(toy.domains()) == ["demo-0-x", "demo-0-y", "demo-1-x", "demo-1-y"]
    scale(toy, root(), 1)
    settle(toy)
    assert uids(toy) == before
    toy.delete(root())
    settle(toy)

    assert toy.objects == {}


def test_N26_domains_stay_when_the_feature_is_turned_off() -> None:
    toy = up(grouped("x"))
    toy.configuration = replace(CONFIGURATION, fabrics=(Nvidia(),))
    scale(toy, root(), 2)
    settle(toy)

    assert list(toy.domains()) == ["demo-0-x", "demo-1-x"]


def test_N26_reports_list_each_domain_with_its_pods() -> None:
    manifest = grouped("x", gpu("a", 2), gpu("b", 3, annotations=in_group("y")), replicas=2)
    toy = up(manifest)
    (observed,) = toy.world().roots
    statuses = domain_statuses(observed, plan_of(toy), toy.configuration)

    assert [(domain.id.name, domain.index, domain.pods) for domain in requested_by_set(root(), manifest, Nvidia())] == [
        ("demo-0-x", 0, 2),
        ("demo-1-x", 1, 2),
        ("demo-0-y", 0, 3),
        ("demo-1-y", 1, 3),
    ]
    assert {status.id.name: (status.replica, dict(status.pods or {})) for status in statuses} == {
        f"demo-{index}-{name}": (index, {f"demo-{index}-{of}": pods})
        for index, (name, of, pods) in product(range(2), (("x", "a", 2), ("y", "b", 3)))
    }


def test_N26_the_decision_reports_all_places_at_once() -> None:
    decision = ask(layered({"metadata": "", LAYERS[1]: "A", LAYERS[2]: "b."}))

    assert [str(issue).split(".annotations")[0] for issue in decision.issues] == list(LAYERS)
