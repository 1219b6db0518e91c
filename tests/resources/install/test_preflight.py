"""What every installation needs: our kinds, permissions, and the version of the server."""

from collections import Counter

import pytest

from engine.ids import Kind
from engine.observed import Live, live
from providers.registry import SCHEDULERS, fabrics
from providers.schedulers.kai import KaiScheduler
from providers.schedulers.kube import KubeScheduler, kube_scheduler
from providers.schedulers.lpx import LpxScheduler
from providers.schedulers.volcano import VolcanoScheduler
from resources.base import kinds
from resources.install.permissions import Permission, permissions
from resources.install.preflight import GRAPH_CRD, GROUPS_CRD, checks, failed
from resources.ports.checks import CheckResult, Installation, QueryResult, QueryResults, ServedApis, Severity
from resources.ports.configuration import Configuration, GangMode, required_kinds
from resources.ports.scheduler import Scheduler
from resources.registry import BLUEPRINTS
from resources.schema.crds import Conversion, crds
from resources.settings import Network, Settings
from tests.builders import clique, podcliqueset

ALL = ServedApis(frozenset((kind.group, kind.version, kind.plural) for kind in kinds.DEFINED), version={"gitVersion": "v1.35.0"})
FABRICS = fabrics(Settings())
POD_GROUPS = (kinds.POD_GROUP, kinds.WORKLOAD, kinds.COMPOSITE_POD_GROUP)


def test_the_permissions_follow_the_tables_by_which_the_engine_reads_and_writes() -> None:
    configuration = Configuration({}, "", fabrics=FABRICS)
    found = {(permission.resource, permission.kind.group): permission for permission in permissions(BLUEPRINTS, configuration, "there")}

    for blueprint in BLUEPRINTS:
        for kind in blueprint.children(configuration):
            never = {kinds.PVC: {"patch"}, kinds.PODGANG_MAP: {"create", "patch"}}.get(kind, set())
            assert {"get", "list", "watch", "create", "patch", "delete"} - never <= set(found[kind.plural, kind.group].verbs)
        for kind in blueprint.references(configuration):
            assert {"list", "watch"} <= set(found[kind.plural, kind.group].verbs)
    assert found["computedomains", "resource.nvidia.com"].verbs == ("get", "list", "watch", "create", "patch", "delete")
    assert found["resourceclaimtemplates", "resource.k8s.io"].verbs == ("list", "watch")
    assert found["podcliquesets/finalizers", "grove.io"].verbs == ("update",)
    assert found["podcliquesets/status", "grove.io"].verbs == ("patch",)
    assert "delete" not in found["clustertopologybindings", "grove.io"].verbs
    assert "create" in found["events", ""].verbs
    assert found["leases", "coordination.k8s.io"].namespace == "there"


def test_a_fabric_that_is_not_configured_needs_no_permission() -> None:
    assert "computedomains" not in {permission.resource for permission in permissions(BLUEPRINTS, Configuration({}, ""), "")}


def test_a_graph_needs_the_right_to_delete_its_set_and_to_scale_what_runs_its_services() -> None:
    configuration = Configuration({}, "")
    sets, graphs = (
        {(permission.resource, permission.kind.group): permission.verbs for permission in permissions(blueprints, configuration, "")}
        for blueprints in ([blueprint for blueprint in BLUEPRINTS if blueprint.kind != kinds.DYNAMO_GRAPH], BLUEPRINTS)
    )

    assert "delete" not in sets["podcliquesets", "grove.io"]
    assert {"create", "patch", "delete"} <= set(graphs["podcliquesets", "grove.io"])
    assert graphs["podcliques/scale", "grove.io"] == graphs["podcliquescalinggroups/scale", "grove.io"] == ("patch",)
    assert graphs["dynamographdeployments/status", "nvidia.com"] == ("patch",)
    assert graphs["dynamographdeployments/finalizers", "nvidia.com"] == ("update",)
    for name, group in (("deployments", "apps"), ("ingresses", "networking.k8s.io"), ("persistentvolumeclaims", ""), ("secrets", "")):
        assert {"get", "create", "delete"} <= set(graphs[name, group])
        assert ("patch" in graphs[name, group]) is (name != "persistentvolumeclaims")
    assert graphs["queues", "scheduling.run.ai"] == ("list", "watch")


