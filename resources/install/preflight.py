"""Preflight: the checks of an installation before workloads are managed there; fabrics add their own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from engine.ids import Kind
from engine.paths import get
from engine.report.printable import some
from resources.base import kinds
from resources.base.fields import cliques_of, mapping, mappings
from resources.install.permissions import Permission
from resources.install.roles import READER_ROLE
from resources.ports.checks import Check, CheckResult, Installation, Query, Severity, judged, unknown
from resources.ports.fabric import Fabric
from resources.ports.scheduler import Scheduler

Rights = Mapping[Permission, tuple[str, ...] | str]
"""Permission -> its verbs that are denied, empty if none; or, as a string, why that is not known."""

PLATFORMS: Final = (("-gke-", "GKE"), ("-eks-", "EKS"), ("+k3s", "K3s"), ("+rke2", "RKE2"), ("+sandbox", "our sandbox"))
"""Part of a server's version -> the platform that it belongs to."""
ADDONS: Final = (
    kinds.POD_GROUP,
    kinds.WORKLOAD,
    kinds.COMPOSITE_POD_GROUP,
    kinds.LEADER_WORKER_SET,
    kinds.VOLCANO_POD_GROUP,
    kinds.VOLCANO_QUEUE,
    kinds.KAI_POD_GROUP,
    kinds.KAI_QUEUE,
    kinds.KAI_TOPOLOGY,
)
"""Kinds without which some workloads are blocked and all others run."""
GRAPH_CRD: Final = Query(kinds.CRD, name=f"{kinds.DYNAMO_GRAPH.plural}.{kinds.DYNAMO_GRAPH.group}")
GROUPS_CRD: Final = Query(kinds.CRD, name=f"{kinds.LEADER_WORKER_SET.plural}.{kinds.LEADER_WORKER_SET.group}")
WORKER_SPEC: Final = ("spec", "leaderWorkerTemplate", "workerTemplate", "spec")
"""The spec of pods in a LeaderWorkerSet."""
GROUP_FIELD: Final = "schedulingGroup"
"""The field of a pod spec that names its PodGroup."""
LOSES_GROUPS: Final = (
    f"their pod templates would lose {GROUP_FIELD}: kube-scheduler would place the pods of graphs without Grove one by one"
)
GRAPH_STORAGE: Final = "storage of DynamoGraphDeployments"
READS: Final = frozenset({"get", "list", "watch"})
INSTALL: Final = "engine manifests crds | kubectl apply --server-side -f -"
ROLES: Final = "engine manifests rbac | kubectl apply -f -"
FEW: Final = 3
"""Permissions for which the commands that grant them are given, each in a check of its own; more are one check."""
GRANT_ALL: Final = (
    f"for the engine's own account: {ROLES}; for any user, with the verbs and resources above: kubectl create clusterrole NAME "
    "--verb=VERBS --resource=RESOURCE, then kubectl create clusterrolebinding NAME --clusterrole=NAME --user=USER (where a namespace is "
    "named: role, rolebinding and -n NAMESPACE)"
)
READ_ALL: Final = (
    "engine manifests rbac --mode read | kubectl apply -f -, then "
    f"kubectl create clusterrolebinding NAME --clusterrole={READER_ROLE} --user=USER (for one namespace: rolebinding and -n NAMESPACE)"
)
"""The same for an account that writes nothing."""


def checks(
    installation: Installation,
    rights: Rights,
    fabrics: Iterable[Fabric],
    schedulers: Iterable[Scheduler] = (),
    defined: Iterable[Kind] = kinds.DEFINED,
    where_served: str = "",
) -> Iterator[Check]:
    """Every check: those of the engine, then those of the scheduler back ends and of the fabrics.

    `defined`: our kinds that are managed. `where_served`: the back end that no profile lists, and that is enabled where it is served.
    """
    yield _server_version(installation)
    defined = tuple(defined)
    yield from _own_crds(installation, defined)
    if kinds.DYNAMO_GRAPH in defined:
        yield from _graph_storage(installation)
    yield from _permissions({permission: denied for permission, denied in rights.items() if _matters(permission.kind, installation)})
    back_ends = tuple(schedulers)
    for scheduler in back_ends:
        if scheduler.name == where_served and not _is_wanted(scheduler, installation):
            finding = "the cluster does not serve its kinds; no profile lists it, and no set names it"
            yield Check(Severity.INFO, scheduler.name, CheckResult.GOOD, finding)
        else:
            yield from _of_scheduler(scheduler, installation)
    yield from _gangs(back_ends, installation)
    yield from _groups_of_sets(back_ends, installation)
    for fabric in fabrics:
        yield from fabric.checks(installation)


