"""Permissions: what the engine must be allowed to do, computed from the blueprints' tables of kinds. No verb that it does not use."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.blueprint import Blueprint
from engine.ids import Kind
from resources.base import kinds
from resources.children.identity import RULES as POD_RULES
from resources.install.modes import Use
from resources.install.publication import GROVE_OPERATOR, NAME, NAMESPACE, LeasePlace
from resources.ports.checks import Query
from resources.ports.configuration import Configuration

LISTS: Final[Mapping[Use, tuple[str, ...]]] = {Use.RUN: ("list", "watch"), Use.SYNC: ("list",), Use.READ: ("list",)}
"""How each use observes all objects of a kind."""
ROOT_WRITES: Final[Mapping[Kind, tuple[str, ...]]] = {kinds.PODCLIQUESET: ("patch",), kinds.DYNAMO_GRAPH: ("patch",)}
"""Kind of root -> what is written to stored ones besides their statuses: defaults and finalizers."""
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete")
"""All verbs, in the order in which they are written."""


class Permission(Struct, frozen=True):
    """Verbs on one kind, or on one of its subresources."""

    kind: Kind
    verbs: tuple[str, ...]
    subresource: str = ""
    namespace: str = ""
    """The namespace in which it is needed; empty: every namespace with workloads."""
    names: tuple[str, ...] = ()
    """The names of the only objects for which it is needed; empty: all objects."""

    @property
    def resource(self) -> str:
        """The resource as a role names it: `pods`, or `pods/status`."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


CLUSTER_IDENTITY: Final = Permission(kinds.NAMESPACE, ("get",), names=("kube-system",))
"""A saved plan says by the uid of this namespace which cluster it is for."""
GROVE_LEASE: Final = Permission(kinds.LEASE, ("get",), names=(GROVE_OPERATOR.name,))
"""Whether Grove's operator runs is known by its Lease. In every namespace, because a Role for that of Grove needs it to exist."""

EVENTS_OF_CLUSTER: Final = Permission(kinds.EVENT, ("create", "patch"), namespace="default")
"""Events about objects that are in no namespace, e.g. topology bindings, are written in this one."""
OF_DRIVERS: Final = (kinds.DAEMON_SET, kinds.DEPLOYMENT)
"""Kinds of which readers look for those of vendors' drivers, in whatever namespace these are."""

_Need = tuple[Kind, tuple[str, ...], str]
"""Kind, verbs, subresource."""


def permissions(
    blueprints: Iterable[Blueprint[Configuration]], configuration: Configuration, lease: LeasePlace | str | None = None, use: Use = Use.RUN
) -> tuple[Permission, ...]:
    """The permissions that the engine needs for the objects of workloads, for its events and for its Lease (None: it holds none).

    Each kind and subresource occurs once, the Lease twice: creating cannot be limited to a name.
    """
    chosen = tuple(blueprints)
    needs = (*_workload_needs(chosen, configuration, use), *_inspection_needs(configuration, use))
    place = LeasePlace(lease) if isinstance(lease, str) else lease
    if use is Use.READ:
        # `engine status` names the holders.
        return (*_merged(needs), CLUSTER_IDENTITY, *((Permission(kinds.LEASE, ("get",), names=place.names),) if place is not None else ()))
    events = Permission(kinds.EVENT, ("create", "patch"))
    return (*_merged(needs), events, *(_lease(place) if place is not None else ()))


def installation_permissions(use: Use) -> Iterator[Permission]:
    """The permissions to read what an installation publishes, which `engine run` also keeps up to date, and to look for Grove's operator.

    Readers have the first one as everybody has it.
    """
    if use is not Use.READ:
        verbs = ("get", "update") if use is Use.RUN else ("get",)
        yield Permission(kinds.CONFIG_MAP, verbs, namespace=NAMESPACE, names=(NAME,))
    yield GROVE_LEASE


def is_of_workloads(permission: Permission) -> bool:
    """Whether it is about all objects in the namespaces with workloads: then an installation for some namespaces has it in these only."""
    return permission.kind.namespaced and not permission.namespace and not permission.names


def confined(needed: Iterable[Permission], namespaces: Sequence[str]) -> tuple[Permission, ...]:
    """The permissions of an installation that manages these namespaces only (none: all): those of workloads once for each of them."""
    listed = tuple(needed)
    if not namespaces:
        return listed
    in_each = [permission for permission in listed if is_of_workloads(permission)]
    return (
        *(permission for permission in listed if not is_of_workloads(permission)),
        *(replace(permission, namespace=namespace) for namespace in namespaces for permission in in_each),
        *of_the_cluster(listed),
    )