def test_rights_on_kinds_of_an_add_on_that_the_cluster_does_not_have_do_not_matter() -> None:
    missing = {Permission(kinds.LEADER_WORKER_SET, ("create",)): ("create",), Permission(kinds.POD, ("create",)): ("create",)}
    with_lws = ServedApis(ALL.kinds | {("leaderworkerset.x-k8s.io", "v1", "leaderworkersets")})
    without, having = (
        [check.subject for check in checks(Installation(apis, QueryResults(), ()), missing, ()) if check.outcome is CheckResult.BAD]
        for apis in (ALL, with_lws)
    )

    assert without == ["permissions on pods"]
    assert having == ["permissions on pods", "permissions on leaderworkersets.leaderworkerset.x-k8s.io"]


def test_each_kind_and_subresource_occurs_once_except_for_the_lease() -> None:
    configuration = Configuration({}, "", fabrics=FABRICS, topology=True)
    found = [(permission.resource, permission.kind.group) for permission in permissions(BLUEPRINTS, configuration, "")]

    assert [resource for resource, count in Counter(found).items() if count > 1] == [("leases", "coordination.k8s.io")]


@pytest.mark.parametrize("kind", [kinds.DYNAMO_GRAPH, kinds.SCALING_ADAPTER], ids=lambda kind: kind.plural)
def test_a_kind_that_is_served_in_its_newer_version_alone_is_there(kind: Kind) -> None:
    (newer,) = kinds.newer(kind)
    served = ALL.kinds - {(kind.group, kind.version, kind.plural)} | {(newer.group, newer.version, newer.plural)}
    found = {check.subject: check for check in checks(Installation(ServedApis(served), QueryResults(), ()), {}, ())}

    assert found[f"CRD {kind.plural}.{kind.group}"].finding == "v1beta1 is served"


@pytest.mark.parametrize("kind", kinds.DEFINED, ids=lambda kind: kind.plural)
def test_preflight_fails_without_one_of_our_kinds_unless_workloads_run_without_it(kind: Kind) -> None:
    less = ServedApis(ALL.kinds - {(kind.group, kind.version, kind.plural)})
    found = list(checks(Installation(less, QueryResults(), ()), {}, ()))

    needed = kind not in (kinds.TOPOLOGY_BINDING, kinds.DYNAMO_GRAPH, kinds.SCALING_ADAPTER)
    assert failed(found) is needed and not failed(checks(Installation(ALL, QueryResults(), ()), {}, ()))
    (bad,) = [check for check in found if check.outcome is CheckResult.BAD]
    assert (bad.subject, bad.level) == (f"CRD {kind.plural}.{kind.group}", Severity.HARD if needed else Severity.WARNING)


@pytest.mark.parametrize(
    ("version", "finding"),
    [("v1.34.1", "v1.34.1"), ("v1.33.5-gke-1080000", "v1.33.5-gke-1080000 (GKE)"), ("v1.32.9-eks-3cfe0ce", "v1.32.9-eks-3cfe0ce (EKS)")],
)
def test_the_version_of_the_server_names_its_platform(version: str, finding: str) -> None:
    first, *_ = checks(Installation(ServedApis(version={"gitVersion": version}), QueryResults(), ()), {}, ())

    assert (first.subject, first.level, first.finding) == ("server version", Severity.INFO, finding)