def reads_only(rights: Rights) -> bool:
    """Whether the account may write nothing of all that the engine writes."""
    known = [(permission, denied) for permission, denied in rights.items() if not isinstance(denied, str)]
    writes = [verb in denied for permission, denied in known for verb in permission.verbs if verb not in READS]
    return bool(writes) and all(writes)


def of_readers(results: Iterable[Check]) -> Iterator[Check]:
    """The checks for an account that writes nothing, whose rights are those of readers: with a word about the engine's own account."""
    finding = "you may write nothing; what the account of the engine may do was not checked"
    for check in results:
        yield replace(check, remedy=READ_ALL) if check.remedy == GRANT_ALL else check
    yield Check(Severity.INFO, "permissions to write", CheckResult.GOOD, finding, ROLES)


def failed(results: Iterable[Check]) -> bool:
    """Whether a hard requirement is not met (`Severity.HARD`). A check that could not be judged does not count."""
    return any(check.level is Severity.HARD and check.outcome is CheckResult.BAD for check in results)


def _server_version(installation: Installation) -> Check:
    version = installation.apis.version.get("gitVersion")
    if not isinstance(version, str) or not version:
        return unknown(Severity.INFO, "server version", installation.apis.error or "the server does not report it")
    platform = next((name for mark, name in PLATFORMS if mark in version), "")
    return Check(Severity.INFO, "server version", CheckResult.GOOD, f"{version} ({platform})" if platform else version)


def _own_crds(installation: Installation, defined: Iterable[Kind]) -> Iterator[Check]:
    for kind in defined:
        subject = f"CRD {kind.plural}.{kind.group}"
        # An older installation lacks some of them, and sets run without them.
        level = Severity.WARNING if kind in (kinds.TOPOLOGY_BINDING, kinds.DYNAMO_GRAPH, kinds.SCALING_ADAPTER) else Severity.HARD
        if why := installation.apis.why_unknown(kind):
            yield unknown(level, subject, why)
        else:
            versions = (kind, *kinds.newer(kind))
            served = [each.version for each in versions if installation.apis.serves(each)]
            fault = "" if served else f"{kind.version} is not served"
            yield judged(level, subject, fault, f"{' and '.join(served)} is served", INSTALL)


def _graph_storage(installation: Installation) -> Iterator[Check]:
    """How the definition of graphs stores and converts them: ours must not change that, and a webhook that is dead refuses graphs."""
    for live in installation.results.of(GRAPH_CRD).objects:
        versions = [version for version in mappings(get(live.body, ("spec", "versions"))) if version.get("served") is True]
        stored = next((str(version.get("name")) for version in versions if version.get("storage") is True), "")
        webhook = mapping(get(live.body, ("spec", "conversion", "webhook", "clientConfig"), {}))
        others = some(str(version.get("name")) for version in versions if version.get("name") != stored)
        if stored == kinds.DYNAMO_GRAPH.version and not others:
            return
        service = mapping(webhook.get("service"))
        where = f"Service {service.get('namespace')}/{service.get('name')}" if service else str(webhook.get("url") or "no webhook")
        keep = f"apply no definition that stores another version: engine manifests crds --converter NAMESPACE --graph-storage {stored}"
        fault = ""
        if others and not webhook:
            fault = f"stored as {stored}, and no webhook converts {others}: fields that differ are lost"
        elif others and service and not webhook.get("caBundle"):
            fault = f"stored as {stored}, and the API server does not trust {where}, which converts {others}: such graphs are refused"
        converted = f"; {where} converts {others}: while it does not answer, graphs of {others} are refused" if others else ""
        yield judged(Severity.WARNING if fault else Severity.INFO, GRAPH_STORAGE, fault, f"{stored}{converted}; {keep}", keep)


def _matters(kind: Kind, installation: Installation) -> bool:
    """Whether rights on the kind are of any use: not if it belongs to an add-on that the cluster is known not to have."""
    is_addon = kind in ADDONS and not installation.apis.why_unknown(kind)
    return not is_addon or installation.apis.serves(kind)


