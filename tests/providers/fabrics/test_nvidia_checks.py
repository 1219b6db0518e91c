"""Every check of an installation for ComputeDomains: what makes it good, bad and impossible."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from engine.ids import Kind
from engine.observed import Live, live
from providers.fabrics import nvidia_checks as asked
from providers.fabrics.nvidia import Nvidia
from providers.fabrics.nvidia_words import AUTO, CHANNEL_CLASS, COMPUTE_DOMAIN, FINALIZER, NAMED
from resources.base import kinds
from resources.ports.checks import Check, Level, Outcome
from resources.ports.inspection import Installation
from resources.ports.queries import Query, QueryResult, QueryResults, ServedApis
from tests.builders import clique, podcliqueset
from tests.providers.fabrics.objects import claim, definition, deployment, domain, inventory, made, node, template
from tests.resources.manifests import JSON

GPUS = {"containers": [{"name": "main", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
CONTROLLER = deployment("controller", dra_driver_nvidia_gpu_component="controller")
CRD = "CRD computedomains.resource.nvidia.com"
SCHEMA = "ComputeDomain: spec.channel.resourceClaimTemplate.name"
NUMBER = "ComputeDomain: numNodes"
API = "API resource.k8s.io"
CLASS = "DeviceClass compute-domain-default-channel.nvidia.com"
SLICES = "ResourceSlices of compute-domain.nvidia.com"


def demo(replicas: int = 1, pods: int = 1, name: str = "demo", **more: Any) -> Live:
    """A set that is in domains of its own."""
    body = podcliqueset(name, clique("worker", pods, pod_spec={**GPUS, **more}), replicas=replicas)
    return live({**body, "metadata": {**body["metadata"], "uid": f"uid-{name}", "annotations": {AUTO: "enabled"}}})


SOUND: Mapping[Query, tuple[Live, ...]] = {
    asked.CRD: (definition(),),
    asked.CLIQUES: (made("apiextensions.k8s.io/v1", "CustomResourceDefinition", "computedomaincliques.resource.nvidia.com"),),
    asked.CLASS: (made("resource.k8s.io/v1", "DeviceClass", CHANNEL_CLASS),),
    asked.SLICES: (inventory("n1"), inventory("n2")),
    asked.DEPLOYMENTS: (CONTROLLER,),
    asked.DOMAINS: (domain(ownerReferences=[{"kind": "PodCliqueSet", "name": "demo", "uid": "uid-demo", "controller": True}]),),
    asked.TEMPLATES: (template(),),
    asked.CLAIMS: (),
    asked.LABELLED: (node("n1", "uid-demo-0"),),
    asked.ISLANDS: (node("n1", clique="a.1"), node("n2", clique="a.2")),
}
SERVED = (COMPUTE_DOMAIN, kinds.RESOURCE_CLAIM_TEMPLATE)


def offer(*served: Kind, holes: Mapping[str, str] | None = None) -> ServedApis:
    """What a server serves."""
    return ServedApis(frozenset((kind.group, kind.version, kind.plural) for kind in served), holes or {})


def site(
    over: Mapping[Query, Iterable[Live] | str] | None = None,
    offered: ServedApis | None = None,
    sets: tuple[Live, ...] | None = (demo(),),
) -> Installation:
    """A sound installation, but for what is laid over it: objects, or why they cannot be seen."""
    told = {question: QueryResult(lives) for question, lives in SOUND.items()}
    for question, shown in (over or {}).items():
        told[question] = QueryResult(fault=shown) if isinstance(shown, str) else QueryResult(tuple(shown))
    return Installation(offered or offer(*SERVED), QueryResults(told), sets)


def found(judged: Installation, *, auto: bool = True) -> dict[str, Check]:
    """The checks by what they are about."""
    return {check.what: check for check in Nvidia(auto=auto).checks(judged)}


def test_a_sound_installation_passes_every_check() -> None:
    checks = found(site())

    assert {check.outcome for check in checks.values()} == {Outcome.GOOD}
    assert [what for what, check in checks.items() if check.level is Level.HARD] == [CRD, SCHEMA, API]
    assert checks[NUMBER].found == "numNodes optional, default 0; allocationMode known: driver 0.4 or later"
    assert checks[SLICES].found == "2 nodes have channel-0"
    assert checks["image of the DRA driver"].found == "example/driver:v0.4.0"


OLD = replace(kinds.RESOURCE_CLAIM_TEMPLATE, version="v1beta1")
NEITHER = replace(COMPUTE_DOMAIN, version="v1alpha1")
TERMINATING = domain("left", deletionTimestamp="2026-01-01T01:00:00Z", finalizers=[FINALIZER])
KAI = {"image": "ghcr.io/nvidia/kai-scheduler/scheduler:v1"}
BAD = [
    (CRD, site({asked.CRD: ()}, offer(kinds.RESOURCE_CLAIM_TEMPLATE)), Level.HARD, "is not installed"),
    (CRD, site({asked.CRD: [definition(served="v1alpha1")]}, offer(NEITHER)), Level.HARD, "serves v1alpha1, not v1beta1"),
    (CRD, site({asked.CRD: [definition(ok=False)]}, offer(OLD)), Level.HARD, "is there, and not established yet"),
    (SCHEMA, site({asked.CRD: [definition(name=False)]}), Level.HARD, "is not in the schema of the CRD"),
    (NUMBER, site({asked.CRD: [definition(number="required", mode=False)]}), Level.WARNING, "driver 25.3: numNodes 0 makes its pods run"),
    (API, site(offered=offer(COMPUTE_DOMAIN)), Level.HARD, "is not served"),
    (CLASS, site({asked.CLASS: ()}), Level.WARNING, "there is none"),
    (SLICES, site({asked.SLICES: ()}), Level.WARNING, "there is none"),
    (SLICES, site({asked.SLICES: [inventory("n1", "daemon-0")]}), Level.WARNING, "there is none"),
    ("controller of the DRA driver", site({asked.DEPLOYMENTS: ()}), Level.WARNING, "there is none"),
    (
        "controller of the DRA driver",
        site({asked.DEPLOYMENTS: [deployment("old", ready=0, nvidia_dra_driver_gpu_component="controller")]}),
        Level.WARNING,
        "Deployment system/old: 0 of 1 ready",
    ),
    ("names of planned domains", site(sets=(demo(name="x" * 62),)), Level.WARNING, "is longer than 63 characters: no label can hold it"),
    ("names of planned domains", site(sets=(demo(name="X"),)), Level.WARNING, "X-0: "),
    (
        "names of their claim templates",
        site({asked.TEMPLATES: [template(uid="")]}),
        Level.WARNING,
        "taken by templates that are not of these domains: default/demo-0",
    ),
    ("names of their claim templates", site({asked.TEMPLATES: [template(uid="other")]}), Level.WARNING, "default/demo-0"),
    (
        "nodes left behind",
        site({asked.LABELLED: [node("n1", "uid-demo-0"), node("n2", "dead")]}),
        Level.WARNING,
        "labelled for a domain that does not exist: n2",
    ),
    (
        "domains that wait for us",
        site({asked.DOMAINS: [TERMINATING]}),
        Level.WARNING,
        "Terminating, and held by our finalizer alone: default/left",
    ),
    ("domains without a workload", site(sets=()), Level.WARNING, "made for workloads that are gone: default/demo-0"),
    (
        "KAI scheduler",
        site({asked.DEPLOYMENTS: [CONTROLLER, deployment("kai", KAI)]}),
        Level.WARNING,
        "runs without --feature-gates=DynamicResourceAllocation=true",
    ),
    (
        "KAI binder",
        site({asked.DEPLOYMENTS: [CONTROLLER, deployment("kai", {"image": "kai-scheduler/binder@sha256:0", "args": ["--x"]})]}),
        Level.WARNING,
        "runs without",
    ),
    (
        "room for planned domains",
        site(sets=(demo(2, 2),)),
        Level.WARNING,
        "default/demo: its pods in ComputeDomains need 4 nodes, each of which takes one such pod: 2 of 2 can be had",
    ),
    ("domains in one NVLink clique", site(sets=(demo(3),)), Level.WARNING, "3 domains for 2 NVLink cliques: some will share one"),
]


@pytest.mark.parametrize(("what", "judged", "level", "told"), BAD, ids=[f"{row[0]}: {row[3]}"[:70] for row in BAD])
def test_what_is_wrong_is_told_with_what_to_do(what: str, judged: Installation, level: Level, told: str) -> None:
    check = found(judged)[what]

    assert (check.level, check.outcome) == (level, Outcome.BAD)
    assert told in check.found and check.remedy


@pytest.mark.parametrize("args", [[f"--feature-gates={asked.GATE}"], ["--feature-gates", f"A=b,{asked.GATE}"]])
def test_kai_that_gives_out_devices_is_well(args: list[str]) -> None:
    assert found(site({asked.DEPLOYMENTS: [deployment("kai", {**KAI, "args": args})]}))["KAI scheduler"].outcome is Outcome.GOOD


@pytest.mark.parametrize(
    ("crd", "told"),
    [
        (definition(number="required"), "numNodes required; allocationMode known: driver 25.8 to 25.12"),
        (definition(), "numNodes optional, default 0; allocationMode known: driver 0.4 or later"),
    ],
)
def test_the_definition_tells_which_driver_is_there(crd: Live, told: str) -> None:
    check = found(site({asked.CRD: [crd]}))[NUMBER]

    assert (check.level, check.outcome, check.found) == (Level.INFO, Outcome.GOOD, told)


def test_a_driver_from_before_cliques_is_told() -> None:
    assert found(site({asked.CLIQUES: ()}))["ComputeDomainCliques"].found == "not there: the driver is older than 25.12, or none"


UNSEEN = [
    (asked.CRD, SCHEMA),
    (asked.CRD, NUMBER),
    (asked.CLASS, CLASS),
    (asked.SLICES, SLICES),
    (asked.DEPLOYMENTS, "controller of the DRA driver"),
    (asked.CLIQUES, "ComputeDomainCliques"),
    (asked.TEMPLATES, "names of their claim templates"),
    (asked.LABELLED, "nodes left behind"),
    (asked.DOMAINS, "names of their claim templates"),
    (asked.DOMAINS, "nodes left behind"),
    (asked.DOMAINS, "domains that wait for us"),
    (asked.CLAIMS, "room for planned domains"),
    (asked.SLICES, "room for planned domains"),
    (asked.ISLANDS, "domains in one NVLink clique"),
]


@pytest.mark.parametrize(("question", "what"), UNSEEN, ids=[f"{question.kind.plural}: {what}" for question, what in UNSEEN])
def test_what_may_not_be_seen_is_not_judged(question: Query, what: str) -> None:
    check = found(site({question: "pods is forbidden"}))[what]

    assert check.outcome is Outcome.UNKNOWN and check.found.startswith("cannot be judged: ")


def test_sets_that_cannot_be_seen_leave_domains_unjudged() -> None:
    assert found(site(sets=None))["domains without a workload"].outcome is Outcome.UNKNOWN


def test_a_group_that_does_not_answer_is_not_called_missing() -> None:
    silent = offer(kinds.RESOURCE_CLAIM_TEMPLATE, holes={COMPUTE_DOMAIN.api_version: "silent"})
    check = found(site({asked.CRD: "forbidden"}, silent))[CRD]

    assert (check.level, check.outcome, check.found) == (Level.HARD, Outcome.UNKNOWN, "cannot be judged: silent")


def test_without_mnnvl_nothing_is_hard_and_without_a_driver_nothing_is_even_a_warning() -> None:
    bare = Installation(offer(), QueryResults({question: QueryResult() for question in SOUND}), ())
    asking = podcliqueset("named", clique("w", pod_spec=GPUS, annotations={NAMED: "rack"}))
    wanting = Installation(offer(), QueryResults(), (live(asking),))

    assert {check.level for check in found(bare, auto=False).values()} == {Level.INFO}
    assert found(wanting, auto=False)[CRD].level is Level.WARNING
    assert found(bare)[CRD].level is Level.HARD
    assert not any(check.level is Level.HARD for check in found(site(), auto=False).values())


def test_a_cluster_of_which_nothing_can_be_seen_is_judged_in_no_way() -> None:
    blind = Installation(ServedApis(fault="failed to discover API resources: no"), QueryResults(), None)

    assert {check.outcome for check in found(blind).values()} == {Outcome.UNKNOWN}


def test_places_that_others_have_are_not_to_be_had() -> None:
    crowd = site({asked.CLAIMS: [claim("p", "n1", "uid-demo-0"), claim("q", "n2", "other")]}, sets=(demo(1, 2),))

    assert "1 of 2 can be had" in found(crowd)["room for planned domains"].found


@given(JSON)
def test_whatever_the_objects_are_the_checks_are_made(junk: Any) -> None:
    meta = {"name": "x", "uid": "u"}
    odd = [live({"apiVersion": "v1", "kind": "X", "metadata": meta, "spec": junk, "status": junk})]
    nested = {"spec": {"versions": [{"name": "v1beta1", "served": True, "schema": {"openAPIV3Schema": junk}}]}}
    crd = live({"apiVersion": "v1", "kind": "X", "metadata": meta, **nested})
    over: dict[Query, Iterable[Live] | str] = {question: odd for question in SOUND}
    listed = {**podcliqueset("demo"), "spec": {"replicas": junk, "template": junk}}

    assert found(site(over)) and found(site({**over, asked.CRD: [crd]}, sets=(live(listed),)))


def test_an_older_device_api_is_enough_for_domains_and_said_not_to_be_for_shared_claims() -> None:
    check = found(site(offered=offer(COMPUTE_DOMAIN, OLD)))[API]

    assert (check.outcome, check.found) == (Outcome.GOOD, "v1beta1 is served; claims that pods share (resourceSharing) need v1")