@pytest.mark.parametrize("version", [{}, {"gitVersion": ""}, {"gitVersion": 7}, {"gitVersion": None}])
def test_a_server_without_a_version_cannot_be_judged(version: dict[str, object]) -> None:
    first, *_ = checks(Installation(ServedApis(version=version), QueryResults(), ()), {}, ())

    assert first.outcome is CheckResult.UNKNOWN


@pytest.mark.parametrize(
    ("scheduler", "missing"),
    [
        (KubeScheduler(), []),
        (LpxScheduler(), []),
        (KaiScheduler(), ["podgroups.scheduling.run.ai", "topologies.kai.scheduler"]),
        (VolcanoScheduler(), ["podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"]),
    ],
)
def test_the_kinds_of_enabled_schedulers_are_checked_and_their_absence_is_a_warning(scheduler: Scheduler, missing: list[str]) -> None:
    served = ServedApis(ALL.kinds.union((kind.group, kind.version, kind.plural) for kind in kinds.KINDS))
    less, more = (list(checks(Installation(apis, QueryResults(), ()), {}, (), (scheduler,))) for apis in (ALL, served))

    bad = [check for check in less if check.outcome is CheckResult.BAD and check.subject != "gangs"]
    assert [check.subject for check in bad] == [f"CRD {name} of {scheduler.name}" for name in missing]
    assert all(check.level is Severity.WARNING for check in bad) and not failed(less)
    assert [check.subject for check in more if check.outcome is CheckResult.BAD and check.subject != "gangs"] == []


@pytest.mark.parametrize(
    ("served", "named", "listed", "is_note"),
    [
        ((), (), False, True),
        ((), None, False, False),
        ((), ("kai-scheduler",), False, False),
        ((), (), True, False),
        ((kinds.KAI_TOPOLOGY,), (), False, False),
    ],
)
def test_a_scheduler_that_is_neither_configured_nor_used_is_a_note(
    served: tuple[Kind, ...], named: tuple[str, ...] | None, listed: bool, is_note: bool
) -> None:
    apis = ServedApis(ALL.kinds.union((kind.group, kind.version, kind.plural) for kind in served))
    sets = [podcliqueset("web", clique("a", pod_spec={"schedulerName": name})) for name in named or ()]
    where_served = "" if listed else "kai-scheduler"

    stored = tuple(map(live, sets)) if named is not None else None
    found = checks(Installation(apis, QueryResults(), stored), {}, (), (KaiScheduler(),), where_served=where_served)
    shown = [check for check in found if "kai-scheduler" in check.subject]

    assert (
        [(check.subject, check.level, check.outcome) for check in shown] == [("kai-scheduler", Severity.INFO, CheckResult.GOOD)]
    ) is is_note
    assert any(check.outcome is CheckResult.BAD for check in shown) is not is_note


ONE_BY_ONE = "default-scheduler places their pods one by one"


@pytest.mark.parametrize(
    ("schedulers", "served", "expected"),
    [
        ((KubeScheduler(),), False, (Severity.WARNING, CheckResult.BAD, f"no scheduler schedules gangs: {ONE_BY_ONE}")),
        ((KubeScheduler(), KaiScheduler()), False, (Severity.WARNING, CheckResult.BAD, f"no scheduler schedules gangs: {ONE_BY_ONE}")),
        ((KubeScheduler(), KaiScheduler()), True, (Severity.INFO, CheckResult.GOOD, f"scheduled by kai-scheduler; {ONE_BY_ONE}")),
        ((VolcanoScheduler(), LpxScheduler()), True, (Severity.INFO, CheckResult.GOOD, "scheduled by volcano, lpx-scheduler")),
        ((LpxScheduler(),), False, (Severity.INFO, CheckResult.GOOD, "scheduled by lpx-scheduler")),
    ],
)
def test_one_check_says_which_schedulers_schedule_gangs(
    schedulers: tuple[Scheduler, ...], served: bool, expected: tuple[Severity, CheckResult, str]
) -> None:
    apis = ServedApis(ALL.kinds.union((kind.group, kind.version, kind.plural) for kind in kinds.KINDS)) if served else ALL

    (check,) = (check for check in checks(Installation(apis, QueryResults(), ()), {}, (), schedulers) if check.subject == "gangs")

    assert (check.level, check.outcome, check.finding) == expected
    assert bool(check.remedy) == (check.outcome is CheckResult.BAD)