def _is_wanted(scheduler: Scheduler, installation: Installation) -> bool:
    """Whether the cluster serves a kind of a back end, has a set that names the back end, or may do either."""
    apis = installation.apis
    if installation.sets is None or any(apis.serves(kind) or apis.why_unknown(kind) for kind, _ in _kinds_of(scheduler)):
        return True
    cliques = (clique for live in installation.sets for clique in cliques_of(live.body))
    return any(get(clique, ("spec", "podSpec", "schedulerName")) == scheduler.name for clique in cliques)


def _of_scheduler(scheduler: Scheduler, installation: Installation) -> Iterator[Check]:
    """Whether the kinds of a back end are served, and its own checks. Without them only the workloads that name it are blocked."""
    for kind, use in _kinds_of(scheduler):
        subject = f"CRD {kind.plural}.{kind.group} of {scheduler.name}"
        if why := installation.apis.why_unknown(kind):
            yield unknown(Severity.WARNING, subject, why)
        else:
            fault = "" if installation.apis.serves(kind) else f"{kind.version} is not served: {use}"
            remedy = f"install {scheduler.name}, or remove its profile from the operator configuration"
            yield judged(Severity.WARNING, subject, fault, f"{kind.version} is served", remedy)
    yield from scheduler.checks(installation)


def _gangs(schedulers: tuple[Scheduler, ...], installation: Installation) -> Iterator[Check]:
    """Which back ends schedule gangs, in one check: bad if none does, or one is seen not to. One whose kind is not served does not."""
    here = [each.where(_unserved(each, installation)) for each in schedulers]
    served = [each for each in here if not each.instead_of_gangs and not _lacks_gangs(each, installation)]
    without = {each.name: check for each in served if (check := each.without_gangs(installation)) is not None}
    able = [each.name for each in served if each.name not in without]
    unable = [each for each in here if each.instead_of_gangs]
    texts = ([f"scheduled by {', '.join(able)}"] if able else []) + [f"{each.name} places their pods one by one" for each in unable]
    if without:
        yield from (replace(each, finding="; ".join((each.finding, *texts))) for each in without.values())
    elif able:
        yield Check(Severity.INFO, "gangs", CheckResult.GOOD, "; ".join(texts))
    elif unable:
        finding = f"no scheduler schedules gangs: {'; '.join(texts)}"
        yield Check(Severity.WARNING, "gangs", CheckResult.BAD, finding, unable[0].instead_of_gangs)


def _groups_of_sets(schedulers: Iterable[Scheduler], installation: Installation) -> Iterator[Check]:
    """Whether LeaderWorkerSets keep the PodGroup of their pods, where graphs without Grove use those of kube-scheduler."""
    able = (each for each in schedulers if each.gangs is not None and each.gangs.are_built_in and not each.instead_of_gangs)
    if all(_lacks_gangs(each, installation) for each in able) or installation.apis.serves(kinds.VOLCANO_POD_GROUP):
        return
    for live in installation.results.of(GROUPS_CRD).objects:
        versions = (each for each in mappings(get(live.body, ("spec", "versions"))) if each.get("name") == kinds.LEADER_WORKER_SET.version)
        schema = mapping(get(next(versions, {}), ("schema", "openAPIV3Schema"), {}))
        fault = "" if _keeps(schema, (*WORKER_SPEC, GROUP_FIELD)) else LOSES_GROUPS
        remedy = "install LeaderWorkerSet 0.9 or newer"
        yield judged(Severity.WARNING, "gangs of LeaderWorkerSets", fault, f"their pod templates keep {GROUP_FIELD}", remedy)


