"""NVIDIA's fabric, rule by rule: which sets get domains, what is rejected, which domains are requested, and what a pod claims."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace

from engine.ids import Kind
from engine.observed import Live, live
from engine.resource import Body
from providers.fabrics.nvidia.fabric import Nvidia, configured
from resources.admission.admit import admit
from resources.admission.annotation_rules import fabric_warnings
from resources.admission.annotations import written_keys
from resources.admission.request import Act, Request
from resources.base import kinds
from resources.model.domain import domain_requests_of, specified_in
from resources.ports.fabric import DomainRequest
from resources.settings import read
from tests.builders import clique, group, podcliqueset
from tests.laws.toy import CONFIGURATION

AUTO, NAMED, GPU = "grove.io/auto-mnnvl", "nvidia.com/computedomain", "nvidia.com/gpu"
ID = kinds.PODCLIQUESET.id("default", "demo")
MODE = "metadata.annotations.grove.io/auto-mnnvl"
NAME = "spec.template.cliques[0].annotations[nvidia.com/computedomain]"
OFF = (
    "MNNVL is not enabled in the operator configuration. Either enable MNNVL globally or remove the grove.io/auto-mnnvl annotation. "
    "It is enabled by network.autoMNNVLEnabled: true in the file of --config, or without one in the configuration of the installation"
)
OPT_OUT = (
    "automatic MNNVL injection is enabled for this PodCliqueSet replica; explicit ComputeDomain annotations require opting out of "
    'automatic injection (set grove.io/auto-mnnvl: "disabled"); the opt-out is for the whole set: an annotation of it, or of its graph'
)
NO_NAME = "the name of a ComputeDomain must be a DNS-1123 subdomain of at most 253 characters"


def container(name: str = "main", **resources: Any) -> dict[str, Any]:
    """A container that asks for these resources."""
    return {"name": name, "image": "example/model:1", **({"resources": resources} if resources else {})}


GPUS = container(limits={GPU: "8"})


def asking(mode: str | None = None, name: str | None = None, *, gpus: bool = True, **spec: Any) -> dict[str, Any]:
    """A set that says this about domains."""
    annotations = {} if name is None else {NAMED: name}
    worker = clique("worker", pod_spec={"containers": [GPUS if gpus else container()], **spec}, annotations=annotations)
    made = podcliqueset("demo", worker)
    return made if mode is None else {**made, "metadata": {**made["metadata"], "annotations": {AUTO: mode}}}


def created(body: Body, *, auto: bool) -> tuple[str | None, list[str]]:
    """The mode that a new set gets, and what is wrong with it."""
    setup = replace(CONFIGURATION, fabrics=(Nvidia(auto=auto),))
    decision = admit(Request(Act.CREATE, ID, body), setup)
    assert decision.body is not None
    return (decision.body["metadata"].get("annotations") or {}).get(AUTO), [str(issue) for issue in decision.issues]


def updated(old: Body, new: Body, *, auto: bool) -> list[str]:
    """What is wrong with an update."""
    setup = replace(CONFIGURATION, fabrics=(Nvidia(auto=auto),))
    return [str(issue) for issue in admit(Request(Act.UPDATE, ID, new, old), setup).issues]


ENABLED_WHILE_OFF = [f'{MODE}: Invalid value: "enabled": {OFF}']
BOTH = [f'{NAME}: Invalid value: "rack-a": {OPT_OUT}']


@pytest.mark.parametrize(
    ("auto", "mode", "name", "gets", "issues"),
    [
        (False, None, None, None, []),
        (False, None, "rack-a", None, []),
        (False, "disabled", None, "disabled", []),
        (False, "disabled", "rack-a", "disabled", []),
        (False, "enabled", None, "enabled", ENABLED_WHILE_OFF),
        (False, "enabled", "rack-a", "enabled", ENABLED_WHILE_OFF),
        (True, None, None, "enabled", []),
        (True, "enabled", None, "enabled", []),
        (True, "disabled", None, "disabled", []),
        (True, "disabled", "rack-a", "disabled", []),
        (True, None, "rack-a", "enabled", BOTH),
        (True, "enabled", "rack-a", "enabled", BOTH),
    ],
)
def test_configuration_mode_and_name_decide_about_a_new_set(
    auto: bool, mode: str | None, name: str | None, gets: str | None, issues: list[str]
) -> None:
    assert created(asking(mode, name), auto=auto) == (gets, issues)


def test_a_set_without_gpus_gets_no_annotation_and_a_name_is_still_rejected() -> None:
    assert created(asking(gpus=False), auto=True) == (None, [])
    assert created(asking(name="rack-a", gpus=False), auto=True) == (None, BOTH)


@pytest.mark.parametrize("value", ["true", "false", "", "Enabled", "DISABLED", "enabled ", " disabled"])
@pytest.mark.parametrize("auto", [False, True])
def test_any_other_mode_is_rejected(auto: bool, value: str) -> None:
    gets, issues = created(asking(value), auto=auto)

    assert (gets, issues) == (value, [f'{MODE}: Invalid value: "{value}": must be "enabled" or "disabled"'])


@pytest.mark.parametrize(
    ("spec", "enrolled"),
    [
        ({"containers": [container(limits={GPU: 8})]}, True),
        ({"containers": [container(requests={GPU: "1"})]}, True),
        ({"containers": [container("log"), GPUS]}, True),
        ({"containers": [container()], "initContainers": [container("load", limits={GPU: "1"})]}, True),
        ({"containers": [container(limits={GPU: "0"})]}, False),
        ({"containers": [container(limits={GPU: 0}, requests={GPU: "0k"})]}, False),
        ({"containers": [container(limits={"amd.com/gpu": "8"})]}, False),
        ({"containers": [container(limits={"nvidia.com/mig-1g.5gb": "8"})]}, False),
        ({"containers": [container(claims=[{"name": "gpu"}])], "resourceClaims": [{"name": "gpu"}]}, False),
        ({"containers": [container()]}, False),
    ],
)
def test_gpus_are_requested_under_one_key_by_limit_or_request_in_any_container(spec: Body, enrolled: bool) -> None:
    body = podcliqueset("demo", clique("frontend"), clique("worker", pod_spec=dict(spec)))

    assert ((Nvidia(auto=True).with_defaults(body)["metadata"].get("annotations") or {}) == {AUTO: "enabled"}) is enrolled


def test_only_the_annotation_is_added_and_the_body_is_not_modified() -> None:
    body = asking()
    body["metadata"]["annotations"] = {"team": "blue"}
    enrolled = Nvidia(auto=True).with_defaults(body)

    assert enrolled["metadata"]["annotations"] == {"team": "blue", AUTO: "enabled"}
    assert body["metadata"]["annotations"] == {"team": "blue"}
    assert enrolled["spec"] is body["spec"]


@pytest.mark.parametrize("name", ["rack", "rack-a.b", "0", "x" * 253, "rack-$(GROVE_PCS_INDEX)", "$(GROVE_PCS_INDEX)"])
def test_a_name_of_an_object_is_accepted(name: str) -> None:
    assert created(asking(name=name), auto=False) == (None, [])


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "the name of a ComputeDomain must not be empty"),
        ("Rack", NO_NAME),
        (" rack", NO_NAME),
        ("rack/a", NO_NAME),
        ("rack\n", NO_NAME),
        ("x" * 254, NO_NAME),
        ("$(GROVE_PCLQ_INDEX)", NO_NAME),
    ],
)
def test_any_other_name_is_rejected(name: str, fault: str) -> None:
    _, (issue,) = created(asking(name=name), auto=False)

    assert issue.startswith(f"{NAME}: Invalid value: ") and issue.endswith(f": {fault}")


@pytest.mark.parametrize(
    ("auto", "mode", "name", "rejected"), [(True, None, None, True), (False, None, "a", True), (False, None, None, False)]
)
def test_a_claim_with_our_name_is_rejected_where_ours_is_needed(auto: bool, mode: str | None, name: str | None, rejected: bool) -> None:
    body = asking(mode, name, resourceClaims=[{"name": "own"}, {"name": "mnnvl-claim"}])
    path = "spec.template.cliques[0].spec.podSpec.resourceClaims[1].name"
    issue = f'{path}: Invalid value: "mnnvl-claim": the claim name mnnvl-claim is needed for the ComputeDomain'

    assert created(body, auto=auto)[1] == ([issue] if rejected else [])


@pytest.mark.parametrize(
    ("old", "new", "issue"),
    [
        (None, "enabled", f"Forbidden: annotation {AUTO} cannot be added after PodCliqueSet creation"),
        (None, "disabled", f"Forbidden: annotation {AUTO} cannot be added after PodCliqueSet creation"),
        ("enabled", None, f"Forbidden: annotation {AUTO} cannot be removed after PodCliqueSet creation"),
        (
            "enabled",
            "disabled",
            f'Invalid value: "disabled": annotation {AUTO} is immutable and cannot be changed from "enabled" to "disabled"',
        ),
        ("disabled", "true", f'Invalid value: "true": annotation {AUTO} is immutable and cannot be changed from "disabled" to "true"'),
        ("odd", "odd", ""),
        (None, None, ""),
        ("enabled", "enabled", ""),
    ],
)
@pytest.mark.parametrize("auto", [False, True])
def test_the_mode_is_immutable(auto: bool, old: str | None, new: str | None, issue: str) -> None:
    assert updated(asking(old), asking(new), auto=auto) == ([f"{MODE}: {issue}"] if issue else [])


@pytest.mark.parametrize(
    ("old", "new", "issue"),
    [
        (None, "rack-a", f"Forbidden: annotation {NAMED} cannot be added after PodCliqueSet creation"),
        ("rack-a", None, f"Forbidden: annotation {NAMED} cannot be removed after PodCliqueSet creation"),
        (
            "rack-a",
            "rack-b",
            f'Invalid value: "rack-b": annotation {NAMED} is immutable and cannot be changed from "rack-a" to "rack-b"',
        ),
        ("rack-a", "rack-a", ""),
    ],
)
@pytest.mark.parametrize("auto", [False, True])
def test_a_name_is_immutable_whatever_the_configuration(auto: bool, old: str | None, new: str | None, issue: str) -> None:
    assert updated(asking(name=old), asking(name=new), auto=auto) == ([f"{NAME}: {issue}"] if issue else [])


def test_cliques_are_matched_by_name_and_may_be_reordered() -> None:
    one, other = clique("a", annotations={NAMED: "rack-a"}), clique("b", annotations={NAMED: "rack-b"})
    swapped = podcliqueset("demo", clique("b", annotations={NAMED: "rack-b"}), clique("a", annotations={NAMED: "rack-c"}))

    assert updated(podcliqueset("demo", one, other), podcliqueset("demo", other, one), auto=True) == []
    assert updated(podcliqueset("demo", one, other), swapped, auto=True) == [
        f'spec.template.cliques[1].annotations[{NAMED}]: Invalid value: "rack-c": annotation {NAMED} is immutable and cannot be '
        'changed from "rack-a" to "rack-c"'
    ]


def test_an_update_of_an_existing_set_with_gpus_adds_no_annotation() -> None:
    old, new = asking(), {**asking(), "spec": {**asking()["spec"], "replicas": 3}}
    decision = admit(Request(Act.UPDATE, ID, new, old), CONFIGURATION)

    assert decision.issues == ()
    assert AUTO not in ((decision.body or {})["metadata"].get("annotations") or {})


def test_the_annotation_in_the_wrong_place_is_a_warning() -> None:
    body = podcliqueset("demo", clique("worker"), groups=(group("pool", "worker", annotations={NAMED: "x"}),))
    body["metadata"]["annotations"] = {NAMED: "x"}

    assert list(fabric_warnings(written_keys(body), CONFIGURATION)) == [
        f"metadata.annotations[{NAMED}] has no effect: it is read from spec.template.cliques[].annotations",
        f"spec.template.podCliqueScalingGroups[0].annotations[{NAMED}] has no effect: it is read from spec.template.cliques[].annotations",
    ]


def domain_requests(body: Body) -> tuple[DomainRequest, ...]:
    """The domains that a set asks for."""
    return domain_requests_of(Nvidia(), "demo", specified_in(body))


def test_a_set_with_automatic_domains_requests_one_for_each_replica_for_its_cliques_with_gpus() -> None:
    body = podcliqueset("demo", clique("a", pod_spec={"containers": [GPUS]}), clique("b"))
    body["metadata"]["annotations"] = {AUTO: "enabled"}

    assert domain_requests(body) == (DomainRequest("demo-$(GROVE_PCS_INDEX)", frozenset({"a"}), shared=False),)


def test_each_name_requests_one_domain_for_all_cliques_with_it_gpus_or_not() -> None:
    cliques = clique("a", annotations={NAMED: "x"}), clique("b", annotations={NAMED: "y"}), clique("c", annotations={NAMED: "x"})
    body = podcliqueset("demo", *cliques, clique("d", pod_spec={"containers": [GPUS]}))

    assert domain_requests(body) == (
        DomainRequest("x", frozenset({"a", "c"}), shared=True),
        DomainRequest("y", frozenset({"b"}), shared=True),
    )
    assert domain_requests(asking("disabled")) == domain_requests(asking()) == ()


@pytest.mark.parametrize(("mode", "inherited"), [("enabled", {AUTO: "enabled"}), ("disabled", {}), (None, {})])
def test_scaling_groups_inherit_only_an_enabled_annotation(mode: str | None, inherited: Body) -> None:
    assert Nvidia().group_annotations({AUTO: mode, "team": "blue"} if mode else {"team": "blue"}) == inherited


def used(spec: Body) -> dict[str, list[str]]:
    """Container -> the claims that it uses."""
    listed = [*spec.get("initContainers", ()), *spec["containers"]]
    return {one["name"]: [claim["name"] for claim in (one.get("resources") or {}).get("claims") or ()] for one in listed}


@pytest.mark.parametrize(
    ("spec", "claims"),
    [
        ({"containers": [GPUS, container("log")]}, {"main": ["mnnvl-claim"], "log": []}),
        (
            {"containers": [container()], "initContainers": [container("load", limits={GPU: 1}), container("wait")]},
            {"load": ["mnnvl-claim"], "wait": [], "main": []},
        ),
        (
            {"containers": [container(), container("log")], "initContainers": [container("wait")]},
            {"wait": [], "main": ["mnnvl-claim"], "log": ["mnnvl-claim"]},
        ),
        (
            {"containers": [container(limits={GPU: 1}, claims=[{"name": "own"}])], "resourceClaims": [{"name": "own"}]},
            {"main": ["own", "mnnvl-claim"]},
        ),
    ],
)
def test_containers_with_gpus_use_the_claim_and_without_any_all_containers_do(spec: Body, claims: dict[str, list[str]]) -> None:
    before = repr(spec)
    decorate_pod = Nvidia().decorate_pod(spec, "rack-a")

    assert used(decorate_pod) == claims
    assert decorate_pod["resourceClaims"] == [
        *spec.get("resourceClaims", ()),
        {"name": "mnnvl-claim", "resourceClaimTemplateName": "rack-a"},
    ]
    assert repr(spec) == before


def there(kind: Kind, **body: Any) -> Live:
    """An object that is there."""
    metadata = {"name": "x", "namespace": "default", "uid": "uid-1", "resourceVersion": "1", **body.pop("metadata", {})}
    return live({"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **body})


def test_a_domain_is_elastic_and_its_template_has_its_name() -> None:
    fabric = Nvidia()

    assert fabric.domain_spec("rack-a") == {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "rack-a"}}}
    assert fabric.template_name(None, "rack-a") == "rack-a"
    assert fabric.component(DomainRequest("x", frozenset(), shared=True)) == "pcs-named-computedomain"
    assert fabric.component(DomainRequest("x", frozenset(), shared=False)) == "pcs-computedomain"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"channel": {"resourceClaimTemplate": {"name": "theirs"}}}, "theirs"),
        ({"channel": {"resourceClaimTemplate": {"name": 7}}}, "rack-a"),
        ({"channel": "odd"}, "rack-a"),
        ({}, "rack-a"),
    ],
)
def test_the_domain_of_a_user_names_its_template(spec: Body, name: str) -> None:
    assert Nvidia().template_name(there(Nvidia.kind, spec=spec), "rack-a") == name


LABEL = "resource.nvidia.com/computeDomain"


@pytest.mark.parametrize(
    ("labels", "fault"),
    [
        ({LABEL: "uid-1", f"{LABEL}Target": "Workload"}, ""),
        ({LABEL: "uid-1"}, ""),
        ({LABEL: "uid-1", f"{LABEL}Target": "Daemon"}, "is for the driver's own daemons"),
        ({LABEL: "uid-0", f"{LABEL}Target": "Workload"}, "belongs to another ComputeDomain"),
        ({}, "was not created by the DRA driver"),
    ],
)
def test_a_template_can_be_used_if_it_has_the_uid_of_the_domain(labels: Body, fault: str) -> None:
    template = there(kinds.RESOURCE_CLAIM_TEMPLATE, metadata={"labels": labels, "uid": "uid-2"})

    assert Nvidia().template_blocker(there(Nvidia.kind), template) == fault


@pytest.mark.parametrize(
    ("config", "uid"),
    [
        ([{"opaque": {"driver": "compute-domain.nvidia.com", "parameters": {"domainID": "uid-1"}}}], "uid-1"),
        ([{"opaque": {"driver": "gpu.nvidia.com", "parameters": {"domainID": "uid-1"}}}], ""),
        ([{"opaque": {"driver": "compute-domain.nvidia.com", "parameters": "odd"}}], ""),
        (["odd", {"opaque": 7}], ""),
        ("odd", ""),
    ],
)
def test_a_claim_refers_to_the_domain_that_the_driver_wrote_into_it(config: Any, uid: str) -> None:
    assert Nvidia().domain_uid(there(kinds.RESOURCE_CLAIM, spec={"devices": {"config": config}})) == uid


def test_the_configuration_switches_automatic_domains_on() -> None:
    on, _ = read({"network": {"autoMNNVLEnabled": True}})
    off, _ = read({})

    assert (configured(on).auto, configured(off).auto) == (True, False)


ODD = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=8),
    lambda below: some.lists(below, max_size=3) | some.dictionaries(some.sampled_from([AUTO, NAMED, GPU, "name", "x"]), below, max_size=3),
    max_leaves=8,
)


@given(annotations=ODD, cliques=ODD, groups=ODD, spec=ODD)
def test_malformed_sets_raise_no_error(annotations: Any, cliques: Any, groups: Any, spec: Any) -> None:
    entry = {"name": "worker", "annotations": annotations, "spec": {"podSpec": spec}}
    fabric = Nvidia(auto=True)
    for listed in (cliques, [entry, cliques]):
        body = {"metadata": {"annotations": annotations}, "spec": {"template": {"cliques": listed, "podCliqueScalingGroups": groups}}}
        enrolled = fabric.with_defaults(body)
        empty, old, new = specified_in({}), specified_in(body), specified_in(enrolled)
        found = [*fabric.creation_issues(new), *fabric.update_issues(old, new), *fabric.update_issues(empty, old)]

        assert all(str(issue).isprintable() for issue in found)
        assert all(isinstance(warning, str) for warning in fabric_warnings(written_keys(body), CONFIGURATION))