def test_denied_permissions_are_listed_by_kind_and_the_others_are_counted() -> None:
    pods, nodes, leases = Permission(kinds.POD, ("list", "create")), Permission(kinds.NODE, ("list",)), Permission(kinds.LEASE, ("get",))
    found = {
        check.subject: check for check in checks(Installation(ALL, QueryResults(), ()), {pods: (), nodes: ("list",), leases: "not you"}, ())
    }

    assert found["permissions"].finding == "2 verbs on 1 resources are allowed"
    assert (found["permissions on nodes"].outcome, found["permissions on nodes"].finding) == (CheckResult.BAD, "may not list")
    assert found["permissions on leases.coordination.k8s.io"].finding == "cannot be judged: not you"


def test_many_missing_permissions_are_one_check_that_names_them_all_by_their_verbs() -> None:
    writes, reads = ("create", "delete"), ("list",)
    missing = {Permission(kind, writes): writes for kind in (kinds.POD, kinds.SERVICE, kinds.ROLE)}
    lease = Permission(kinds.LEASE, ("get", "update"), namespace="there", names=("leader",))
    rights = {**missing, Permission(kinds.NODE, reads): reads, lease: ("update",)}

    bad = [check for check in checks(Installation(ALL, QueryResults(), ()), rights, ()) if check.outcome is CheckResult.BAD]

    assert [(check.subject, check.finding) for check in bad] == [
        (
            "permissions on 5 resources",
            "may not list: nodes; create, delete: pods, services, roles.rbac.authorization.k8s.io; "
            "update: leases.coordination.k8s.io leader in namespace there",
        )
    ]


@pytest.mark.parametrize("others", [0, 9])
def test_an_account_that_may_not_list_sets_fails_and_one_that_lacks_anything_else_is_warned(others: int) -> None:
    def failing(*lacking: Permission) -> bool:
        rest = [Permission(kinds.POD, ("list",), namespace=f"team-{number}") for number in range(others)]
        return failed(checks(Installation(ALL, QueryResults(), ()), {each: each.verbs for each in (*lacking, *rest)}, ()))

    assert failing(Permission(kinds.PODCLIQUESET, ("list", "watch")))
    assert failing(Permission(kinds.PODCLIQUESET, ("list",), namespace="team-a"))
    assert not failing(Permission(kinds.PODCLIQUESET, ("watch",)), Permission(kinds.PODCLIQUESET, ("patch",), "status"))


def test_compute_domains_are_required_only_with_automatic_domains() -> None:
    on = fabrics(Settings(network=Network(autoMNNVLEnabled=True)))
    kinds_of = [list(required_kinds(Configuration(SCHEDULERS, "default-scheduler", fabrics=each))) for each in (FABRICS, on)]

    assert [[kind.plural for kind, _ in required] for required in kinds_of] == [[], ["computedomains"]]


@pytest.mark.parametrize(
    ("permission", "commands"),
    [
        (
            Permission(kinds.PODCLIQUESET, ("patch",), "status"),
            "kubectl create clusterrole engine-podcliquesets-status --verb=patch --resource=podcliquesets.grove.io/status, "
            "then kubectl create clusterrolebinding engine-podcliquesets-status --clusterrole=engine-podcliquesets-status ",
        ),
        (
            Permission(kinds.LEASE, ("get", "patch"), namespace="there"),
            "kubectl create role engine-leases -n there --verb=patch --resource=leases.coordination.k8s.io, then kubectl create "
            "rolebinding engine-leases -n there --role=engine-leases ",
        ),
        (Permission(kinds.POD, ("patch",)), "kubectl create clusterrole engine-pods --verb=patch --resource=pods, then "),
    ],
)
def test_a_missing_permission_comes_with_the_commands_that_grant_it(permission: Permission, commands: str) -> None:
    (check,) = (
        one
        for one in checks(Installation(ALL, QueryResults(), ()), {permission: ("patch",)}, ())
        if one.subject.startswith("permissions on")
    )

    assert check.outcome is CheckResult.BAD and commands in check.remedy


