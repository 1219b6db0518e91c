"""A real API server calls the webhooks of `engine run`: sets are completed and refused, managed objects are protected."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson
import pytest

from resources.base.kinds import PODCLIQUESET, RESOURCE_CLAIM_TEMPLATE
from resources.base.labels import SHARED_WITH
from resources.children.table import CHILDREN
from resources.dynamo.versions.api_versions import ALPHA_ONLY
from resources.install.permissions import Permission
from resources.install.roles import Account
from resources.install.webhooks import CONVERT
from resources.install.webhooks import installed as webhooks_of
from resources.schema.crds import Conversion, crds
from tests.builders import claim_template, share
from tests.controlplane.accounts import grant
from tests.controlplane.cluster import SYSTEM, ControlPlane, binary
from tests.controlplane.fixtures import minor_version
from tests.controlplane.fixtures import started as plane_started
from tests.controlplane.installed_accounts import install_account
from tests.enginectl.calling import started
from tests.enginectl.serving.test_endpoints import Installed, Running
from tests.laws.toy import CONFIGURATION as TOY
from tests.providers.http.talking import HOST
from tests.resources.admission.graphs import graph, wide, worker
from tests.resources.admission.requests import binding, put, small
from tests.resources.dynamo.versions.beta_graphs import beta, component
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.e2e

CLAIMS = 34
"""The first minor version of Kubernetes that serves resource.k8s.io/v1 by default."""

GROUP = "/apis/grove.io/v1alpha1"
SETS = f"{GROUP}/namespaces/ml/podcliquesets"
GRAPHS = "/apis/nvidia.com/v1alpha1/namespaces/ai/dynamographdeployments"
ADAPTERS = GRAPHS.replace("dynamographdeployments", "dynamographdeploymentscalingadapters")
PODCLIQUES = f"{GROUP}/namespaces/ml/podcliques"
CONFIGURATION: dict[str, Any] = {
    "authorizer": {"enabled": True, "exemptServiceAccountUserNames": [Account(SYSTEM, "engine-reviews").user]},
    "topologyAwareScheduling": {"enabled": True},
    "network": {"autoMNNVLEnabled": False},
    "leaderElection": {"resourceNamespace": "default"},
}


CONVERTERS: list[Installed] = []
"""The installation whose webhooks are called."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of its own whose webhooks are those of an `engine run` that leads."""
    with plane_started(tmp_path_factory, []) as plane:
        for definition in crds():
            plane.call("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        for name in ("ml", "ai"):
            plane.call("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        until(lambda: plane.call(SETS)[0] == plane.call(GRAPHS)[0] == 200)
        installed = Installed(tmp_path_factory.mktemp("installed"))
        installed.configure(**CONFIGURATION)
        account = install_account(plane, "engine-reviews", installed.document | CONFIGURATION)
        with started("run", "--config", installed.file, "--log-format", "json", KUBECONFIG=str(plane.kubeconfig(account.name))) as process:
            try:
                Running(process).logged("leading")
                register(plane, installed)
                yield plane
            finally:
                process.kill()


def register(plane: ControlPlane, installed: Installed) -> None:
    """Register every webhook by its URL, and wait until the server calls them."""
    CONVERTERS.append(installed)
    authority = base64.b64encode(installed.authority.cert_pem.bytes()).decode()
    for webhook in webhooks_of(CHILDREN.protected(TOY)):
        url = f"https://{HOST}:{installed.ports['webhooks']}{webhook.path}"
        plural = f"{webhook.kind.lower()}s"
        entry = webhook.body({"url": url, "caBundle": authority})
        body = {"metadata": {"name": webhook.configuration}, "webhooks": [entry]}
        code, answer = plane.call(f"/apis/admissionregistration.k8s.io/v1/{plural}", body)
        assert code == 201, answer
    until(lambda: b"admission webhook" in plane.call(f"{SETS}?dryRun=All", put(small(), {"spec.template.cliques": []}))[1])
    until(lambda: b"admission webhook" in plane.call(f"{GRAPHS}?dryRun=All", graph({}))[1])
    until(lambda: b"admission webhook" in plane.call(f"{GROUP}/clustertopologybindings?dryRun=All", binding("zone", "zone"))[1])
    until(lambda: b"terminationDelay" in plane.call(f"{SETS}?dryRun=All", small())[1])
    until(lambda: b'"nodeCount":2' in plane.call(f"{GRAPHS}?dryRun=All", graph({"decode": wide(nodes="2")}))[1])


def call(plane: ControlPlane, path: str, body: Any = None, method: str = "") -> tuple[int, dict[str, Any]]:
    """The status and the object of an answer."""
    code, answer = plane.call(path, body, method=method)
    return code, orjson.loads(answer)


def replaced(plane: ControlPlane, path: str, how: str = "", /, **spec: Any) -> tuple[dict[str, Any], tuple[int, dict[str, Any]]]:
    """The object put with these fields of its spec and the answer: read again where `engine run` wrote its status in between."""
    while True:
        edited = call(plane, path)[1]
        edited["spec"] |= spec
        answer = call(plane, f"{path}{how}", edited, method="PUT")
        if answer[0] != 409:
            return edited, answer


def test_a_new_set_is_completed(plane: ControlPlane) -> None:
    code, stored = call(plane, f"{SETS}?dryRun=All", small())

    assert code == 201
    assert stored["spec"]["template"]["terminationDelay"] == "4h0m0s"


def test_a_bad_set_is_refused_with_field_and_reason(plane: ControlPlane) -> None:
    code, refused = call(plane, f"{SETS}?dryRun=All", put(small(), {"spec.template.cliques.0.spec.minAvailable": 9}))

    assert code == 422
    assert refused["message"].startswith('admission webhook "pcs.validating.webhooks.grove.io" denied the request: PodCliqueSet.grove.io')
    assert "spec.template.cliques[0].spec.minAvailable" in [cause["field"] for cause in refused["details"]["causes"]]


def test_a_binding_is_validated_and_found_from_the_moment_it_exists(plane: ControlPlane) -> None:
    code, refused = call(plane, f"{GROUP}/clustertopologybindings", binding("zone", "zone"))
    constrained = put(small(), {"spec.template.topologyConstraint": {"topologyName": "racks", "pack": {"required": "zone"}}})
    unknown = call(plane, f"{SETS}?dryRun=All", constrained)
    made = call(plane, f"{GROUP}/clustertopologybindings", binding("zone", "rack"))
    known = call(plane, f"{SETS}?dryRun=All", constrained)

    assert (code, 'webhook "clustertopology.validating.webhooks.grove.io" denied' in refused["message"]) == (422, True)
    assert 'ClusterTopologyBinding "racks" not found' in unknown[1]["message"]
    assert (made[0], known[0]) == (201, 201), known


def test_a_graph_is_corrected(plane: ControlPlane) -> None:
    code, stored = call(plane, f"{GRAPHS}?dryRun=All", graph({"decode": wide(nodes="2")}))

    assert code == 201, stored
    assert stored["spec"]["services"]["decode"]["multinode"]["nodeCount"] == 2


def test_managed_objects_are_protected_and_the_engine_itself_is_exempt(plane: ControlPlane) -> None:
    body = put(small(), {"metadata.name": "guarded"})
    assert call(plane, SETS, body)[0] == 201
    until(lambda: call(plane, PODCLIQUES)[1]["items"])
    name = call(plane, PODCLIQUES)[1]["items"][0]["metadata"]["name"]

    # The other webhooks are in force; that of managed objects is a configuration of its own.
    until(lambda: call(plane, f"{PODCLIQUES}/{name}?dryRun=All", method="DELETE")[0] == 403)

    deletion = call(plane, f"{PODCLIQUES}/{name}", method="DELETE")
    scaled = call(plane, f"{PODCLIQUES}/{name}/scale")
    scale = {**scaled[1], "spec": {"replicas": scaled[1]["spec"]["replicas"] + 1}}
    scaling = call(plane, f"{PODCLIQUES}/{name}/scale?dryRun=All", scale, method="PUT")

    assert deletion[0] == 403
    assert deletion[1]["message"].endswith(f"admission denied, deletion of resource: ml/{name} is not allowed")
    assert scaling[0] == 200
    assert call(plane, f"{SETS}/guarded", method="DELETE")[0] == 200
    until(lambda: call(plane, f"{SETS}/guarded")[0] == 404)


def test_sets_and_scales_beyond_a_limit_are_refused_and_smaller_ones_are_not(plane: ControlPlane) -> None:
    huge = call(plane, f"{SETS}?dryRun=All", put(small(), {"metadata.name": "huge", "spec.replicas": 2**31 - 1}))
    assert call(plane, SETS, put(small(), {"metadata.name": "sized"}))[0] == 201
    until(lambda: call(plane, f"{PODCLIQUES}/sized-0-a")[0] == 200)
    set_path, clique_path = f"{SETS}/sized/scale", f"{PODCLIQUES}/sized-0-a/scale"

    def scaled(path: str, count: int) -> tuple[int, dict[str, Any]]:
        return call(plane, f"{path}?dryRun=All", {**call(plane, path)[1], "spec": {"replicas": count}}, method="PUT")

    until(lambda: "(limits.set" in scaled(set_path, 2**31 - 1)[1].get("message", ""))
    answers = [scaled(path, count) for path, count in ((set_path, 60_000), (set_path, 3), (clique_path, 150_000), (clique_path, 3))]
    beside = call(plane, f"{SETS}?dryRun=All", put(small(), {"metadata.name": "beside", "spec.template.cliques.0.spec.replicas": 99_999}))

    assert (huge[0], "(limits.set.replicas)" in huge[1]["message"]) == (422, True)
    assert [code for code, _ in answers] == [422, 200, 422, 200]
    assert "(limits.set.pods)" in answers[2][1]["message"]
    assert (beside[0], "(limits.namespace.pods)" in beside[1]["message"]) == (422, True)
    assert call(plane, f"{SETS}/sized", method="DELETE")[0] == 200


def test_adapters_of_graphs_beyond_a_limit_are_refused_and_smaller_ones_are_not(plane: ControlPlane) -> None:
    assert call(plane, GRAPHS, graph({"decode": worker(scalingAdapter={"enabled": True})}, name="adapted"))[0] == 201
    until(lambda: call(plane, f"{ADAPTERS}/adapted-decode")[0] == 200)

    def scaled(path: str, count: int) -> tuple[int, dict[str, Any]]:
        return replaced(plane, path, "?dryRun=All", replicas=count)[1]

    def is_refused(path: str) -> bool:
        return scaled(path, 2**31 - 1)[0] == 422

    for path in (f"{ADAPTERS}/adapted-decode/scale", f"{ADAPTERS}/adapted-decode"):
        until(partial(is_refused, path))
        code, refused = scaled(path, 2_000_000)
        assert (code, "spec.replicas: Invalid value" in refused["message"], "(limits.set.pods)" in refused["message"]) == (422, True, True)
        assert scaled(path, 3)[0] == 200
    assert call(plane, f"{GRAPHS}/adapted", method="DELETE")[0] == 200
    until(lambda: call(plane, f"{GRAPHS}/adapted")[0] == 404)


def test_kubectl_shows_each_warning_once(plane: ControlPlane) -> None:
    body = put(small(), {"metadata.name": "warned", "spec.template.cliques.0.spec.podSpec.restartPolicy": "Never"})
    command = [binary("kubectl"), "--kubeconfig", str(plane.kubeconfig()), "create", "--dry-run=server", "-f", "-"]
    result = subprocess.run(command, input=json.dumps(body), text=True, capture_output=True, env=dict(os.environ), timeout=PATIENCE)

    assert result.returncode == 0, result.stderr
    assert result.stderr.count("restartPolicy") == 1, result.stderr


def as_user(plane: ControlPlane, user: str, body: dict[str, Any]) -> str:
    """What kubectl says when a user creates a set; empty if it was admitted."""
    command = [binary("kubectl"), "--kubeconfig", str(plane.kubeconfig(user)), "create", "--dry-run=server", "--validate=false", "-f", "-"]
    result = subprocess.run(command, input=json.dumps(body), text=True, capture_output=True, env=dict(os.environ), timeout=PATIENCE)
    return result.stderr if result.returncode else ""


def access_reviews(plane: ControlPlane) -> float:
    """How many SubjectAccessReviews the server has answered."""
    lines = plane.call("/metrics")[1].decode().splitlines()
    of_reviews = (line for line in lines if line.startswith("apiserver_request_total{") and 'resource="subjectaccessreviews"' in line)
    return sum(float(line.rpartition(" ")[2]) for line in of_reviews)


def test_a_template_of_another_namespace_needs_a_user_who_may_read_it_and_its_annotation(plane: ControlPlane) -> None:
    if (version := minor_version()) < CLAIMS:
        pytest.skip(f"Kubernetes 1.{version} does not serve resource.k8s.io/v1")
    creates = Permission(PODCLIQUESET, ("get", "create", "patch"))
    grant(plane, [creates, Permission(RESOURCE_CLAIM_TEMPLATE, ("get",))], Account("users", "ann"), "ann")
    grant(plane, [creates], Account("users", "bob"), "bob")
    path = "/apis/resource.k8s.io/v1/namespaces/ai/resourceclaimtemplates"
    template = {"metadata": {"name": "gpu"}, "spec": claim_template("gpu")["templateSpec"]}
    set_ = put(small(), {"metadata.name": "shares", "spec.template.resourceSharing": [share("gpu", namespace="ai")]})
    missing = put(set_, {"spec.template.resourceSharing.0.name": "none"})
    before = access_reviews(plane)
    may_not = "user system:serviceaccount:users:bob may not get resourceclaimtemplates.resource.k8s.io ai/"

    assert as_user(plane, "bob", small()) == ""
    assert call(plane, path, template)[0] == 201
    assert "not shared with namespace ml; do: add ml to its annotation engine.grove.io/shared-with" in as_user(plane, "ann", set_)
    assert f"{may_not}gpu" in as_user(plane, "bob", set_)
    assert f"{may_not}none" in as_user(plane, "bob", missing)
    assert as_user(plane, "ann", missing) == ""

    stored = call(plane, f"{path}/gpu")[1]
    stored["metadata"]["annotations"] = {SHARED_WITH: "other, ml"}
    assert call(plane, f"{path}/gpu", stored, method="PUT")[0] == 200
    assert as_user(plane, "ann", set_) == ""
    assert f"{may_not}gpu" in as_user(plane, "bob", set_)

    # Once the reference is stored, those who change the set are not asked for it.
    assert call(plane, SETS, set_)[0] == 201
    stored["metadata"] |= {"annotations": {}, "resourceVersion": call(plane, f"{path}/gpu")[1]["metadata"]["resourceVersion"]}
    assert call(plane, f"{path}/gpu", stored, method="PUT")[0] == 200
    kubectl = [binary("kubectl"), "--kubeconfig", str(plane.kubeconfig("bob")), "-n", "ml", "patch", "pcs", "shares", "--type=merge"]
    edit = json.dumps({"metadata": {"annotations": {"note": "x"}}})
    edited = subprocess.run([*kubectl, "-p", edit], text=True, capture_output=True, env=dict(os.environ), timeout=PATIENCE)
    assert edited.returncode == 0, edited.stderr
    assert access_reviews(plane) - before == 7
    assert call(plane, f"{SETS}/shares", method="DELETE")[0] == 200


def test_graphs_are_converted_between_their_versions(plane: ControlPlane) -> None:
    (definition,) = (each for each in crds(Conversion({})) if each["spec"]["names"]["kind"] == "DynamoGraphDeployment")
    url = f"https://{HOST}:{CONVERTERS[0].ports['webhooks']}{CONVERT}"
    authority = base64.b64encode(CONVERTERS[0].authority.cert_pem.bytes()).decode()
    definition["spec"]["conversion"]["webhook"]["clientConfig"] = {"url": url, "caBundle": authority}
    crd = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"
    stored = call(plane, crd)[1]
    both = {key: definition["spec"][key] for key in ("versions", "conversion")}
    defined = call(plane, crd, {**stored, "spec": {**stored["spec"], **both}}, method="PUT")
    assert defined[0] == 200, defined
    newer = GRAPHS.replace("v1alpha1", "v1beta1")
    until(lambda: plane.call(newer)[0] == 200)
    body = beta(component("decode", "decode", compilationCache={"pvcName": "cache"}))

    refused = call(plane, f"{newer}?dryRun=All", beta(component("A"), component("a")))
    created = call(plane, newer, body)
    old, changed = replaced(plane, f"{GRAPHS}/g", pvcs=[{"name": "cache"}])
    read = call(plane, f"{newer}/g")[1]

    assert (refused[0], "component names must be unique case-insensitively" in refused[1]["message"]) == (422, True)
    assert (created[0], changed[0]) == (201, 200), (created, changed)
    assert (old["apiVersion"], old["spec"]["services"]["decode"]["subComponentType"]) == ("nvidia.com/v1alpha1", "decode")
    assert read["spec"]["components"] == created[1]["spec"]["components"]
    assert orjson.loads(read["metadata"]["annotations"][ALPHA_ONLY]) == {"pvcs": [{"name": "cache"}]}
    assert call(plane, crd)[1]["status"]["storedVersions"] == ["v1alpha1"]