def of_the_cluster(needed: Iterable[Permission]) -> Iterator[Permission]:
    """What takes the place of permissions of workloads where these are confined: about Events of objects that are in no namespace, and
    about what belongs to drivers, for those who may write nothing.
    """
    in_each = [permission for permission in needed if is_of_workloads(permission)]
    if any(permission.kind == kinds.EVENT and "create" in permission.verbs for permission in in_each):
        yield EVENTS_OF_CLUSTER
    elif any("list" in permission.verbs for permission in in_each if permission.kind == kinds.DAEMON_SET):
        yield from (Permission(kind, ("list",)) for kind in OF_DRIVERS)


def without_implied(needed: Iterable[Permission]) -> Iterator[Permission]:
    """The permissions less the verbs in one namespace, or on objects of certain names, that others allow everywhere."""
    listed = tuple(needed)
    everywhere: dict[tuple[Kind, str], set[str]] = {}
    for permission in listed:
        if not permission.namespace and not permission.names:
            everywhere.setdefault((permission.kind, permission.subresource), set()).update(permission.verbs)
    for permission in listed:
        if permission.namespace or permission.names:
            implied = everywhere.get((permission.kind, permission.subresource), set())
            permission = replace(permission, verbs=tuple(verb for verb in permission.verbs if verb not in implied))
        if permission.verbs:
            yield permission


def _lease(place: LeasePlace) -> Iterator[Permission]:
    """A get and an update of the Lease by name, and its creation, which cannot be limited to a name.

    With shards there are also Leases of replicas, whose names are not known before; old ones are found in a list and deleted.
    """
    if place.shards > 1:
        yield Permission(kinds.LEASE, ("get", "list", "create", "update", "delete"), namespace=place.namespace)
        return
    yield Permission(kinds.LEASE, ("create",), namespace=place.namespace)
    yield Permission(kinds.LEASE, ("get", "update"), namespace=place.namespace, names=place.names)


def _workload_needs(blueprints: Iterable[Blueprint[Configuration]], configuration: Configuration, use: Use) -> Iterator[_Need]:
    """What the blueprints need; a kind may occur several times."""
    for blueprint in blueprints:
        yield from _observed(blueprint, configuration, use)
        if use is not Use.READ:
            yield from _written(blueprint, configuration, use)


def _observed(blueprint: Blueprint[Configuration], configuration: Configuration, use: Use) -> Iterator[_Need]:
    """Roots, children and references are listed. Who only reads may ask about each of them, but does not see Secrets."""
    verbs = ("get", *LISTS[use]) if use is Use.READ else LISTS[use]
    for kind in (blueprint.kind, *blueprint.children(configuration), *blueprint.references(configuration)):
        if use is not Use.READ or kind != kinds.SECRET:
            yield kind, verbs, ""
    for kind in blueprint.lookup_kinds(configuration):
        if use is not Use.READ or kind != kinds.SECRET:
            yield kind, ("get",), ""


def _written(blueprint: Blueprint[Configuration], configuration: Configuration, use: Use) -> Iterator[_Need]:
    """What is written to roots and children. An object is read if its name is taken, and by `run` after a write without an answer."""
    root, children = blueprint.kind, blueprint.children(configuration)
    proposed = ("create", "patch") if use is Use.SYNC else ()
    yield root, ("get", *ROOT_WRITES.get(root, ()), *proposed), ""
    for kind, verbs in children.items():
        is_read = use is Use.RUN or "create" in verbs
        yield kind, ("get", *verbs) if is_read else verbs, ""
    for kind in (root, *children):
        if kind in kinds.DEFINED:
            yield kind, ("patch",), "status"
    for kind in _owners(blueprint, configuration):
        # An owner reference with `blockOwnerDeletion` requires the right to set the owner's finalizers, where an API server enforces that.
        yield kind, ("update",), "finalizers"
    if root == kinds.DYNAMO_GRAPH:
        yield kinds.PODCLIQUESET, ("get", *kinds.WRITES), ""
        yield kinds.PODCLIQUE, ("patch",), "scale"
        yield kinds.SCALING_GROUP, ("patch",), "scale"
    if kinds.ROLE in children:
        yield from _escalation()


def _owners(blueprint: Blueprint[Configuration], configuration: Configuration) -> Iterator[Kind]:
    """The kinds of objects that control others: the root, and our own kinds below it."""
    children = blueprint.children(configuration)
    if blueprint.kind != kinds.TOPOLOGY_BINDING or children:
        yield blueprint.kind
    has_gang_objects = any(scheduler.gangs is not None for scheduler in configuration.schedulers.values())
    own_nothing = (kinds.SCALING_ADAPTER, *(() if has_gang_objects else (kinds.PODGANG,)))
    yield from (kind for kind in children if kind in kinds.DEFINED and kind not in own_nothing)