def crd(storage: str, *, converts: bool, authority: str = "Q0E=") -> Live:
    """The definition of graphs."""
    conversion = Conversion({"name": "hooks", "namespace": "dynamo", "path": "/convert", "port": 443}, storage) if converts else None
    (body,) = (each for each in crds(conversion) if each["spec"]["names"]["kind"] == kinds.DYNAMO_GRAPH.name)
    if authority and converts:
        body["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = authority
    return live({**body, "metadata": {**body["metadata"], "uid": "u"}})


@pytest.mark.parametrize(
    ("definition", "outcome", "finding"),
    [
        (crd("v1alpha1", converts=False), None, ""),
        (
            crd("v1beta1", converts=True),
            CheckResult.GOOD,
            "v1beta1; Service dynamo/hooks converts v1alpha1: while it does not answer, graphs of v1alpha1 are refused; apply no "
            "definition that stores another version: engine manifests crds --converter NAMESPACE --graph-storage v1beta1",
        ),
        (
            crd("v1beta1", converts=True, authority=""),
            CheckResult.BAD,
            "stored as v1beta1, and the API server does not trust Service dynamo/hooks, which converts v1alpha1: such graphs are refused",
        ),
    ],
)
def test_how_graphs_are_stored_and_converted_is_told_before_another_definition_is_applied(
    definition: Live, outcome: CheckResult | None, finding: str
) -> None:
    results = QueryResults({GRAPH_CRD: QueryResult((definition,))})
    found = [one for one in checks(Installation(ALL, results, ()), {}, ()) if one.subject == "storage of DynamoGraphDeployments"]

    assert [(one.outcome, one.finding) for one in found] == ([(outcome, finding)] if outcome else [])


@pytest.mark.parametrize(
    ("template", "served", "outcome"),
    [
        ({"properties": {"spec": {"properties": {"containers": {}}}}}, POD_GROUPS, CheckResult.BAD),
        ({"properties": {"spec": {"properties": {"schedulingGroup": {}}}}}, POD_GROUPS, CheckResult.GOOD),
        ({"x-kubernetes-preserve-unknown-fields": True}, POD_GROUPS, CheckResult.GOOD),
        ({"properties": {"spec": {"properties": {"containers": {}}}}}, (*POD_GROUPS, kinds.VOLCANO_POD_GROUP), None),
        ({"properties": {"spec": {"properties": {"containers": {}}}}}, (), None),
    ],
    ids=["before 0.9", "0.9", "any fields", "Volcano schedules them", "no gangs"],
)
def test_a_check_says_whether_leader_worker_sets_keep_the_group_of_their_pods(
    template: dict[str, object], served: tuple[Kind, ...], outcome: CheckResult | None
) -> None:
    apis = ServedApis(ALL.kinds | {(kind.group, kind.version, kind.plural) for kind in (*served, kinds.LEADER_WORKER_SET)})
    spec = {"properties": {"leaderWorkerTemplate": {"properties": {"workerTemplate": template}}}}
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": GROUPS_CRD.name}}
    results = QueryResults({GROUPS_CRD: QueryResult((live({**head, "spec": {"versions": [version]}}),))})

    found = list(checks(Installation(apis, results, ()), {}, (), (kube_scheduler(GangMode.AUTO),)))

    assert [check.outcome for check in found if check.subject == "gangs of LeaderWorkerSets"] == ([outcome] if outcome else [])
