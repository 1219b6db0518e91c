"""Gangs of kube-scheduler whose topology has several levels: a Workload, CompositePodGroups and a PodGroup for each clique."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.answer import FailedCall
from engine.errors import Invalid
from engine.ids import Kind
from engine.operation import body_of, parent_of
from engine.verb import Verb
from providers.fabrics.nvidia.fabric import Nvidia
from providers.schedulers.pod_groups import NO_TOPOLOGY, PARENT_STAYS
from resources.admission.topology_rules import binding_issues
from resources.base import kinds
from resources.base.labels import GANG_TOPOLOGY
from resources.schema.parse import parse
from resources.schema.topology import ClusterTopologyBinding
from tests.builders import clique, group, podcliqueset
from tests.laws.native import HIERARCHIES, NATIVE, ROOT, Native
from tests.laws.toy import Body
from tests.resources.blueprints.test_kai_topology import halls

ZONE, RACK, HOST = "example.com/zone", "example.com/rack", "example.com/host"
KINDS = ("Workload", "CompositePodGroup", "PodGroup")


def hall() -> dict[str, Any]:
    """A binding of zones, racks and hosts."""
    levels = [{"domain": domain, "key": key} for domain, key in (("zone", ZONE), ("rack", RACK), ("host", HOST))]
    kind = kinds.TOPOLOGY_BINDING
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "hall"}, "spec": {"levels": levels}}


def web(
    *, of_set: str = "", of_group: str = "", of_clique: str = "", side: str = "required", members: int = 2, **template: Any
) -> dict[str, Any]:
    """A set with a clique `a` and a group `g`, each of which may have a constraint; `of_clique` is that of the first member."""

    def pack(domain: str) -> dict[str, Any]:
        return {"topologyConstraint": {"topologyName": "hall", "pack": {side: domain}}} if domain else {}

    names = [f"m{number}" for number in range(members)]
    cliques = [clique(name, 1) for name in names]
    cliques[0] |= pack(of_clique)
    return podcliqueset(
        "web", clique("a", 2), *cliques, groups=(group("g", *names, replicas=2) | pack(of_group),), **pack(of_set), **template
    )


def cluster_with(manifest: dict[str, Any], *, trees: bool = True) -> Native:
    """A cluster with that set, which serves hierarchies or not."""
    cluster = Native(trees=trees)
    cluster.configuration = replace(NATIVE, topology=True)
    cluster.put(hall())
    cluster.put(manifest)
    return cluster


def form(cluster: Native) -> dict[str, str]:
    """PodGang -> its form."""
    return {name: gang["metadata"]["annotations"]["engine.grove.io/gang-form"] for name, gang in cluster.of("PodGang").items()}


def key_of(body: Body) -> str:
    """The node label of a group; empty if it has none."""
    return str(body["spec"].get("schedulingConstraints", {"topology": [{"key": ""}]})["topology"][0]["key"])


def test_one_level_needs_no_hierarchy() -> None:
    cluster = cluster_with(web(of_set="zone"))
    cluster.settle()

    assert form(cluster) == {"web-0": "flat", "web-0-g-0": "flat"}
    assert {name: key_of(body) for name, body in cluster.of("PodGroup").items()} == {"web-0": ZONE, "web-0-g-0": ZONE}
    assert cluster.of("CompositePodGroup") == cluster.of("Workload") == {} and cluster.plan().notes == ()


def test_a_constraint_of_a_scaling_group_makes_a_parent_of_its_cliques_in_the_base_gang_alone() -> None:
    cluster = cluster_with(web(of_set="zone", of_group="rack"))
    plan = cluster.plan()
    cluster.settle()

    assert form(cluster) == {"web-0": "hierarchy", "web-0-g-0": "flat"}
    by_id = {operation.id: operation for operation in plan.operations if operation.verb is Verb.CREATE}
    root, racks = (kinds.COMPOSITE_POD_GROUP.id("default", name) for name in ("web-0", "web-0-g-0.group"))
    assert by_id[kinds.WORKLOAD.id("default", "web-0")].key in by_id[root].after and by_id[root].key in by_id[racks].after
    for name, parent in (("web-0-a", "web-0"), ("web-0-g-0-m0", "web-0-g-0.group"), ("web-0-g-0-m1", "web-0-g-0.group")):
        operation = by_id[kinds.POD_GROUP.id("default", f"{name}.clique")]
        assert by_id[racks].key in operation.after
        assert body_of(operation)["spec"]["parentCompositePodGroupName"] == parent

    composites = cluster.of("CompositePodGroup")
    assert {name: key_of(body) for name, body in composites.items()} == {"web-0": ZONE, "web-0-g-0.group": RACK}
    assert [body["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] for body in composites.values()] == [2, 2]
    assert composites["web-0-g-0.group"]["spec"]["parentCompositePodGroupName"] == "web-0"
    assert cluster.members() == {"web-0-a.clique": 2, "web-0-g-0-m0.clique": 1, "web-0-g-0-m1.clique": 1, "web-0-g-0": 2}
    assert key_of(cluster.of("PodGroup")["web-0-g-0"]) == RACK
    assert cluster.plan().operations == () and cluster.plan().notes == ()


def test_every_group_refers_to_a_template_of_the_workload_with_the_same_policy() -> None:
    cluster = cluster_with(web(of_set="zone", of_group="rack", of_clique="host", priorityClassName="high"))
    cluster.settle()
    (workload,) = [body for name, body in cluster.of("Workload").items() if name == "web-0"]

    def templates(holder: Body) -> dict[str, Body]:
        result: dict[str, Body] = {}
        for each in (*holder.get("podGroupTemplates", ()), *holder.get("compositePodGroupTemplates", ())):
            result |= {each["name"]: each, **templates(each)}
        return result

    by_name = templates(workload["spec"])
    groups = [body for kind in ("CompositePodGroup", "PodGroup") for body in cluster.of(kind).values() if body["spec"].get("workloadRef")]
    mine = [body for body in groups if body["spec"]["workloadRef"]["workloadName"] == "web-0"]
    assert len(mine) == len(by_name) == 5 and workload["spec"]["controllerRef"] == {
        "apiGroup": "scheduler.grove.io",
        "kind": "PodGang",
        "name": "web-0",
    }
    for body in mine:
        template = by_name.pop(body["spec"]["workloadRef"]["templateName"])
        fields = ("schedulingPolicy", "schedulingConstraints", "priorityClassName")
        assert [template.get(name) for name in fields] == [body["spec"].get(name) for name in fields]
        assert body["spec"]["priorityClassName"] == "high"


def test_the_pods_beyond_a_minimum_wait_for_the_minimum_of_every_clique() -> None:
    manifest = web(of_set="zone", of_group="rack")
    manifest["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] = 1
    cluster = cluster_with(manifest)
    cluster.room = 2
    for _ in range(3):
        cluster.make_pass()
    gated = [name for name, body in cluster.of("Pod").items() if body["spec"].get("schedulingGates")]
    assert sum(name.startswith("web-0-a-") for name in gated) == 1

    cluster.room = 10
    cluster.settle()
    assert cluster.bound() == {"web-0-a": 2, "web-0-g-0-m0": 1, "web-0-g-0-m1": 1, "web-0-g-1-m0": 1, "web-0-g-1-m1": 1}


def terms(cluster: Native, clique_name: str) -> list[tuple[str, str]]:
    """The node label and the selected cliques or gang of each term of pod affinity of the pods of a clique that are in no group."""
    pods = (cluster.objects[kinds.POD.id("default", name)] for name in cluster.pods_of(clique_name))
    (spec,) = (pod["spec"] for pod in pods if "schedulingGroup" not in pod["spec"])
    required = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [(term["topologyKey"], " ".join(selected(term["labelSelector"]))) for term in required]


def selected(selector: dict[str, Any]) -> list[str]:
    """The gang or the cliques of which the first pods are selected, which are members."""
    gang = {key: value for key, value in selector["matchLabels"].items() if (key, value) != ("grove.io/podclique-pod-index", "0")}
    assert len(gang) == len(selector["matchLabels"]) - 1
    return list(gang.values()) or selector["matchExpressions"][0]["values"]


@pytest.mark.parametrize("trees", [True, False])
def test_pods_beyond_a_minimum_are_kept_in_the_domains_of_their_gang_by_affinity(trees: bool) -> None:
    manifest = web(of_set="zone", of_group="rack", of_clique="host")
    manifest["spec"]["template"]["cliques"][1]["spec"] |= {"replicas": 2, "minAvailable": 1}
    manifest["spec"]["template"]["cliques"][0]["spec"] |= {"minAvailable": 1}
    cluster = cluster_with(manifest, trees=trees)
    cluster.settle()

    assert terms(cluster, "web-0-a") == [(ZONE, "web-0")]
    within = [(RACK, "web-0-g-0-m0 web-0-g-0-m1"), (HOST, "web-0-g-0-m0")]
    assert terms(cluster, "web-0-g-0-m0") == [(ZONE, "web-0"), *(within if trees else ())]
    members = [pod for pod in cluster.of("Pod").values() if "schedulingGroup" in pod["spec"]]
    assert members and not any("affinity" in pod["spec"] for pod in members)


@pytest.mark.parametrize("trees", [True, False])
@pytest.mark.parametrize("topology", [True, False])
def test_pods_beyond_a_minimum_are_kept_in_the_domains_that_their_gang_was_created_with(topology: bool, trees: bool) -> None:
    manifest = web(of_set="zone", of_group="rack", of_clique="host")
    manifest["spec"]["template"]["cliques"][1]["spec"] |= {"replicas": 2, "minAvailable": 1}
    cluster = cluster_with(manifest, trees=trees)
    cluster.settle()
    before = terms(cluster, "web-0-g-0-m0")
    levels = [{"domain": domain, "key": f"other/{domain}"} for domain in ("zone", "rack", "host")]
    cluster.write(kinds.TOPOLOGY_BINDING.id("", "hall"), {"spec": {"levels": levels}})
    cluster.configuration = replace(NATIVE, topology=topology)
    cluster.delete(kinds.POD.id("default", next(name for name in cluster.pods_of("web-0-g-0-m0") if is_beyond(cluster, name))))
    cluster.settle()

    assert terms(cluster, "web-0-g-0-m0") == before and (ZONE, "web-0") in before


def is_beyond(cluster: Native, pod: str) -> bool:
    """Whether a pod is in no group."""
    return "schedulingGroup" not in cluster.objects[kinds.POD.id("default", pod)]["spec"]


def test_a_pod_beyond_a_minimum_whose_spec_requires_other_pods_near_has_no_other_such_term() -> None:
    near = [{"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": RACK}]
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}}
    manifest = web(of_set="zone")
    manifest["spec"]["template"]["cliques"][0]["spec"]["minAvailable"] = 1
    manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["affinity"] = affinity
    cluster = cluster_with(manifest)
    cluster.settle()

    pods = [cluster.objects[kinds.POD.id("default", name)]["spec"] for name in cluster.pods_of("web-0-a")]
    assert [pod["affinity"] for pod in pods] == [affinity, affinity]


def test_the_groups_of_a_replica_that_is_scaled_in_below_the_minimum_go_with_it_and_nothing_is_said_of_them() -> None:
    manifest = web(of_set="zone", of_group="rack")
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["minAvailable"] = 2
    cluster = cluster_with(manifest)
    cluster.settle()
    assert set(cluster.of("CompositePodGroup")) == {"web-0", "web-0-g-0.group", "web-0-g-1.group"}
    cluster.write(kinds.SCALING_GROUP.id("default", "web-0-g"), {"spec": {"replicas": 1}})
    cluster.settle()

    assert len(cluster.of("Pod")) == 4 and cluster.plan().notes == ()
    assert set(cluster.of("CompositePodGroup")) == {"web-0", "web-0-g-0.group"}
    assert set(cluster.of("PodGroup")) == {"web-0-a.clique", "web-0-g-0-m0.clique", "web-0-g-0-m1.clique"}
    assert cluster.plan().operations == () and cluster.plan().later == ()
    cluster.write(kinds.SCALING_GROUP.id("default", "web-0-g"), {"spec": {"replicas": 2}})
    cluster.settle()

    assert cluster.members()["web-0-g-1-m0.clique"] == 1 and "web-0-g-1.group" in cluster.of("CompositePodGroup")


def test_where_hierarchies_are_not_served_a_gang_is_flat_and_a_note_says_what_has_no_effect() -> None:
    cluster = cluster_with(web(of_set="zone", of_group="rack"), trees=False)
    cluster.settle()

    assert cluster.unserved == HIERARCHIES and form(cluster)["web-0"] == "flat"
    assert cluster.plan().notes == (
        "topology constraints of single cliques and scaling groups have no effect in gangs of kube-scheduler with one PodGroup each: "
        "the cluster does not serve CompositePodGroup",
    )


def test_more_groups_than_a_list_of_a_workload_takes_are_flat_with_a_note() -> None:
    cluster = cluster_with(web(of_set="zone", of_group="rack", members=9))
    cluster.settle()

    assert form(cluster)["web-0"] == "flat"
    (note,) = cluster.plan().notes
    assert note.endswith("a hierarchy has at most 8 groups in one and 4 levels")


def test_preferred_levels_have_no_effect_and_a_note_says_so() -> None:
    cluster = cluster_with(web(of_set="zone", side="preferred"))
    cluster.settle()

    assert {key_of(body) for body in cluster.of("PodGroup").values()} == {""}
    assert cluster.plan().notes == ("kube-scheduler keeps gangs to required topology levels only: preferred levels have no effect",)


def test_a_topology_that_the_server_drops_is_told_once_recorded_and_never_sent_again() -> None:
    cluster = cluster_with(web(of_set="zone"))
    cluster.make_pass()
    for name in cluster.of("PodGroup"):
        cluster.write(kinds.POD_GROUP.id("default", name), {"spec": {"schedulingConstraints": None}})
    cluster.settle()

    plan = cluster.plan()
    assert plan.operations == () and plan.notes == (NO_TOPOLOGY,)
    assert {body["metadata"]["annotations"][GANG_TOPOLOGY] for body in cluster.of("PodGang").values()} == {"unsupported"}


def refusals(cluster: Native, reason: str = "FieldValueForbidden") -> dict[str, FailedCall]:
    """PodGang -> what the server says of the first of its objects with a topology, without which everything else but pods is created."""
    causes = [{"reason": reason, "field": "spec.schedulingConstraints", "message": "no"}]
    error = Invalid("is invalid", status={"kind": "Status", "details": {"causes": causes}})
    calls: dict[str, FailedCall] = {}
    for operation in cluster.plan().operations:
        if "schedulingConstraints" in str(body_of(operation)) and (parent := parent_of(operation)) is not None:
            calls.setdefault(parent[1], FailedCall(Verb.CREATE, operation.id, parent, error, cluster.now))
        elif operation.id.kind != "Pod":
            cluster.call(operation)
    return calls


def repeated(cluster: Native, *calls: FailedCall) -> None:
    """A pass that knows of these failed calls, and those that follow."""
    cluster.failed_calls = {ROOT: calls}
    cluster.make_pass()
    cluster.failed_calls = {ROOT: ()}
    cluster.settle()


@pytest.mark.parametrize("of_group", ["", "rack"])
def test_a_gang_is_created_without_the_topology_that_the_server_refuses(of_group: str) -> None:
    cluster = cluster_with(web(of_set="zone", of_group=of_group))
    repeated(cluster, *refusals(cluster).values())

    assert not any("schedulingConstraints" in body["spec"] for kind in KINDS for body in cluster.of(kind).values())
    plan = cluster.plan()
    assert plan.operations == () and plan.notes == (NO_TOPOLOGY,)


@pytest.mark.parametrize(("refused", "reason"), [("web-0-g-0", "FieldValueForbidden"), ("web-0", "FieldValueInvalid")])
def test_a_gang_keeps_its_topology_where_another_is_refused_or_for_another_reason(refused: str, reason: str) -> None:
    cluster = cluster_with(web(of_set="zone"))
    repeated(cluster, refusals(cluster, reason)[refused])

    assert key_of(cluster.of("PodGroup")["web-0"]) == ZONE
    assert GANG_TOPOLOGY not in cluster.of("PodGang")["web-0"]["metadata"]["annotations"]


def test_a_topology_that_is_asked_for_later_is_told_as_one_that_the_group_does_not_have() -> None:
    cluster = cluster_with(web())
    cluster.settle()
    cluster.write(ROOT, {"spec": {"template": {"topologyConstraint": {"topologyName": "hall", "pack": {"required": "zone"}}}}})
    domains = of_domains()
    del domains["spec"]["template"]["cliques"][0], domains["metadata"]["annotations"]["engine.grove.io/domain-placement"]
    joined = with_domains(domains, trees=False)
    joined.write(ROOT, {"metadata": {"annotations": {"engine.grove.io/domain-placement": "required"}}})

    for each in (cluster, joined):
        each.make_pass()
        each.make_pass()
        assert any(note.startswith("PodGroup web-0 has no topology constraint although one ") for note in each.plan().notes)
        assert not any(GANG_TOPOLOGY in body["metadata"]["annotations"] for body in each.of("PodGang").values())


def test_a_topology_that_an_edit_changes_stays_as_it_was_created() -> None:
    cluster = cluster_with(web(of_set="zone"))
    cluster.settle()
    cluster.write(kinds.TOPOLOGY_BINDING.id("", "hall"), {"spec": {"levels": [{"domain": "zone", "key": "other/zone"}]}})
    plan = cluster.plan()

    assert [operation for operation in plan.operations if operation.id.kind == "PodGroup"] == []
    assert any(f"PodGroup web-0 keeps its pods to one {ZONE} although one other/zone is required" in note for note in plan.notes)


def test_a_parent_whose_constraint_is_no_longer_required_stays_as_its_groups_name_it_and_nothing_waits_for_that() -> None:
    cluster = cluster_with(web(of_set="zone", of_group="rack"))
    cluster.settle()
    before = cluster.of("CompositePodGroup")
    cluster.configuration = replace(NATIVE, topology=False)
    cluster.settle()

    plan = cluster.plan()
    assert cluster.of("CompositePodGroup") == before and set(before) == {"web-0", "web-0-g-0.group"}
    assert (plan.operations, plan.deferred, plan.pending) == ((), (), ())
    assert PARENT_STAYS.format(group="web-0-g-0.group") in plan.notes

    cluster.delete(kinds.PODCLIQUESET.id("default", "web"))
    while kinds.PODCLIQUESET.id("default", "web") in cluster.objects:
        assert cluster.make_pass().operations
    assert [id.kind for id in cluster.objects] == ["ClusterTopologyBinding"]


def test_a_hierarchy_is_deleted_from_the_pods_upwards() -> None:
    cluster = cluster_with(web(of_set="zone", of_group="rack"))
    cluster.settle()
    cluster.delete(kinds.PODCLIQUESET.id("default", "web"))
    deleted: list[str] = []
    for _ in range(20):
        if kinds.PODCLIQUESET.id("default", "web") not in cluster.objects:
            break
        deleted += [operation.id.kind for operation in cluster.make_pass().operations if operation.verb is Verb.DELETE]

    assert [kind for kind in dict.fromkeys(deleted) if kind in (*KINDS, "Pod")] == ["Pod", "PodGroup", "CompositePodGroup", "Workload"]
    assert [id.kind for id in cluster.objects] == ["ClusterTopologyBinding"]


@pytest.mark.parametrize(
    ("kind", "name"), [(kinds.WORKLOAD, "web-0"), (kinds.COMPOSITE_POD_GROUP, "web-0-g-0.group"), (kinds.POD_GROUP, "web-0-a.clique")]
)
def test_a_foreign_object_with_the_name_of_a_part_blocks_the_gang_and_the_reason_names_its_podgang(kind: Kind, name: str) -> None:
    cluster = cluster_with(web(of_group="rack"))
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "web"}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    cluster.put({"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": {}})
    for _ in range(5):
        cluster.make_pass()

    why = f"{kind.name} default/{name} already exists but is not controlled by PodGang default/web-0"
    assert (kind.id("default", name), why, True) in [(wait.id, wait.why, wait.blocked) for wait in cluster.plan().deferred]
    assert [pod for pod in cluster.of("Pod").values() if pod["metadata"]["labels"]["grove.io/podgang"] == "web-0"] == []


def test_a_binding_may_name_kube_scheduler_which_reads_node_labels() -> None:
    binding = hall()
    binding["spec"]["schedulerTopologyBindings"] = [{"schedulerName": "default-scheduler", "topologyReference": "labels"}]
    cluster = halls(binding)
    cluster.configuration = NATIVE
    parsed = cast(ClusterTopologyBinding, parse(kinds.TOPOLOGY_BINDING, binding, strict=False))
    assert list(binding_issues(parsed, NATIVE)) == []
    cluster.settle()
    assert cluster.entry() == ("default-scheduler", "labels", True, "InSync")

    cluster.unserved = frozenset({kinds.POD_GROUP.key})
    cluster.settle()
    assert cluster.entry()[3] == "scheduler backend does not implement topology-aware scheduling"


def of_domains(**annotations: str) -> dict[str, Any]:
    """A set whose cliques with GPUs share a domain that is kept in one NVLink clique; the front end is outside."""
    gpus = {"containers": [{"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    cliques = (clique("front"), clique("p", 2, podSpec=gpus), clique("d", 2, podSpec=gpus))
    manifest = podcliqueset("web", *cliques)
    manifest["metadata"]["annotations"] = {"grove.io/auto-mnnvl": "enabled", "engine.grove.io/domain-placement": "required", **annotations}
    return manifest


def with_domains(manifest: dict[str, Any], *, trees: bool) -> Native:
    """A cluster with NVIDIA's fabric and that set."""
    cluster = Native(trees=trees)
    cluster.configuration = replace(NATIVE, fabrics=(Nvidia(auto=True),))
    cluster.put(manifest)
    cluster.make_pass()
    return cluster


