"""The CRDs on an API server: they are accepted without a warning, and kubectl shows what they declare."""

import copy
import json
import re
import subprocess
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from engine.ids import Kind
from enginectl.actions.manifests import yaml_stream
from resources.admission import graph_defaults
from resources.admission.defaults import defaulted
from resources.base.kinds import DEFINED, DYNAMO_GRAPH, PODCLIQUE, PODCLIQUESET, PODGANG, SCALING_GROUP, TOPOLOGY_BINDING
from resources.schema.crds import crds
from resources.schema.parse import faults
from resources.schema.wire import OPAQUE
from tests.contract.server import Server
from tests.controlplane.cluster import Missing, binary
from tests.resources.manifests import clique, pcs, whole_pod_spec
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.e2e

DEPRECATED = "packDomain is deprecated and cannot be used on new workloads; use pack.required"
EITHER = "topologyConstraint must specify pack or deprecated packDomain"
NOT_BOTH = "must not set both pack.required and deprecated packDomain"
NOT_EMPTY = "pack must specify at least one of required or preferred"
GROUP = {"name": "g", "cliqueNames": ["a"]}


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl, as an administrator, in one namespace, with a cache of its own."""

    server: Server
    namespace: str
    cache: Path

    def run(self, *arguments: str, given: Any = None) -> subprocess.CompletedProcess[str]:
        """Run it with a manifest on its standard input."""
        command = [binary("kubectl"), "--kubeconfig", str(self.server.kubeconfig), "--cache-dir", str(self.cache), "-n", self.namespace]
        text = given if isinstance(given, str) else json.dumps(given)
        return subprocess.run([*command, *arguments], input=text, capture_output=True, text=True, timeout=PATIENCE)

    def __call__(self, *arguments: str, given: Any = None) -> str:
        """Its output. It must succeed."""
        done = self.run(*arguments, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def make(self, body: Any, *arguments: str) -> Any:
        """The object as the server has created it."""
        return json.loads(self("create", "-o", "json", "-f", "-", *arguments, given=body))

    def refusal(self, body: Any) -> str:
        """The message with which the server refuses to create the object."""
        done = self.run("create", "-f", "-", given=body)
        assert done.returncode == 1
        return done.stderr

    def get(self, what: str, name: str) -> Any:
        """The stored object."""
        return json.loads(self("get", what, name, "-o", "json"))


@pytest.fixture(scope="module")
def installed(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """A server with the CRDs that `engine manifests crds` prints."""
    try:
        binary("kubectl")
    except Missing as missing:
        pytest.skip(str(missing))
    kubectl = Kubectl(server, "default", tmp_path_factory.mktemp("kubectl"))
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=yaml_stream(crds()))
    kubectl("wait", "crd", "--for=condition=Established", "--timeout=180s", *(crd["metadata"]["name"] for crd in crds()))
    # An established kind is discovered, and its fields are explained, a moment later.
    for crd in crds():
        until(partial(is_explained, kubectl, crd["spec"]["names"]["plural"]))
    return kubectl


def is_explained(kubectl: Kubectl, name: str) -> bool:
    """Whether kubectl explains the kind of that plural."""
    return kubectl.run("explain", name).returncode == 0


@pytest.fixture
def kubectl(installed: Kubectl, request: pytest.FixtureRequest) -> Kubectl:
    """kubectl in a new namespace."""
    namespace = f"crds-{abs(hash(request.node.nodeid)):x}"
    installed("create", "namespace", namespace)
    return Kubectl(installed.server, namespace, installed.cache)


@pytest.fixture
def _evaluates_rules(server: Server) -> None:
    """Skip where CEL rules are not evaluated: the sandbox only stores them."""
    if server.name == "sandbox":
        pytest.skip("the sandbox evaluates no CEL")


def workload(*cliques: dict[str, Any], **template: Any) -> dict[str, Any]:
    """A set without a namespace."""
    body = pcs(*cliques, **template)
    return {**body, "metadata": {"name": "d"}}


def of(kind: Kind, spec: dict[str, Any]) -> dict[str, Any]:
    """An object of another kind of ours."""
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize("name", [crd["metadata"]["name"] for crd in crds()])
def test_a_definition_is_established_and_nothing_is_said_against_it(installed: Kubectl, name: str) -> None:
    conditions = installed.get("crd", name)["status"]["conditions"]

    assert {condition["type"]: condition["status"] for condition in conditions} == {"NamesAccepted": "True", "Established": "True"}


def test_applying_them_again_changes_nothing(installed: Kubectl) -> None:
    before = [installed.get("crd", crd["metadata"]["name"])["metadata"]["generation"] for crd in crds()]

    installed("apply", "--server-side", "-f", "-", given=yaml_stream(crds()))

    assert [installed.get("crd", crd["metadata"]["name"])["metadata"]["generation"] for crd in crds()] == before


def test_the_server_fills_in_the_defaults_of_the_schema(kubectl: Kubectl) -> None:
    body = workload(podCliqueScalingGroups=[GROUP], headlessServiceConfig={})
    body["spec"] = {"template": body["spec"]["template"], "updateStrategy": {}}

    spec = kubectl.make(body)["spec"]

    assert (spec["replicas"], spec["updateStrategy"]) == (0, {"type": "RollingRecreate"})
    assert spec["template"]["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    assert spec["template"]["headlessServiceConfig"] == {"publishNotReadyAddresses": True}
    assert spec["template"]["podCliqueScalingGroups"] == [{**GROUP, "replicas": 1, "minAvailable": 1}]


def test_what_we_have_defaulted_comes_back_from_the_server_as_it_was(kubectl: Kubectl) -> None:
    scaling = {"maxReplicas": 3, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]}
    body = defaulted(workload(clique(autoScalingConfig=scaling), podCliqueScalingGroups=[GROUP], terminationDelay="90m"))

    live = kubectl.make({**body, "metadata": {"name": "d"}})

    assert live["spec"] == body["spec"]
    assert defaulted(live) is live
    assert faults(PODCLIQUESET, live) == ()


def test_what_the_server_defaults_we_default_alike(kubectl: Kubectl) -> None:
    body = workload(podCliqueScalingGroups=[GROUP], priorityClassName=None, headlessServiceConfig={"publishNotReadyAddresses": None})
    body["metadata"]["namespace"] = kubectl.namespace

    assert defaulted(kubectl.make(body))["spec"] == defaulted(body)["spec"]


def test_a_graph_that_we_have_defaulted_comes_back_from_the_server_as_it_was(kubectl: Kubectl) -> None:
    services = {
        "A": {"multinode": {}, "replicas": "2", "extraPodSpec": {"mainContainer": {"image": "i", "resources": {"limits": {"cpu": 1}}}}}
    }
    body = graph_defaults.defaulted(of(DYNAMO_GRAPH, {"services": services, "pvcs": [{"name": "a"}], "envs": [{"name": "a"}]}))

    live = kubectl.make({**body, "metadata": {"name": "x"}})

    assert live["spec"] == body["spec"]
    assert live["spec"]["services"]["A"]["multinode"] == {"nodeCount": 2}
    assert graph_defaults.defaulted(live) is live
    assert faults(DYNAMO_GRAPH, live) == ()


def test_without_admission_neither_the_number_of_pods_nor_their_role_need_be_said(kubectl: Kubectl) -> None:
    unsaid = clique()
    del unsaid["spec"]["replicas"]
    del unsaid["spec"]["roleName"]

    kubectl.make(workload(unsaid))
    kubectl.make({**defaulted(workload(unsaid)), "metadata": {"name": "whole"}})


@pytest.mark.parametrize(
    ("short", "body", "plain", "wide"),
    [
        (
            "pcs",
            workload(),
            "NAME REPLICAS AVAILABLE UPDATED PCLQS-UPDATED PCLQS-TOTAL PCSGS-UPDATED PCSGS-TOTAL AGE",
            "NAME REPLICAS AVAILABLE UPDATED PCLQS-UPDATED PCLQS-TOTAL PCSGS-UPDATED PCSGS-TOTAL UPDATE READY REASON AGE",
        ),
        (
            "pclq",
            of(PODCLIQUE, clique()["spec"]),
            "NAME MINAVAIL REPLICAS READY SCHEDULED UPDATED AGE",
            "NAME MINAVAIL REPLICAS READY SCHEDULED UPDATED GATED MINBREACHED AGE",
        ),
        (
            "pcsg",
            of(SCALING_GROUP, {"cliqueNames": ["a"]}),
            "NAME MINAVAIL REPLICAS AVAILABLE SCHEDULED UPDATED PCLQS-UPDATED PCLQS-TOTAL AGE",
            "NAME MINAVAIL REPLICAS AVAILABLE SCHEDULED UPDATED PCLQS-UPDATED PCLQS-TOTAL MINBREACHED AGE",
        ),
        ("ct", of(TOPOLOGY_BINDING, {"levels": [{"domain": "rack", "key": "example.com/rack"}]}), "NAME DOMAINS AGE", "NAME DOMAINS AGE"),
        ("pg", of(PODGANG, {"podgroups": []}), "NAME PHASE AGE", "NAME PHASE AGE"),
        ("dgd", of(DYNAMO_GRAPH, {}), "NAME STATE READY AGE", "NAME STATE READY BACKEND REASON AGE"),
    ],
)
def test_a_short_name_lists_the_columns_that_people_know(kubectl: Kubectl, short: str, body: dict[str, Any], plain: str, wide: str) -> None:
    kubectl.make(body)

    assert kubectl("get", short).splitlines()[0].split() == plain.split()
    assert kubectl("get", short, "-o", "wide").splitlines()[0].split() == wide.split()
    assert kubectl("get", short).splitlines()[1].split()[0] == body["metadata"]["name"]


@pytest.mark.parametrize(
    ("short", "body", "selector", "status"),
    [
        ("pcs", workload(), "hpaPodSelector", {"updatedReplicas": 0, "availableReplicas": 0}),
        ("pclq", of(PODCLIQUE, clique()["spec"]), "hpaPodSelector", {}),
        ("pcsg", of(SCALING_GROUP, {"cliqueNames": ["a"]}), "selector", {}),
    ],
)
def test_what_can_be_scaled_is_and_tells_by_which_labels_its_pods_are_found(
    kubectl: Kubectl, short: str, body: dict[str, Any], selector: str, status: dict[str, int]
) -> None:
    made = kubectl.make(body)
    patch = {"status": {**status, "replicas": 2, selector: "a=b"}}

    kubectl("patch", short, made["metadata"]["name"], "--subresource=status", "--type=merge", "-p", json.dumps(patch))
    kubectl("scale", short, made["metadata"]["name"], "--replicas=4")

    scale = json.loads(kubectl("get", short, made["metadata"]["name"], "--subresource=scale", "-o", "json"))
    assert scale["spec"] == {"replicas": 4}
    assert scale["status"] == {"replicas": 2, "selector": "a=b"}
    live = kubectl.get(short, made["metadata"]["name"])
    assert (live["spec"]["replicas"], live["metadata"]["generation"]) == (4, 2)


def test_counters_of_a_status_are_always_there(kubectl: Kubectl) -> None:
    kubectl.make(of(PODCLIQUE, clique()["spec"]))

    kubectl("patch", "pclq", "x", "--subresource=status", "--type=merge", "-p", '{"status": {"replicas": 1}}')

    zero = ("readyReplicas", "updatedReplicas", "scheduleGatedReplicas", "scheduledReplicas")
    assert kubectl.get("pclq", "x")["status"] == {"replicas": 1, **dict.fromkeys(zero, 0)}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (workload(clique(), clique()), 'spec.template.cliques[1]: Duplicate value: {"name":"a"}'),
        (workload(cliqueStartupType="InOrder"), 'spec.template.cliqueStartupType: Unsupported value: "InOrder": supported values: '),
        (workload(clique(replcas=1)), 'unknown field "spec.template.cliques[0].spec.replcas"'),
        (workload({"name": "a"}), "spec.template.cliques[0].spec: Required value"),
        (of(TOPOLOGY_BINDING, {"levels": []}), "spec.levels: Invalid value: 0: spec.levels in body should have at least 1 items"),
        (
            of(TOPOLOGY_BINDING, {"levels": [{"domain": "Rack", "key": "k"}]}),
            "spec.levels[0].domain in body should match '^[a-z][a-z0-9-]*$'",
        ),
        (
            of(DYNAMO_GRAPH, {"services": {f"s{number}": {} for number in range(26)}}),
            "spec.services: Too many: 26: must have at most 25 items",
        ),
        (of(DYNAMO_GRAPH, {"pvcs": [{"name": "a"}, {"name": "a"}]}), 'spec.pvcs[1]: Duplicate value: {"name":"a"}'),
    ],
)
def test_a_mistake_is_reported_with_its_field(kubectl: Kubectl, body: dict[str, Any], message: str) -> None:
    assert message in kubectl.refusal(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (workload(topologyConstraint={"packDomain": "rack"}), f"spec.template.topologyConstraint.packDomain: Forbidden: {DEPRECATED}"),
        (workload({**clique(), "topologyConstraint": {"packDomain": "rack"}}), f"spec.template.cliques: Forbidden: {DEPRECATED}"),
        (
            workload(podCliqueScalingGroups=[{**GROUP, "topologyConstraint": {"packDomain": "rack"}}]),
            f"spec.template.podCliqueScalingGroups: Forbidden: {DEPRECATED}",
        ),
        (workload(topologyConstraint={"topologyName": "t"}), f"spec.template.topologyConstraint.pack: Required value: {EITHER}"),
        (workload(topologyConstraint={"pack": {}}), f"spec.template.topologyConstraint.pack: Required value: {NOT_EMPTY}"),
        (
            workload({**clique(), "topologyConstraint": {"packDomain": "rack", "pack": {"required": "rack"}}}),
            f"spec.template.cliques[0].topologyConstraint.pack.required: Invalid value: {NOT_BOTH}",
        ),
        (
            of(DYNAMO_GRAPH, {"pvcs": [{"name": "a", "create": True}]}),
            "When create is true, size, storageClass, and volumeAccessMode are required",
        ),
    ],
)
@pytest.mark.usefixtures("_evaluates_rules")
def test_a_broken_rule_is_reported_with_its_message_and_field(kubectl: Kubectl, body: dict[str, Any], message: str) -> None:
    assert message in kubectl.refusal(body)


@pytest.mark.parametrize(
    "body",
    [
        workload(clique(replicas="2")),
        workload(clique(replicas=True)),
        workload(clique(replicas=1.5)),
        workload(clique(startsAfter="a")),
        workload(clique(podSpec=[])),
        workload(clique(podSpec={})),
        workload({**clique(), "labels": {"x": 1}}),
        workload(terminationDelay=4),
        workload(topologyConstraint={"pack": {"required": ""}}),
        workload(resourceSharing=[{"name": "r", "scope": "Everyone"}]),
        workload(clique(autoScalingConfig={"maxReplicas": 2, "metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]})),
        of(PODGANG, {"podgroups": [{"name": "a", "minReplicas": 1}]}),
        of(DYNAMO_GRAPH, {"services": {"a": {"multinode": {"nodeCount": 1}}}}),
        of(DYNAMO_GRAPH, {"services": {"a": {"replicas": "two"}}}),
        of(DYNAMO_GRAPH, {"services": {"a": {"extraPodSpec": {"mainContainer": {"image": 5}}}}}),
        of(DYNAMO_GRAPH, {"services": {"a": {"livenessProbe": {"periodSeconds": "5"}}}}),
        of(DYNAMO_GRAPH, {"envs": [{"value": "x"}]}),
        of(DYNAMO_GRAPH, {"backendFramework": "jax"}),
    ],
)
def test_what_the_server_refuses_we_refuse_without_one_and_at_the_same_field(kubectl: Kubectl, body: dict[str, Any]) -> None:
    (kind,) = (kind for kind in DEFINED if kind.name == body["kind"])

    (fault,) = faults(kind, body)

    assert re.sub(r"\[(\D\w*)\]", r".\1", fault.field) in kubectl.refusal(body)


@pytest.mark.usefixtures("_evaluates_rules")
def test_a_workload_that_has_pack_domain_may_keep_it(kubectl: Kubectl) -> None:
    before = next(crd for crd in crds() if crd["spec"]["names"]["kind"] == "PodCliqueSet")
    older = copy.deepcopy(before)
    del older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    kubectl("apply", "--server-side", "-f", "-", given=older)
    try:
        until(lambda: kubectl.run("create", "-f", "-", given=workload(topologyConstraint={"packDomain": "rack"})).returncode == 0)
    finally:
        kubectl("apply", "--server-side", "-f", "-", given=before)
    again = {**workload(topologyConstraint={"packDomain": "rack"}), "metadata": {"name": "other"}}
    until(lambda: DEPRECATED in kubectl.run("create", "--dry-run=server", "-f", "-", given=again).stderr)

    kubectl("patch", "pcs", "d", "--type=merge", "-p", '{"spec": {"replicas": 2}}')

    assert kubectl.get("pcs", "d")["spec"]["template"]["topologyConstraint"] == {"packDomain": "rack"}


def test_a_field_that_we_do_not_know_is_pruned_from_our_part(kubectl: Kubectl) -> None:
    live = kubectl.make(workload({**clique(), "novel": 1}), "--validate=ignore")

    assert "novel" not in live["spec"]["template"]["cliques"][0]


@pytest.mark.parametrize("novel", [{}, {"novel": {"deep": [1, "x", None, {"a": None}]}}], ids=["known", "newer"])
def test_a_pod_spec_passes_through_whole_whatever_kubernetes_adds_to_it(kubectl: Kubectl, novel: dict[str, Any]) -> None:
    pod_spec = whole_pod_spec(**novel)
    body = workload(clique(podSpec=pod_spec))

    live = kubectl.make(body)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given={**body, "metadata": {"name": "applied"}})

    assert live["spec"]["template"]["cliques"][0]["spec"]["podSpec"] == pod_spec
    assert kubectl.get("pcs", "applied")["spec"]["template"]["cliques"][0]["spec"]["podSpec"] == pod_spec


@pytest.mark.parametrize(
    "pod_spec",
    [
        {"containers": [{}]},
        {"containers": [{"name": "c", "image": 1}]},
        {"containers": [{"name": "c", "args": ["a", None]}]},
        {"containers": [{"name": "c", "ports": [{"containerPort": "80"}]}]},
        {"containers": [{"name": "c", "imagePullPolicy": "Sometimes"}]},
        {"containers": [{"name": "c", "resources": {"limits": {"cpu": True}}}]},
        {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2 cores"}}}]},
        {"containers": [{"name": "c", "resources": {"limits": {"cpu": [1]}}}]},
        {"containers": [{"name": "c", "livenessProbe": {"tcpSocket": {"port": 1.5}}}]},
        {"containers": [{"name": "c"}], "nodeSelector": {"gpu": True}},
        {"containers": [{"name": "c"}], "volumes": {}},
        {"containers": [{"name": "c"}], "terminationGracePeriodSeconds": "30"},
    ],
)
def test_what_the_server_refuses_of_a_pod_spec_we_refuse_at_the_same_field(kubectl: Kubectl, pod_spec: dict[str, Any]) -> None:
    body = workload(clique(podSpec=pod_spec))

    (fault,) = faults(PODCLIQUESET, body)

    assert fault.field in kubectl.refusal(body)


def test_what_is_fractional_or_empty_in_a_pod_may_be_so_in_a_clique(kubectl: Kubectl) -> None:
    container = {"name": "c", "image": "i", "imagePullPolicy": "", "resources": {"limits": {"cpu": 0.5, "memory": 1 << 30, "a.b/c": "1e3"}}}
    pod_spec = {"containers": [container], "restartPolicy": "", "tolerations": [{"effect": "", "operator": "Exists"}]}

    kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=180s")
    kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod_spec})
    live = kubectl.make(workload(clique(podSpec=pod_spec)))

    assert live["spec"]["template"]["cliques"][0]["spec"]["podSpec"] == pod_spec
    assert faults(PODCLIQUESET, live) == ()


def test_a_set_of_before_pod_specs_were_judged_may_be_changed_elsewhere(kubectl: Kubectl) -> None:
    before = next(crd for crd in crds() if crd["spec"]["names"]["kind"] == "PodCliqueSet")
    older = copy.deepcopy(before)
    template = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["template"]
    template["properties"]["cliques"]["items"]["properties"]["spec"]["properties"]["podSpec"] = OPAQUE
    faulty = workload(clique(podSpec={"containers": [{"name": "c", "image": 1}]}))
    kubectl("apply", "--server-side", "-f", "-", given=older)
    try:
        until(lambda: kubectl.run("create", "-f", "-", given=faulty).returncode == 0)
    finally:
        kubectl("apply", "--server-side", "-f", "-", given=before)
    again = {**faulty, "metadata": {"name": "other"}}
    until(lambda: "containers[0].image" in kubectl.run("create", "--dry-run=server", "-f", "-", given=again).stderr)

    kubectl("patch", "pcs", "d", "--type=merge", "-p", '{"metadata": {"finalizers": ["grove.io/x"]}}')
    kubectl("scale", "pcs", "d", "--replicas=3")
    kubectl("patch", "pcs", "d", "--type=merge", "-p", '{"metadata": {"finalizers": []}}')

    assert kubectl.get("pcs", "d")["spec"]["replicas"] == 3


def test_two_appliers_may_each_have_a_clique(kubectl: Kubectl) -> None:
    for manager in ("one", "two"):
        kubectl("apply", "--server-side", "--field-manager", manager, "-f", "-", given=workload(clique(manager)))

    kubectl("apply", "--server-side", "--field-manager", "one", "-f", "-", given=workload(clique("one", minAvailable=1)))

    cliques = kubectl.get("pcs", "d")["spec"]["template"]["cliques"]
    assert [(one["name"], one["spec"].get("minAvailable")) for one in cliques] == [("one", 1), ("two", None)]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("pcs", "PodCliqueSet is a workload of several roles"),
        ("pcs.spec.template", "The cliques. Their order is the start order"),
        ("pcs.spec.template.cliques.spec.minAvailable", "The minimum of pods: fewer are not scheduled"),
        ("pclq.spec.podSpec", "a core/v1 PodSpec, used unchanged"),
        ("pcsg.status.selector", "The label selector of the pods, for autoscalers."),
        ("ct.spec.levels.key", "The node label whose values distinguish the domains of the level."),
        ("pg.spec.podgroups.minReplicas", "The minimum of pods of this group that must be scheduled"),
    ],
)
def test_kubectl_explains_our_fields_in_our_words(installed: Kubectl, field: str, words: str) -> None:
    assert words in " ".join(installed("explain", field).split())
