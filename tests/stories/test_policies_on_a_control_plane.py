"""The admission rules as policies of a real API server: its verdicts are those of `admit`, on the tables of the rules' own tests."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import orjson
import pytest

from providers.fabrics.nvidia.fabric import Nvidia
from providers.schedulers.kube import KubeScheduler
from resources.admission.admit import UNPROTECTED
from resources.admission.managed_rules import Protection
from resources.admission.request import Decision
from resources.base.kinds import PODCLIQUE, PODCLIQUESET, SCALING_ADAPTER, SCALING_GROUP, TOPOLOGY_BINDING
from resources.children.table import CHILDREN
from resources.install.admission_policies import policies
from resources.ports.configuration import Configuration
from resources.schema.crds import crds
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started
from tests.laws.admission_cases import each_value
from tests.resources.admission import test_binding_rules as bindings
from tests.resources.admission import test_create_rules as creation
from tests.resources.admission import test_dependency_rules as dependencies
from tests.resources.admission import test_sharing_rules as sharing
from tests.resources.admission import test_topology_rules as topology
from tests.resources.admission import test_update_rules as update
from tests.resources.admission.graphs import WITHOUT_GROVE, graph, wide
from tests.resources.admission.requests import GONE, binding, clique, created, pod_spec, put, small, updated, whole

pytestmark = pytest.mark.e2e

Body = dict[str, Any]
Case = TypeVar("Case")

SETS = "/apis/grove.io/v1alpha1/namespaces/ml/podcliquesets"
BINDINGS = "/apis/grove.io/v1alpha1/clustertopologybindings"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
DRY = "?dryRun=All"
PATIENCE = 60.0
"""Seconds within which a server must have noticed changed policies."""

PLAIN = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", fabrics=(Nvidia(),))
AUTO = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", fabrics=(Nvidia(auto=True),))
RACKED = Configuration({"default-scheduler": KubeScheduler()}, "default-scheduler", topology=True, fabrics=(Nvidia(auto=True),))

UNSTATED = frozenset(
    {
        "clique must not have circular dependencies",
        "would have the name of that of",
        "is the claim template of a ComputeDomain of this PodCliqueSet",
        "a ComputeDomain of this name belongs to a group",
    }
)
"""The reasons of `admit` that no policy gives."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server of its own, because policies are for all namespaces. It has our kinds and the namespace `ml`."""
    with started(tmp_path_factory, []) as plane:
        for definition in crds():
            plane.call(CRDS, definition)
        plane.call("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        plane.call("/api/v1/namespaces/ml/serviceaccounts", {"metadata": {"name": "default"}})
        until(lambda: plane.call(SETS)[0] == plane.call(BINDINGS)[0] == 200)
        yield plane


def until(holds: Any) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def install(plane: ControlPlane, configuration: Configuration, protection: Protection = UNPROTECTED, *, mutating: bool = False) -> None:
    """Install the policies of a configuration, and wait until they decide."""
    for body in policies(configuration, protection, mutating=mutating):
        path = f"/apis/{body['apiVersion']}/{PLURALS[body['kind']]}"
        plane.call(f"{path}/{body['metadata']['name']}", method="DELETE")
        code, answer = plane.call(path, body)
        assert code == 201, answer
    annotated = [put(small(), {"metadata.annotations": {"grove.io/auto-mnnvl": mode}}) for mode in ("yes", "enabled")]
    constrained = put(small(), {"spec.template.topologyConstraint": {"topologyName": "racks", "pack": {"required": "zone"}}})
    for sign in (small(cliques=[]), *annotated, constrained):
        until(lambda sign=sign: bool(verdict(plane, sign)) != created(sign, configuration).allowed)


def verdict(plane: ControlPlane, new: Body, path: str = SETS) -> str:
    """Why the server does not create an object; empty if it does."""
    return _refusal(*plane.call(f"{path}{DRY}", new))


def verdict_on_change(plane: ControlPlane, old: Body, new: Body, path: str = SETS) -> str:
    """Why the server does not change an object that is stored; empty if it does."""
    name = old["metadata"]["name"]
    code, answer = plane.call(path, old)
    assert code == 201, answer
    version = orjson.loads(answer)["metadata"]["resourceVersion"]
    try:
        changed = {**new, "metadata": {**new["metadata"], "resourceVersion": version}}
        return _refusal(*plane.call(f"{path}/{name}{DRY}", changed, method="PUT"))
    finally:
        plane.call(f"{path}/{name}", method="DELETE")


def _refusal(code: int, answer: bytes) -> str:
    assert code in (200, 201, 400, 403, 404, 409, 422), (code, answer)
    return "" if code in (200, 201) else str(orjson.loads(answer)["message"])


def first_values(*tables: Sequence[Any]) -> list[Body]:
    """The first value of each case of these tables: a body, or changes of one."""
    return [case.values[0] if hasattr(case, "values") else case[0] for table in tables for case in table]


def named(name: str | None, mode: str | None, *, gpus: bool = True, claim: str = "") -> Body:
    """A set of one clique that asks for a ComputeDomain."""
    container: Body = {"name": "main", "image": "example/worker:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": 8}}
    spec = {"podSpec": {**pod_spec(), "containers": [container]}}
    if claim:
        spec["podSpec"]["resourceClaims"] = [{"name": claim, "resourceClaimTemplateName": "x"}]
    annotations = {"annotations": {"nvidia.com/computedomain": name}} if name is not None else {}
    body = small(cliques=[clique("a", spec=spec, **annotations)])
    return put(body, {"metadata.annotations": {"grove.io/auto-mnnvl": mode}}) if mode is not None else body


