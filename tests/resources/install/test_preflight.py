"""What every installation needs: our kinds, permissions, and the version of the server."""

import pytest

from engine.ids import Kind
from providers.registry import fabrics
from resources.base import kinds
from resources.install.permissions import Permission, permissions
from resources.install.preflight import checks, failed, required_kinds
from resources.ports.checks import CheckResult, Severity
from resources.ports.configuration import Configuration
from resources.ports.inspection import Installation
from resources.ports.queries import QueryResults, ServedApis
from resources.registry import BLUEPRINTS
from resources.settings import Network, Settings

ALL = ServedApis(frozenset((kind.group, kind.version, kind.plural) for kind in kinds.OURS), version={"gitVersion": "v1.35.0"})
FABRICS = fabrics(Settings())


def test_the_permissions_follow_the_tables_by_which_the_engine_reads_and_writes() -> None:
    configuration = Configuration({}, "", fabrics=FABRICS)
    found = {(permission.resource, permission.kind.group): permission for permission in permissions(BLUEPRINTS, configuration, "there")}

    for blueprint in BLUEPRINTS:
        for kind in blueprint.children(configuration):
            assert {"get", "list", "watch", "create", "patch", "delete"} <= set(found[kind.plural, kind.group].verbs)
        for kind in blueprint.references(configuration):
            assert {"get", "list", "watch"} <= set(found[kind.plural, kind.group].verbs)
    assert found["computedomains", "resource.nvidia.com"].verbs == ("get", "list", "watch", "create", "patch", "delete")
    assert found["resourceclaimtemplates", "resource.k8s.io"].verbs == ("get", "list", "watch")
    assert found["podcliquesets/finalizers", "grove.io"].verbs == ("update",)
    assert found["podcliquesets/status", "grove.io"].verbs == ("patch",)
    assert "delete" not in found["podcliquesets", "grove.io"].verbs
    assert "create" in found["events", ""].verbs
    assert found["leases", "coordination.k8s.io"].namespace == "there"


def test_a_fabric_that_is_not_configured_needs_no_permission() -> None:
    assert "computedomains" not in {permission.resource for permission in permissions(BLUEPRINTS, Configuration({}, ""), "")}


def test_each_kind_and_subresource_occurs_once() -> None:
    configuration = Configuration({}, "", fabrics=FABRICS, topology=True)
    found = [(permission.resource, permission.kind.group) for permission in permissions(BLUEPRINTS, configuration, "")]

    assert len(found) == len(set(found))


@pytest.mark.parametrize("kind", kinds.OURS, ids=lambda kind: kind.plural)
def test_preflight_fails_without_one_of_our_kinds_unless_workloads_run_without_it(kind: Kind) -> None:
    less = ServedApis(ALL.kinds - {(kind.group, kind.version, kind.plural)})
    found = list(checks(Installation(less, QueryResults(), ()), {}, ()))

    needed = kind != kinds.TOPOLOGY_BINDING
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


def test_denied_permissions_are_listed_by_kind_and_the_others_are_counted() -> None:
    pods, nodes, leases = Permission(kinds.POD, ("list", "create")), Permission(kinds.NODE, ("list",)), Permission(kinds.LEASE, ("get",))
    found = {
        check.subject: check for check in checks(Installation(ALL, QueryResults(), ()), {pods: (), nodes: ("list",), leases: "not you"}, ())
    }

    assert found["permissions"].finding == "2 verbs on 1 resources are allowed"
    assert (found["permissions on nodes"].outcome, found["permissions on nodes"].finding) == (CheckResult.BAD, "may not list")
    assert found["permissions on leases.coordination.k8s.io"].finding == "cannot be judged: not you"


def test_compute_domains_are_required_only_with_automatic_domains() -> None:
    on = fabrics(Settings(network=Network(autoMNNVLEnabled=True)))

    assert (list(required_kinds(FABRICS)), [kind.plural for kind, _ in required_kinds(on)]) == ([], ["computedomains"])
