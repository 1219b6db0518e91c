"""The roles of an installation: exactly the permissions, each in its place, and nothing that reads Secrets for those who only read."""

from collections.abc import Iterable
from typing import Any

from providers.registry import fabrics
from resources.base import kinds, labels
from resources.install.modes import Use
from resources.install.permissions import (
    Permission,
    ServedEndpoints,
    endpoint_permissions,
    installation_permissions,
    permissions,
    without_implied,
)
from resources.install.publication import LeasePlace
from resources.install.roles import Account, account_objects, public_objects, reader_roles, role_rules, writer_roles
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from resources.settings import Settings

CONFIGURATION = Configuration({}, "", fabrics=fabrics(Settings()))
PLACE = LeasePlace("grove-system", "grove-operator-leader-election")
WRITES = {"create", "update", "patch", "delete"}


def granted(rules: Iterable[dict[str, Any]]) -> set[tuple[str, str, str, tuple[str, ...]]]:
    """Group, resource, verb and names of everything that the rules allow."""
    return {
        (group, resource, verb, tuple(rule.get("resourceNames", ())))
        for rule in rules
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
        for verb in rule["verbs"]
    }


def needed(permissions: Iterable[Permission]) -> set[tuple[str, str, str, tuple[str, ...]]]:
    """The same of permissions."""
    return {(each.kind.group, each.resource, verb, tuple(sorted(each.names))) for each in permissions for verb in each.verbs}


def test_the_roles_allow_exactly_the_permissions() -> None:
    wanted = (
        *permissions(BLUEPRINTS, CONFIGURATION, PLACE),
        *endpoint_permissions(ServedEndpoints("grove-system", "cert", ("mutating",), ("second", "first"), checks_callers=True)),
    )
    account, cluster_role, cluster_binding, role, binding = account_objects(Account(), wanted)

    assert granted(cluster_role["rules"]) == needed(each for each in wanted if not each.namespace)
    assert granted(role["rules"]) == needed(each for each in wanted if each.kind == kinds.LEASE)
    assert {(role["metadata"]["namespace"], binding["metadata"]["namespace"])} == {("grove-system", "grove-system")}
    assert [each["roleRef"]["name"] for each in (cluster_binding, binding)] == [each["metadata"]["name"] for each in (cluster_role, role)]
    assert cluster_binding["subjects"] == binding["subjects"]
    assert cluster_binding["subjects"][0]["name"] == account["metadata"]["name"]


def test_what_is_allowed_everywhere_is_not_allowed_again_in_one_namespace() -> None:
    certificate = tuple(endpoint_permissions(ServedEndpoints("grove-system", "cert")))

    assert list(without_implied((*permissions(BLUEPRINTS, CONFIGURATION), *certificate))) == list(permissions(BLUEPRINTS, CONFIGURATION))
    assert list(without_implied(certificate)) == list(certificate)


def test_no_rule_has_a_wildcard() -> None:
    wanted = permissions(BLUEPRINTS, CONFIGURATION, PLACE)

    assert "*" not in {value for rule in role_rules(wanted) for values in rule.values() for value in values}


def test_the_objects_of_an_installation_are_not_labelled_as_objects_of_a_set() -> None:
    objects = [*account_objects(Account(), permissions(BLUEPRINTS, CONFIGURATION, PLACE)), *reader_roles(())]

    assert [body for body in objects if labels.MANAGED_BY in body["metadata"]["labels"]] == []


def test_readers_neither_write_nor_watch_nor_see_secrets() -> None:
    (role,) = reader_roles(permissions(BLUEPRINTS, CONFIGURATION, use=Use.READ))
    rules = role["rules"]

    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    assert ("", "secrets") not in {(group, resource) for group, resource, _, _ in granted(rules)}


def test_a_one_shot_run_needs_no_watch_except_for_what_it_grants_to_pods() -> None:
    watched = {each.resource for each in permissions(BLUEPRINTS, CONFIGURATION, PLACE, Use.SYNC) if "watch" in each.verbs}

    assert watched == {"pods", "pods/status"}


def test_a_loop_does_not_create_workloads_that_a_user_creates() -> None:
    without_graphs = [blueprint for blueprint in BLUEPRINTS if blueprint.kind != kinds.DYNAMO_GRAPH]
    loop, once = (
        {each.resource: set(each.verbs) & WRITES for each in permissions(without_graphs, CONFIGURATION, PLACE, use)}
        for use in (Use.RUN, Use.SYNC)
    )

    assert (loop["podcliquesets"], loop["clustertopologybindings"]) == ({"patch"}, set())
    assert (once["podcliquesets"], once["clustertopologybindings"]) == ({"create", "patch"}, {"create", "patch"})


def test_everybody_may_read_what_is_published_by_its_name_and_only_a_running_engine_may_change_it() -> None:
    role, binding = public_objects()
    changing = {use: granted(role_rules(each for each in installation_permissions(use) if each.namespace)) for use in Use}

    assert granted(role["rules"]) == {("", "configmaps", "get", ("grove-engine",))}
    assert {body["metadata"]["namespace"] for body in (role, binding)} == {"kube-public"}
    assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]
    assert {use: {verb for _, _, verb, _ in rights} for use, rights in changing.items()} == {
        Use.RUN: {"get", "update"},
        Use.SYNC: {"get"},
        Use.READ: set(),
    }
    assert {names for rights in changing.values() for _, _, _, names in rights} == {("grove-engine",)}


def test_who_syncs_may_take_the_lease_of_the_installation_and_change_nothing_that_is_published() -> None:
    cluster_role, role = writer_roles((*permissions(BLUEPRINTS, CONFIGURATION, PLACE, Use.SYNC), *installation_permissions(Use.SYNC)))

    assert role["metadata"]["namespace"] == "grove-system"
    assert granted(role["rules"]) == {
        ("coordination.k8s.io", "leases", "create", ()),
        ("coordination.k8s.io", "leases", "get", ("grove-operator-leader-election",)),
        ("coordination.k8s.io", "leases", "update", ("grove-operator-leader-election",)),
    }
    assert "configmaps" not in {resource for _, resource, _, _ in granted(cluster_role["rules"])}


def test_the_roles_in_one_namespace_have_names_of_their_own() -> None:
    needed = (*permissions(BLUEPRINTS, CONFIGURATION, LeasePlace("kube-public", "lock")), *installation_permissions(Use.RUN))
    objects = [*account_objects(Account(), needed), *reader_roles(needed), *writer_roles(needed), *public_objects()]
    keys = [(body["kind"], body["metadata"].get("namespace"), body["metadata"]["name"]) for body in objects]

    assert len(keys) == len(set(keys))


def test_without_a_lease_no_permission_for_one_is_needed() -> None:
    assert kinds.LEASE not in {each.kind for each in permissions(BLUEPRINTS, CONFIGURATION)}