def _escalation() -> Iterator[_Need]:
    """What the Role for the pods of a set grants: an account can only grant what it is allowed itself."""
    by_name = {(kind.group, kind.plural): kind for kind in kinds.KINDS}
    for rule in POD_RULES:
        for group, resource in product(rule["apiGroups"], rule["resources"]):
            plural, _, subresource = resource.partition("/")
            yield by_name[group, plural], tuple(rule["verbs"]), subresource


def _inspection_needs(configuration: Configuration, use: Use) -> Iterator[_Need]:
    """What previews read besides workloads, which commands show before they write, and what checks and diagnoses read, which write nothing.

    `run` learns from a refusal that a namespace is being deleted, and does not forecast. It reads the quotas where it was refused.
    """
    yield kinds.RESOURCE_QUOTA, ("list",), ""
    if use is Use.RUN:
        return
    yield kinds.NAMESPACE, ("get",), ""
    yield kinds.NODE, ("list",), ""
    yield kinds.LIMIT_RANGE, ("list",), ""
    yield kinds.DEVICE_CLASS, ("list",), ""
    yield kinds.PVC, ("list",), ""
    for fabric in configuration.fabrics:
        if fabric.slots is not None:
            yield fabric.slots.inventory_kind, ("list",), ""
    for query in _queries(configuration) if use is Use.READ else ():
        yield query.kind, ("get" if query.name else "list",), ""


def _queries(configuration: Configuration) -> Iterator[Query]:
    """The queries of `engine preflight`, and those of `engine why` about any domain."""
    for plug_in in (*configuration.schedulers.values(), *configuration.fabrics):
        yield from plug_in.installation_queries()
    for fabric in configuration.fabrics:
        yield from fabric.domain_queries(fabric.kind.id("", ""))


def _merged(needs: Iterable[_Need]) -> tuple[Permission, ...]:
    """One permission for each kind and subresource, its verbs in the order of `VERBS`."""
    verbs_of: dict[tuple[Kind, str], set[str]] = {}
    for kind, verbs, subresource in needs:
        if verbs:
            verbs_of.setdefault((kind, subresource), set()).update(verbs)
    return tuple(Permission(kind, tuple(verb for verb in VERBS if verb in verbs), name) for (kind, name), verbs in verbs_of.items())


MUTATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False
)
VALIDATING_WEBHOOKS: Final = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False
)
TOKEN_REVIEW: Final = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEW: Final = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)


class ServedEndpoints(Struct, frozen=True):
    """What a process serves, as far as that needs permissions."""

    namespace: str
    """The namespace of its certificate."""
    certificate: str = ""
    """The Secret in which it keeps the certificate that it makes; empty: the certificate is given to it."""
    mutating: tuple[str, ...] = ()
    """The names of the MutatingWebhookConfigurations into which it writes its CA."""
    validating: tuple[str, ...] = ()
    """The names of the ValidatingWebhookConfigurations into which it writes its CA."""
    look_ups: tuple[Kind, ...] = ()
    """The kinds of objects that its reviews look up."""
    checks_callers: bool = False
    """Whether it asks what users may do: callers with a bearer token, and those who refer to claim templates of other namespaces."""
    definitions: tuple[str, ...] = ()
    """The names of the CustomResourceDefinitions into which it writes its CA."""


def endpoint_permissions(endpoints: ServedEndpoints) -> Iterator[Permission]:
    """The permissions for these endpoints. Everything that has a name is limited to it, except creating, which cannot be."""
    if endpoints.certificate:
        yield Permission(kinds.SECRET, ("create",), namespace=endpoints.namespace)
        yield Permission(kinds.SECRET, ("get", "patch"), namespace=endpoints.namespace, names=(endpoints.certificate,))
        named = ((MUTATING_WEBHOOKS, endpoints.mutating), (VALIDATING_WEBHOOKS, endpoints.validating), (kinds.CRD, endpoints.definitions))
        for kind, names in named:
            if names:
                yield Permission(kind, ("get", "patch"), names=names)
    for kind in endpoints.look_ups:
        yield Permission(kind, ("get", "list", "watch"))
    if endpoints.checks_callers:
        yield Permission(TOKEN_REVIEW, ("create",))
        yield Permission(ACCESS_REVIEW, ("create",))
        yield Permission(kinds.RESOURCE_CLAIM_TEMPLATE, ("get",))