def cliques_of(body: Body) -> list[str]:
    """The names of the cliques of a set."""
    return [entry["name"] for entry in body["spec"]["template"]["cliques"]]


MODES = (None, "enabled", "disabled", "Enabled", "")
NAMES = (None, "rack-a", "rack-$(GROVE_PCS_INDEX)", "Rack", "", "a.b", "-x", "x" * 254, "rack-$(GROVE_PCSG_INDEX)")
REQUESTS = [
    *(named(name, mode, gpus=gpus) for name, mode, gpus in itertools.product(NAMES, MODES, (True, False))),
    *(named(name, mode, gpus=gpus, claim="mnnvl-claim") for name, mode, gpus in itertools.product(NAMES[:2], MODES[:3], (True, False))),
]


KEY = "grove.io/mnnvl-group"
OWN = [("engine.grove.io/domain-placement", value) for value in ("required", "preferred", "Required", "")]
OWN += [("engine.grove.io/release-domains", value) for value in ("on-completion", "true")]
REQUESTS += [put(small(), {"metadata.annotations": {key: value}}) for key, value in OWN]


def grouped(of_set: str | None, of_group: str | None, of_clique: str | None, mode: str | None = None, name: str | None = None) -> Body:
    """A set whose clique `a` is in a scaling group, with the annotation for groups in three places; None: not there."""
    a, b = (clique(letter, spec=named(None, None)["spec"]["template"]["cliques"][0]["spec"] | {"roleName": letter}) for letter in "ab")
    a["annotations"] = {**({KEY: of_clique} if of_clique is not None else {}), **({"nvidia.com/computedomain": name} if name else {})}
    config = {"name": "g", "cliqueNames": ["a"], "annotations": {KEY: of_group} if of_group is not None else {}}
    body = small(cliques=[a, b], podCliqueScalingGroups=[config])
    annotations = {**({KEY: of_set} if of_set is not None else {}), **({"grove.io/auto-mnnvl": mode} if mode else {})}
    return put(body, {"metadata.annotations": annotations})


VALUES = (None, "none", "model", "", "Bad")
REQUESTS += [grouped(*places) for places in itertools.product(VALUES, repeat=3)]
REQUESTS += [
    grouped(*places)
    for places in itertools.product(VALUES[:3], VALUES[:3], VALUES[:3], (None, "enabled", "disabled"), (None, "rack-$(GROVE_PCSG_INDEX)"))
]