def test_the_cliques_of_a_domain_have_a_parent_that_keeps_them_in_one_nvlink_clique() -> None:
    cluster = with_domains(of_domains(), trees=True)

    composites = cluster.of("CompositePodGroup")
    assert {name: key_of(body) for name, body in composites.items()} == {"web-0": "", "web-0-island-0.group": "nvidia.com/gpu.clique"}
    parents = {name: body["spec"]["parentCompositePodGroupName"] for name, body in cluster.of("PodGroup").items()}
    assert parents == {
        "web-0-d.clique": "web-0-island-0.group",
        "web-0-front.clique": "web-0",
        "web-0-p.clique": "web-0-island-0.group",
    }


def test_a_gang_all_of_which_is_in_one_domain_is_flat_with_the_key_of_its_nvlink_clique() -> None:
    manifest = of_domains()
    del manifest["spec"]["template"]["cliques"][0]
    cluster = with_domains(manifest, trees=False)

    assert {name: key_of(body) for name, body in cluster.of("PodGroup").items()} == {"web-0": "nvidia.com/gpu.clique"}


def test_a_preferred_island_is_left_to_pod_affinity() -> None:
    manifest = of_domains(**{"engine.grove.io/domain-placement": "preferred"})
    cluster = with_domains(manifest, trees=True)

    assert form(cluster) == {"web-0": "flat"} and key_of(cluster.of("PodGroup")["web-0"]) == ""
