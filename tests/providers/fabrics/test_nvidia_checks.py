"""Every check of an installation for ComputeDomains: when it is good, bad and unknown."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from engine.ids import Kind
from engine.observed import Live, live
from providers.fabrics.nvidia import checks
from providers.fabrics.nvidia import inspection as nvidia
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import AUTO, CHANNEL_CLASS, COMPUTE_DOMAIN, DOMAIN_LABEL, FINALIZER, NAMED
from resources.base import kinds
from resources.ports.checks import Check, CheckResult, Installation, Query, QueryResult, QueryResults, ServedApis, Severity
from tests.builders import clique, podcliqueset
from tests.providers.fabrics.objects import claim, definition, deployment, domain, inventory, joined, made, node, template
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
    """A set with a domain for each replica."""
    body = podcliqueset(name, clique("worker", pods, pod_spec={**GPUS, **more}), replicas=replicas)
    return live({**body, "metadata": {**body["metadata"], "uid": f"uid-{name}", "annotations": {AUTO: "enabled"}}})


SOUND: Mapping[Query, tuple[Live, ...]] = {
    nvidia.CRD: (definition(),),
    nvidia.CLIQUES_CRD: (made("apiextensions.k8s.io/v1", "CustomResourceDefinition", "computedomaincliques.resource.nvidia.com"),),
    nvidia.CLIQUES: (),
    nvidia.CLASS: (made("resource.k8s.io/v1", "DeviceClass", CHANNEL_CLASS),),
    nvidia.SLICES: (inventory("n1"), inventory("n2")),
    nvidia.DEPLOYMENTS: (CONTROLLER,),
    nvidia.DOMAINS: (domain(ownerReferences=[{"kind": "PodCliqueSet", "name": "demo", "uid": "uid-demo", "controller": True}]),),
    nvidia.TEMPLATES: (template(),),
    nvidia.CLAIMS: (),
    nvidia.DOMAIN_NODES: (node("n1", "uid-demo-0"),),
    nvidia.NVLINK_NODES: (node("n1", clique="a.1"), node("n2", clique="a.2")),
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
    """A sound installation with other results for some queries: objects, or an error."""
    results = {query: QueryResult(lives) for query, lives in SOUND.items()}
    for query, result in (over or {}).items():
        results[query] = QueryResult(error=result) if isinstance(result, str) else QueryResult(tuple(result))
    return Installation(offered or offer(*SERVED), QueryResults(results), sets)


def found(judged: Installation, *, auto: bool = True) -> dict[str, Check]:
    """The checks by what they are about."""
    return {check.subject: check for check in Nvidia(auto=auto).checks(judged)}


def test_a_sound_installation_passes_every_check() -> None:
    checks = found(site())

    assert {check.outcome for check in checks.values()} == {CheckResult.GOOD}
    assert [what for what, check in checks.items() if check.level is Severity.HARD] == [CRD, SCHEMA, API]
    assert checks[NUMBER].finding == "numNodes optional, default 0; allocationMode known: driver 0.4 or later"
    assert checks[SLICES].finding == "2 nodes have channel-0"
    assert checks["image of the DRA driver"].finding == "example/driver:v0.4.0 (namespace system)"


OLD = replace(kinds.RESOURCE_CLAIM_TEMPLATE, version="v1beta1")
NEITHER = replace(COMPUTE_DOMAIN, version="v1alpha1")
TERMINATING = domain("left", deletionTimestamp="2026-01-01T01:00:00Z", finalizers=[FINALIZER])
KAI = {"image": "ghcr.io/nvidia/kai-scheduler/scheduler:v1"}
BAD = [
    (CRD, site({nvidia.CRD: ()}, offer(kinds.RESOURCE_CLAIM_TEMPLATE)), Severity.HARD, "is not installed"),
    (CRD, site({nvidia.CRD: [definition(served="v1alpha1")]}, offer(NEITHER)), Severity.HARD, "serves v1alpha1, not v1beta1, v1beta2"),
    (CRD, site({nvidia.CRD: [definition(ok=False)]}, offer(OLD)), Severity.HARD, "exists and is not established yet"),
    (SCHEMA, site({nvidia.CRD: [definition(name=False)]}), Severity.HARD, "is not in the schema of the CRD"),
    (
        NUMBER,
        site({nvidia.CRD: [definition(number="required", mode=False)]}),
        Severity.WARNING,
        "with numNodes 0 pods run without NVLink",
    ),
    (API, site(offered=offer(COMPUTE_DOMAIN)), Severity.HARD, "is not served"),
    (CLASS, site({nvidia.CLASS: ()}), Severity.WARNING, "not found"),
    (SLICES, site({nvidia.SLICES: ()}), Severity.WARNING, "not found"),
    (SLICES, site({nvidia.SLICES: [inventory("n1", "daemon-0")]}), Severity.WARNING, "not found"),
    ("controller of the DRA driver", site({nvidia.DEPLOYMENTS: ()}), Severity.WARNING, "not found"),
    (
        "controller of the DRA driver",
        site({nvidia.DEPLOYMENTS: [deployment("old", ready=0, nvidia_dra_driver_gpu_component="controller")]}),
        Severity.WARNING,
        "Deployment system/old: 0 of 1 ready",
    ),
    (
        "names of requested domains",
        site(sets=(demo(name="x" * 62),)),
        Severity.WARNING,
        "is longer than 63 characters: a label",
    ),
    ("names of requested domains", site(sets=(demo(name="X"),)), Severity.WARNING, "X-0: "),
    (
        "names of the domains' claim templates",
        site({nvidia.TEMPLATES: [template(uid="")]}),
        Severity.WARNING,
        "used by ResourceClaimTemplates that do not belong to these domains: default/demo-0",
    ),
    ("names of the domains' claim templates", site({nvidia.TEMPLATES: [template(uid="other")]}), Severity.WARNING, "default/demo-0"),
    (
        "node labels of deleted domains",
        site({nvidia.DOMAIN_NODES: [node("n1", "uid-demo-0"), node("n2", "dead")]}),
        Severity.WARNING,
        "nodes that are labelled for a domain that does not exist: n2",
    ),
    (
        "domains with the engine's finalizer",
        site({nvidia.DOMAINS: [TERMINATING]}),
        Severity.WARNING,
        "being deleted, and only the engine's finalizer is left: default/left",
    ),
    ("domains without a workload", site(sets=()), Severity.WARNING, "created for workloads that no longer exist: default/demo-0"),
    (
        "KAI scheduler",
        site({nvidia.DEPLOYMENTS: [CONTROLLER, deployment("kai", KAI)]}),
        Severity.WARNING,
        "runs without --feature-gates=DynamicResourceAllocation=true",
    ),
    (
        "KAI binder",
        site({nvidia.DEPLOYMENTS: [CONTROLLER, deployment("kai", {"image": "kai-scheduler/binder@sha256:0", "args": ["--x"]})]}),
        Severity.WARNING,
        "runs without",
    ),
    (
        "KAI scheduler",
        site({nvidia.DEPLOYMENTS: [CONTROLLER, deployment("kai", {"image": "registry.example:5000/kai-scheduler/scheduler:v1"})]}),
        Severity.WARNING,
        "runs without",
    ),
    (
        "nodes for requested domains",
        site(sets=(demo(2, 2),)),
        Severity.WARNING,
        "default/demo: its pods in ComputeDomains need 4 nodes, one for each pod: 2 of 2 are available",
    ),
    (
        "domains in one NVLink clique",
        site(sets=(demo(3),)),
        Severity.WARNING,
        "3 domains for 2 NVLink cliques: some domains will share",
    ),
    (
        "domains in one NVLink clique",
        site({nvidia.NVLINK_NODES: ()}),
        Severity.WARNING,
        "no node has the label nvidia.com/gpu.clique: pods in domains run without NVLink between nodes",
    ),
]


@pytest.mark.parametrize(("subject", "installation", "level", "finding"), BAD, ids=[f"{row[0]}: {row[3]}"[:70] for row in BAD])
def test_a_failed_check_says_what_is_wrong_and_what_to_do(subject: str, installation: Installation, level: Severity, finding: str) -> None:
    check = found(installation)[subject]

    assert (check.level, check.outcome) == (level, CheckResult.BAD)
    assert finding in check.finding and check.remedy


def test_an_unlabelled_template_conflicts_with_a_domain_that_does_not_exist_yet() -> None:
    check = found(site({nvidia.DOMAINS: (), nvidia.TEMPLATES: [template(uid="")]}))["names of the domains' claim templates"]

    assert check.outcome is CheckResult.BAD and check.finding.endswith("default/demo-0")


def test_a_domain_whose_spec_names_its_template_does_not_conflict_with_a_template_of_the_domains_name() -> None:
    body = domain().body
    renamed = live({**body, "spec": {**body["spec"], "channel": {"resourceClaimTemplate": {"name": "own"}}}})
    installation = site({nvidia.DOMAINS: [renamed], nvidia.TEMPLATES: [template(uid=""), template("own")]})

    assert found(installation)["names of the domains' claim templates"].outcome is CheckResult.GOOD


@pytest.mark.parametrize("args", [[f"--feature-gates={checks.GATE}"], ["--feature-gates", f"A=b,{checks.GATE}"]])
def test_kai_with_the_feature_gate_is_good(args: list[str]) -> None:
    assert found(site({nvidia.DEPLOYMENTS: [deployment("kai", {**KAI, "args": args})]}))["KAI scheduler"].outcome is CheckResult.GOOD


@pytest.mark.parametrize(
    ("crd", "finding"),
    [
        (definition(number="required"), "numNodes required; allocationMode known: driver 25.8 to 25.12"),
        (definition(), "numNodes optional, default 0; allocationMode known: driver 0.4 or later"),
    ],
)
def test_the_crd_identifies_the_release_of_the_driver(crd: Live, finding: str) -> None:
    check = found(site({nvidia.CRD: [crd]}))[NUMBER]

    assert (check.level, check.outcome, check.finding) == (Severity.INFO, CheckResult.GOOD, finding)


def test_a_driver_older_than_cliques_is_reported() -> None:
    assert (
        found(site({nvidia.CLIQUES_CRD: ()}))["ComputeDomainCliques"].finding
        == "not served: the driver is older than 25.12, or not installed"
    )


def test_the_version_of_domains_is_the_one_that_is_served() -> None:
    newer = definition(served="v1beta2", number="none")
    checks = found(site({nvidia.CRD: [newer]}, offer(*kinds.newer(COMPUTE_DOMAIN), kinds.RESOURCE_CLAIM_TEMPLATE)))

    assert checks[CRD].outcome is checks[SCHEMA].outcome is CheckResult.GOOD
    assert checks[CRD].finding == "v1beta2 is served, and v1beta1 is not: domains are read and written in v1beta2"
    assert checks[NUMBER].finding == "no numNodes; allocationMode known: driver later than 0.5"

    both = offer(*kinds.newer(COMPUTE_DOMAIN), *SERVED)
    assert found(site(offered=both))[CRD].finding == "v1beta1 is served"


@pytest.mark.parametrize(
    ("container", "mode"),
    [
        ({}, "driverManaged: the driver runs"),
        ({"args": ["--imex-mode=driverManaged"]}, "driverManaged: the driver runs"),
        ({"args": ["--imex-mode=hostManaged"]}, "hostManaged: the driver leaves IMEX to the hosts"),
        ({"command": ["compute-domain-controller", "--imex-mode", "hostManaged"]}, "hostManaged: "),
        ({"env": [{"name": "IMEX_MODE", "value": "hostManaged"}]}, "hostManaged: "),
    ],
)
def test_the_mode_of_the_driver_is_told_with_what_must_not_change_under_domains_in_use(container: dict[str, Any], mode: str) -> None:
    controller = deployment("controller", {"image": "d:1", **container}, dra_driver_nvidia_gpu_component="controller")
    check = found(site({nvidia.DEPLOYMENTS: [controller]}))["IMEX daemons"]

    assert (check.level, check.outcome) == (Severity.INFO, CheckResult.GOOD)
    assert check.finding.startswith(mode)
    assert "Change imex.mode or the feature gate ComputeDomainCliques only while no domain is in use" in check.finding
    assert ("nothing isolates them. Deleting a domain does not end NVLink" in check.finding) is mode.startswith("host")


@pytest.mark.parametrize(("gates", "bad"), [("", True), ("ComputeDomainCliques=true", True), ("A=true,ComputeDomainCliques=false", False)])
def test_domains_that_had_nodes_before_the_driver_tracked_them_in_cliques_are_named(gates: str, bad: bool) -> None:
    owner = {"kind": "PodCliqueSet", "name": "demo", "uid": "uid-demo", "controller": True}
    container = {"image": "d:1", "env": [{"name": "FEATURE_GATES", "value": gates}]}
    results = {
        nvidia.DOMAINS: [domain("demo-0", joined("n1"), ownerReferences=[owner]), domain("demo-1", joined("n2"), ownerReferences=[owner])],
        nvidia.CLIQUES: [
            made("resource.nvidia.com/v1beta1", "ComputeDomainClique", "c", "dra", metadata={"labels": {DOMAIN_LABEL: "uid-demo-1"}})
        ],
        nvidia.DEPLOYMENTS: [deployment("controller", container, dra_driver_nvidia_gpu_component="controller")],
    }
    check = found(site(results)).get("domains older than ComputeDomainCliques")

    assert (check.finding if check is not None else "") == ("default/demo-0" if bad else "")
    assert check is None or (check.outcome is CheckResult.BAD and "may stay NotReady" in check.remedy)


def test_the_advice_to_upgrade_says_that_there_is_no_way_back() -> None:
    check = found(site({nvidia.CRD: [definition(number="required", mode=False)]}))[NUMBER]

    assert "There is no way back from 0.4 or later to 25.x" in check.remedy


UNSEEN = [
    (nvidia.CRD, SCHEMA),
    (nvidia.CRD, NUMBER),
    (nvidia.CLASS, CLASS),
    (nvidia.SLICES, SLICES),
    (nvidia.DEPLOYMENTS, "controller of the DRA driver"),
    (nvidia.CLIQUES_CRD, "ComputeDomainCliques"),
    (nvidia.CLIQUES, "domains older than ComputeDomainCliques"),
    (nvidia.TEMPLATES, "names of the domains' claim templates"),
    (nvidia.DOMAIN_NODES, "node labels of deleted domains"),
    (nvidia.DOMAINS, "names of the domains' claim templates"),
    (nvidia.DOMAINS, "node labels of deleted domains"),
    (nvidia.DOMAINS, "domains with the engine's finalizer"),
    (nvidia.CLAIMS, "nodes for requested domains"),
    (nvidia.SLICES, "nodes for requested domains"),
    (nvidia.NVLINK_NODES, "domains in one NVLink clique"),
]


@pytest.mark.parametrize(("question", "what"), UNSEEN, ids=[f"{question.kind.plural}: {what}" for question, what in UNSEEN])
def test_a_check_whose_objects_could_not_be_read_is_unknown(question: Query, what: str) -> None:
    check = found(site({question: "pods is forbidden"}))[what]

    assert check.outcome is CheckResult.UNKNOWN and check.finding.startswith("cannot be judged: ")


def test_domains_without_a_workload_are_unknown_where_sets_could_not_be_listed() -> None:
    assert found(site(sets=None))["domains without a workload"].outcome is CheckResult.UNKNOWN


def test_an_api_group_without_an_answer_is_unknown_and_not_missing() -> None:
    silent = offer(kinds.RESOURCE_CLAIM_TEMPLATE, holes={COMPUTE_DOMAIN.api_version: "silent"})
    check = found(site({nvidia.CRD: "forbidden"}, silent))[CRD]

    assert (check.level, check.outcome, check.finding) == (Severity.HARD, CheckResult.UNKNOWN, "cannot be judged: silent")


def test_without_mnnvl_nothing_is_hard_and_without_a_driver_nothing_is_even_a_warning() -> None:
    bare = Installation(offer(), QueryResults({question: QueryResult() for question in SOUND}), ())
    asking = podcliqueset("named", clique("w", pod_spec=GPUS, annotations={NAMED: "rack"}))
    wanting = Installation(offer(), QueryResults(), (live(asking),))

    assert {check.level for check in found(bare, auto=False).values()} == {Severity.INFO}
    assert found(wanting, auto=False)[CRD].level is Severity.WARNING
    assert found(bare)[CRD].level is Severity.HARD
    assert not any(check.level is Severity.HARD for check in found(site(), auto=False).values())


def test_without_any_results_every_check_is_unknown() -> None:
    blind = Installation(ServedApis(error="failed to discover API resources: no"), QueryResults(), None)

    assert {check.outcome for check in found(blind).values()} == {CheckResult.UNKNOWN}


def test_nodes_used_by_other_domains_are_not_available() -> None:
    crowd = site({nvidia.CLAIMS: [claim("p", "n1", "uid-demo-0"), claim("q", "n2", "other")]}, sets=(demo(1, 2),))

    assert "1 of 2 are available" in found(crowd)["nodes for requested domains"].finding


@given(JSON)
def test_malformed_objects_are_checked_without_an_error(junk: Any) -> None:
    meta = {"name": "x", "uid": "u"}
    odd = [live({"apiVersion": "v1", "kind": "X", "metadata": meta, "spec": junk, "status": junk})]
    nested = {"spec": {"versions": [{"name": "v1beta1", "served": True, "schema": {"openAPIV3Schema": junk}}]}}
    crd = live({"apiVersion": "v1", "kind": "X", "metadata": meta, **nested})
    over: dict[Query, Iterable[Live] | str] = {question: odd for question in SOUND}
    listed = {**podcliqueset("demo"), "spec": {"replicas": junk, "template": junk}}

    assert found(site(over)) and found(site({**over, nvidia.CRD: [crd]}, sets=(live(listed),)))


def test_an_older_device_api_suffices_for_domains_but_not_for_shared_claims() -> None:
    check = found(site(offered=offer(COMPUTE_DOMAIN, OLD)))[API]

    assert (check.outcome, check.finding) == (CheckResult.GOOD, "v1beta1 is served; shared claims (resourceSharing) need v1")