def _keeps(schema: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether objects of this schema keep the field at the path."""
    for key in path:
        if schema.get("x-kubernetes-preserve-unknown-fields") is True:
            return True
        properties = mapping(schema.get("properties"))
        if key not in properties:
            return False
        schema = mapping(properties[key])
    return True


def _lacks_gangs(scheduler: Scheduler, installation: Installation) -> bool:
    """Whether the cluster is known not to serve the objects for gangs to which pods of this back end refer."""
    return scheduler.gangs is not None and scheduler.gangs.kinds[-1].key in _unserved(scheduler, installation)


def _unserved(scheduler: Scheduler, installation: Installation) -> frozenset[str]:
    """The kinds of the objects for gangs that the cluster is known not to serve."""
    used, apis = scheduler.gangs.kinds if scheduler.gangs is not None else (), installation.apis
    return frozenset(kind.key for kind in used if not apis.serves(kind) and not apis.why_unknown(kind))


def _kinds_of(scheduler: Scheduler) -> Iterator[tuple[Kind, str]]:
    """The kinds that a back end works with, each with what happens where it is not served; not those of Kubernetes itself."""
    if scheduler.gangs is not None and not scheduler.gangs.are_built_in:
        yield from ((kind, "pods with this scheduler are not created") for kind in scheduler.gangs.kinds)
    yield from ((kind, "admission rules that need it are skipped") for kind in scheduler.referenced_kinds)
    if scheduler.topologies is not None:
        yield scheduler.topologies.kind, "it has no topologies"


def _permissions(rights: Rights) -> Iterator[Check]:
    """A check for each permission with denied verbs, or one for many; one check for all permissions that are granted completely."""
    ordered = sorted(rights.items(), key=lambda item: (item[0].kind.group, item[0].resource, item[0].namespace, item[0].names))
    lacking = [(permission, denied) for permission, denied in ordered if denied and not isinstance(denied, str)]
    if len(lacking) > FEW:
        level = Severity.HARD if any(_hides_sets(permission, denied) for permission, denied in lacking) else Severity.WARNING
        yield Check(level, f"permissions on {len(lacking)} resources", CheckResult.BAD, _denied(lacking), GRANT_ALL)
    for permission, denied in ordered:
        subject = f"permissions on {_resource(permission)}"
        if isinstance(denied, str):
            yield unknown(Severity.WARNING, subject, denied)
        elif denied and len(lacking) <= FEW:
            finding = f"may not {', '.join(denied)}{_place(permission)}"
            level = Severity.HARD if _hides_sets(permission, denied) else Severity.WARNING
            yield Check(level, subject, CheckResult.BAD, finding, _grant(permission, denied))
    granted = [permission for permission, denied in rights.items() if denied == ()]
    if granted:
        count = sum(len(permission.verbs) for permission in granted)
        yield Check(Severity.INFO, "permissions", CheckResult.GOOD, f"{count} verbs on {len(granted)} resources are allowed")


def _hides_sets(permission: Permission, denied: tuple[str, ...]) -> bool:
    """Whether sets cannot be listed: then no command has anything to work on."""
    return permission.kind == kinds.PODCLIQUESET and not permission.subresource and "list" in denied


def _denied(lacking: Iterable[tuple[Permission, tuple[str, ...]]]) -> str:
    """What is not allowed, each combination of verbs once: `may not get, list: nodes; create: pods, services`."""
    by_verbs: dict[tuple[str, ...], list[str]] = {}
    for permission, denied in lacking:
        by_verbs.setdefault(denied, []).append(f"{_resource(permission)}{_place(permission)}")
    return "may not " + "; ".join(f"{', '.join(verbs)}: {', '.join(resources)}" for verbs, resources in by_verbs.items())


def _grant(permission: Permission, denied: tuple[str, ...]) -> str:
    """The commands that grant these verbs: the roles of the engine's account, or a role for any user."""
    kind, scope = permission.kind, f" -n {permission.namespace}" if permission.namespace else ""
    role = "role" if permission.namespace else "clusterrole"
    name = f"engine-{permission.resource.replace('/', '-')}"
    resource = (f"{kind.plural}.{kind.group}" if kind.group else kind.plural) + (
        f"/{permission.subresource}" if permission.subresource else ""
    )
    names = "".join(f" --resource-name={object_name}" for object_name in permission.names)
    create = f"kubectl create {role} {name}{scope} --verb={','.join(denied)} --resource={resource}{names}"
    bind = f"kubectl create {role}binding {name}{scope} --{role}={name} --user=USER (or --serviceaccount=NAMESPACE:NAME)"
    return f"for the engine's own account: {ROLES}; for any user: {create}, then {bind}"


def _place(permission: Permission) -> str:
    """Where the permission is missing, if that is not everywhere."""
    named = f" {' and '.join(permission.names)}" if permission.names else ""
    return f"{named} in namespace {permission.namespace}" if permission.namespace else named


def _resource(permission: Permission) -> str:
    group = permission.kind.group
    return f"{permission.resource}.{group}" if group else permission.resource
