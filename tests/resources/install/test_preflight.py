"""What any installation needs: our kinds, permissions, a server that says what it is."""

import pytest

from engine.ids import Kind
from providers.registry import fabrics
from resources.base import kinds
from resources.install.permissions import Permission, permissions
from resources.install.preflight import checks, demands, failed
from resources.ports.checks import Level, Outcome
from resources.ports.configuration import Configuration
from resources.ports.inspection import Installation
from resources.ports.queries import QueryResults, ServedApis
from resources.registry import BLUEPRINTS
from resources.settings import Network, Settings

ALL = ServedApis(frozenset((kind.group, kind.version, kind.plural) for kind in kinds.OURS), version={"gitVersion": "v1.35.0"})
FABRICS = fabrics(Settings())


def test_what_must_be_allowed_follows_the_tables_by_which_we_look_and_write() -> None:
    setup = Configuration({}, "", fabrics=FABRICS)
    found = {(one.resource, one.kind.group): one for one in permissions(BLUEPRINTS, setup, "there")}

    for blueprint in BLUEPRINTS:
        for kind in blueprint.children(setup):
            assert {"get", "list", "watch", "create", "patch", "delete"} <= set(found[kind.plural, kind.group].verbs)
        for kind in blueprint.references(setup):
            assert {"get", "list", "watch"} <= set(found[kind.plural, kind.group].verbs)
    assert found["computedomains", "resource.nvidia.com"].verbs == ("get", "list", "watch", "create", "patch", "delete")
    assert found["resourceclaimtemplates", "resource.k8s.io"].verbs == ("get", "list", "watch")
    assert found["podcliquesets/finalizers", "grove.io"].verbs == ("update",)
    assert found["podcliquesets/status", "grove.io"].verbs == ("patch",)
    assert "delete" not in found["podcliquesets", "grove.io"].verbs
    assert "create" in found["events", ""].verbs
    assert found["leases", "coordination.k8s.io"].namespace == "there"


def test_a_fabric_that_is_not_there_needs_no_permission() -> None:
    assert "computedomains" not in {one.resource for one in permissions(BLUEPRINTS, Configuration({}, ""), "")}


def test_each_kind_is_asked_about_once() -> None:
    found = [(one.resource, one.kind.group) for one in permissions(BLUEPRINTS, Configuration({}, "", fabrics=FABRICS, topology=True), "")]

    assert len(found) == len(set(found))


@pytest.mark.parametrize("kind", kinds.OURS, ids=lambda kind: kind.plural)
def test_a_kind_of_ours_that_is_not_served_is_a_failed_preflight_unless_workloads_do_without(kind: Kind) -> None:
    less = ServedApis(ALL.kinds - {(kind.group, kind.version, kind.plural)})
    found = list(checks(Installation(less, QueryResults(), ()), {}, ()))

    needed = kind != kinds.TOPOLOGY_BINDING
    assert failed(found) is needed and not failed(checks(Installation(ALL, QueryResults(), ()), {}, ()))
    (bad,) = [one for one in found if one.outcome is Outcome.BAD]
    assert (bad.what, bad.level) == (f"CRD {kind.plural}.{kind.group}", Level.HARD if needed else Level.WARNING)


@pytest.mark.parametrize(
    ("version", "told"),
    [("v1.34.1", "v1.34.1"), ("v1.33.5-gke-1080000", "v1.33.5-gke-1080000 (GKE)"), ("v1.32.9-eks-3cfe0ce", "v1.32.9-eks-3cfe0ce (EKS)")],
)
def test_the_server_s_version_tells_who_runs_it(version: str, told: str) -> None:
    first, *_ = checks(Installation(ServedApis(version={"gitVersion": version}), QueryResults(), ()), {}, ())

    assert (first.what, first.level, first.found) == ("server version", Level.INFO, told)


@pytest.mark.parametrize("version", [{}, {"gitVersion": ""}, {"gitVersion": 7}, {"gitVersion": None}])
def test_a_server_that_does_not_say_what_it_is_is_not_judged(version: dict[str, object]) -> None:
    first, *_ = checks(Installation(ServedApis(version=version), QueryResults(), ()), {}, ())

    assert first.outcome is Outcome.UNKNOWN


def test_permissions_that_lack_are_told_one_by_one_and_the_others_in_a_line() -> None:
    pods, nodes, leases = Permission(kinds.POD, ("list", "create")), Permission(kinds.NODE, ("list",)), Permission(kinds.LEASE, ("get",))
    found = {one.what: one for one in checks(Installation(ALL, QueryResults(), ()), {pods: (), nodes: ("list",), leases: "not you"}, ())}

    assert found["permissions"].found == "2 verbs on 1 resources are allowed"
    assert (found["permissions on nodes"].outcome, found["permissions on nodes"].found) == (Outcome.BAD, "may not list")
    assert found["permissions on leases.coordination.k8s.io"].found == "cannot be judged: not you"


def test_only_where_new_sets_are_enrolled_must_there_be_something_to_enrol_them_in() -> None:
    on = fabrics(Settings(network=Network(autoMNNVLEnabled=True)))

    assert (list(demands(FABRICS)), [kind.plural for kind, _ in demands(on)]) == ([], ["computedomains"])