def disagreements(cases: Sequence[Case], judge: Callable[[Case], tuple[Decision, str]]) -> list[str]:
    """The cases about which `admit` and the server disagree, with both reasons. `judge` gives the two verdicts on a case.

    A server decides by changed policies only when it has noticed them, each at its own time: a case that differs is judged again until
    both agree or the patience ends.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        differing = [(case, judged) for case in cases if (judged := _disagreement(*judge(case)))]
        if not differing or time.monotonic() > deadline:
            return [judged for _, judged in differing]
        cases = [case for case, _ in differing]
        time.sleep(0.1)


def _disagreement(ours: Decision, theirs: str) -> str:
    reasons = [str(issue) for issue in ours.issues]
    is_unstated = bool(reasons) and all(any(part in reason for part in UNSTATED) for reason in reasons)
    return f"{reasons} != {theirs!r}" if bool(theirs) == ours.allowed and not is_unstated else ""


def differences(plane: ControlPlane, bodies: Sequence[Body], configuration: Configuration) -> list[str]:
    """The new sets about which the server and `admit` disagree."""
    return disagreements(bodies, lambda body: (created(body, configuration), verdict(plane, body)))


def differences_of_changes(plane: ControlPlane, pairs: Sequence[tuple[Body, Body]], configuration: Configuration) -> list[str]:
    """The changes of sets about which the server and `admit` disagree."""
    return disagreements(pairs, lambda pair: (updated(*pair, configuration), verdict_on_change(plane, *pair)))


@pytest.mark.parametrize("configuration", [PLAIN, AUTO, RACKED], ids=["off", "auto", "topology"])
def test_new_sets_are_judged_as_by_admit(plane: ControlPlane, configuration: Configuration) -> None:
    install(plane, configuration)
    tables = (creation.CLIQUES, creation.LENGTHS, creation.GROUPS, creation.SCHEDULERS, creation.OLD, sharing.SHARING, dependencies.ORDER)

    assert (
        differences(plane, [*(put(small(), changes) for changes in first_values(*tables)), *REQUESTS, small(), whole()], configuration)
        == []
    )


def test_the_cases_of_the_law_are_judged_as_by_admit(plane: ControlPlane) -> None:
    install(plane, RACKED)
    cases = list(each_value())
    edits = [(case.old, case.new) for case in cases if case.old and created(case.old, RACKED).allowed and is_of(case.old, case.new)]

    assert differences(plane, [case.new for case in cases if case.old is None], RACKED) == []
    assert differences_of_changes(plane, edits, RACKED) == []


def is_of(old: Body, new: Body) -> bool:
    """Whether both are of the same object."""
    return all(old["metadata"].get(field) == new["metadata"].get(field) for field in ("name", "namespace", "generateName"))


def test_new_topology_constraints_are_judged_as_by_admit(plane: ControlPlane) -> None:
    install(plane, RACKED)
    constraints = (None, {"pack": {"required": "zone"}}, {"topologyName": "racks", "pack": {"required": "rack"}})
    other = {"topologyName": "other", "pack": {"preferred": "zone"}}
    places = itertools.product((*constraints, other), (*constraints, other), constraints, (*constraints, other))
    bodies = [topology.constrained(*(GONE if part is None else part for part in place)) for place in places]

    assert differences(plane, bodies, RACKED) == []


def test_changes_of_sets_are_judged_as_by_admit(plane: ControlPlane) -> None:
    install(plane, RACKED)
    before = whole()
    after = [put(before, changes) for changes in first_values(update.COMPOSITION, update.FIELDS, update.TOPOLOGIES)]
    after += [put(before, {"spec.replicas": 5}), put(before, {"spec.template.terminationDelay": "5m"}), before]
    reordered = list(reversed(small(cliques=[clique("a"), clique("b")])["spec"]["template"]["cliques"]))
    pairs = [*((before, new) for new in after), (small(cliques=[clique("a"), clique("b")]), small(cliques=reordered))]

    assert differences_of_changes(plane, pairs, RACKED) == []


@pytest.mark.parametrize("configuration", [PLAIN, AUTO], ids=["off", "auto"])
def test_membership_is_immutable_as_by_admit(plane: ControlPlane, configuration: Configuration) -> None:
    install(plane, configuration)
    sets = [named(name, mode) for name, mode in itertools.product((None, "rack-a", "rack-b"), (None, "enabled", "disabled"))]
    sets += [grouped(*places) for places in itertools.product(VALUES[:3], (None, "none"), VALUES[1:3])]
    stored = [body for body in sets if created(body, configuration).allowed]
    pairs = [(old, new) for old, new in itertools.product(stored, sets) if cliques_of(old) == cliques_of(new)]

    assert differences_of_changes(plane, pairs, configuration) == []


def test_bindings_are_judged_as_by_admit(plane: ControlPlane) -> None:
    install(plane, bindings.SETUP)
    # The server itself drops the namespace of an object that has none.
    cases = [body for body in first_values(bindings.CASES) if "namespace" not in body["metadata"]]
    cases = [*cases, binding("zone", "rack"), bindings.referring("racked")]

    assert disagreements(cases, lambda body: (created(body, bindings.SETUP, kind=TOPOLOGY_BINDING), verdict(plane, body, BINDINGS))) == []


def test_the_pods_of_graphs_are_limited(plane: ControlPlane) -> None:
    install(plane, PLAIN)
    path = "/apis/nvidia.com/v1alpha1/namespaces/ml/dynamographdeployments"
    graphs = (graph({"a": wide(nodes=10, replicas=count)}, annotations=WITHOUT_GROVE) for count in (10_000, 10_001, 2**31 - 1))
    bodies = [put(body, {"metadata.namespace": "ml"}) for body in graphs]
    until(lambda: "(limits.set.pods)" in verdict(plane, bodies[2], path))

    assert [verdict(plane, body, path).endswith("(limits.set.pods)") for body in bodies] == [False, True, True]
    assert "(limits.set.pods)" in verdict_on_change(plane, bodies[0], bodies[1], path)


def test_what_is_scaled_above_a_limit_by_itself_is_refused_and_what_is_scaled_in_is_not(plane: ControlPlane) -> None:
    install(plane, PLAIN)
    adapter = {"replicas": 1, "dgdRef": {"name": "chat", "serviceName": "a"}}
    stored = [
        (PODCLIQUESET, small()["spec"], "limits.set.replicas"),
        (PODCLIQUE, small()["spec"]["template"]["cliques"][0]["spec"], "limits.set.pods"),
        (SCALING_GROUP, {"replicas": 1, "minAvailable": 1, "cliqueNames": ["a"]}, "limits.set.pods"),
        (SCALING_ADAPTER, adapter, "limits.set.pods"),
    ]
    for kind, spec, limit in stored:
        folder = f"/apis/{kind.api_version}/namespaces/ml/{kind.plural}"
        code, answer = plane.call(folder, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "one"}, "spec": spec})
        assert code == 201, answer

        def scaled(path: str, count: int) -> str:
            edited = orjson.loads(plane.call(path)[1])
            return _refusal(*plane.call(f"{path}{DRY}", {**edited, "spec": {**edited["spec"], "replicas": count}}, method="PUT"))

        for path in (f"{folder}/one/scale", *([f"{folder}/one"] if kind == SCALING_ADAPTER else [])):
            until(lambda path=path: scaled(path, 2_000_000))
            assert f"({limit})" in scaled(path, 2_000_000)
            assert [scaled(path, count) for count in (0, 3)] == ["", ""]


def test_the_reason_names_the_field_and_what_is_wrong(plane: ControlPlane) -> None:
    install(plane, AUTO)
    two = small(cliques=[clique("a"), clique("b", spec={"replicas": 1, "minAvailable": 2}), clique("c", spec={"minAvailable": 9})])

    until(lambda: "spec.template.cliques[b, c].spec.minAvailable: minAvailable must not be greater than replicas" in verdict(plane, two))
    until(lambda: "explicit ComputeDomain annotations require opting out" in verdict(plane, named("rack-a", None)))


def test_a_set_that_is_being_deleted_may_be_changed_in_any_way(plane: ControlPlane) -> None:
    install(plane, AUTO)
    stored = put(named(None, "disabled"), {"metadata.finalizers": ["example.com/wait"]})
    plane.call(SETS, stored)
    plane.call(f"{SETS}/web", method="DELETE")
    live = orjson.loads(plane.call(f"{SETS}/web")[1])

    code, answer = plane.call(f"{SETS}/web", put(live, {"metadata.finalizers": [], "metadata.annotations": {}}), method="PUT")

    assert code == 200, answer


def test_only_exempt_users_change_managed_objects(plane: ControlPlane) -> None:
    install(plane, PLAIN, Protection(CHILDREN.protected(PLAIN), operator="system:serviceaccount:grove:engine"))
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "web"}
    path = "/apis/grove.io/v1alpha1/namespaces/ml/podcliques"
    spec = {"roleName": "a", "replicas": 1, "minAvailable": 1, "podSpec": pod_spec()}
    mine, ours = ({"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "metadata": {"name": "x"}, "spec": spec} for _ in range(2))
    ours = put(ours, {"metadata.labels": labels})
    until(lambda: bool(verdict(plane, ours, path)))

    assert "admission denied, creation/updation of resource: ml/x is not allowed" in verdict(plane, ours, path)
    assert verdict(plane, mine, path) == ""
    assert verdict(plane, {**put(ours, {"metadata.labels": {"app.kubernetes.io/managed-by": "grove-operator"}})}, path) == ""
    plane.call("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/managed-objects.engine.grove.io", method="DELETE")


def test_new_sets_with_gpus_are_enrolled_by_a_mutating_policy(plane: ControlPlane) -> None:
    install(plane, AUTO, mutating=True)

    def annotations_of_new(body: Body) -> Body:
        code, answer = plane.call(f"{SETS}{DRY}", body)
        assert code == 201, answer
        annotations: Body = orjson.loads(answer)["metadata"].get("annotations", {})
        return annotations

    until(lambda: annotations_of_new(named(None, None)) != {})

    assert annotations_of_new(named(None, None)) == {"grove.io/auto-mnnvl": "enabled"}
    assert annotations_of_new(put(named(None, None), {"metadata.annotations": {"a": "b"}})) == {"a": "b", "grove.io/auto-mnnvl": "enabled"}
    assert annotations_of_new(named(None, None, gpus=False)) == {}
    assert annotations_of_new(named(None, "disabled")) == {"grove.io/auto-mnnvl": "disabled"}
