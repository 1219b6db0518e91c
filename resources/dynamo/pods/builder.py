"""Builder: the pod spec of one role of a service, from its defaults, what its user set, and what its framework needs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from engine.report.printable import printable
from engine.resource import Body
from resources.base.fields import mapping, mappings
from resources.base.labels import POD_FORM
from resources.dynamo.backends.addresses import addresses_of, by_kubelet
from resources.dynamo.backends.executor import Executor, executor_of, without_ray
from resources.dynamo.backends.faults import PodFault
from resources.dynamo.backends.port import LEADER, PROBES, RANK, FrameworkBackend, Placement, RewrittenContainer, without_probes
from resources.dynamo.backends.table import BACKENDS
from resources.dynamo.model.form import PodForm
from resources.dynamo.model.framework import WORKERS, Framework
from resources.dynamo.model.graph import GraphService, InferenceGraph, Orchestrator, Role, merged_envs
from resources.dynamo.model.names import component
from resources.dynamo.pods.defaults import default_container, default_pod, standard_variables
from resources.dynamo.pods.fields import Path, map_at, maps_at, words_at
from resources.dynamo.pods.merge import merged
from resources.dynamo.pods.order import in_order
from resources.dynamo.pods.resources import with_resources
from resources.dynamo.pods.role_paths import placed
from resources.dynamo.pods.volumes import ServiceVolumes, service_volumes
from resources.ports.configuration import DynamoSettings

__all__ = ["BuiltPod", "PodFault", "built_pod"]

HANDLERS = frozenset({"exec", "grpc", "httpGet", "tcpSocket"})
_HOST_PART = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")


class BuiltPod(Struct, frozen=True):
    """A pod spec."""

    spec: dict[str, Any]
    warnings: tuple[str, ...]
    """What the author of the graph should know, with the service and the role."""


def built_pod(graph: InferenceGraph, service: GraphService, role: Role, orchestrator: Orchestrator, settings: DynamoSettings) -> BuiltPod:
    """The pod spec of one role of a service, its lists in one order. Built once for the orchestrator that the graph should have.

    Raises `PodFault` for what the manifest alone shows to be wrong.
    """
    if orchestrator is not graph.expected:
        return _built(graph, service, role, orchestrator, settings)
    return graph.memo.recall(("pod", service.name, role), (settings,), lambda: _built(graph, service, role, orchestrator, settings))


def _built(graph: InferenceGraph, service: GraphService, role: Role, orchestrator: Orchestrator, settings: DynamoSettings) -> BuiltPod:
    try:
        return _built_of(graph, service.of(role), role, orchestrator, settings)
    except PodFault as fault:
        raise placed(service, role, fault) from None


def _built_of(graph: InferenceGraph, service: GraphService, role: Role, orchestrator: Orchestrator, settings: DynamoSettings) -> BuiltPod:
    """The pod spec of a service whose pods are those of the role. Faults have paths in a service of v1alpha1."""
    path: Path = ("spec", "services", service.name)
    backend = BACKENDS[service.framework]
    volumes = service_volumes(service, backend, path)
    container = _with_mounts(_user_container(graph, service, role, settings, path), volumes, path)
    whose = f"service {printable(service.name)}, {role}"
    container, notes = _with_cache(container, volumes, backend, whose)
    placement = _placement(graph, service, role, orchestrator, settings)
    rewritten = _rewritten(container, graph, service, placement) if placement is not None else RewrittenContainer(container)
    if graph.shares_settings:
        rewritten = replace(rewritten, shared_envs=(*standard_variables(settings), *rewritten.shared_envs))
    else:
        rewritten = replace(rewritten, shared_envs=(), shared_mounts=())
    pod = _pod(service, rewritten, volumes, path)
    _check_names(pod, rewritten.container, path)
    return BuiltPod(in_order(pod), (*notes, *_probe_warnings(rewritten.container, whose), *rewritten.warnings))


def _user_container(graph: InferenceGraph, service: GraphService, role: Role, settings: DynamoSettings, path: Path) -> Body:
    """The main container: defaults, then `mainContainer`, then the fields of the service. A worker serves no requests: the default probes
    are none of a template for workers."""
    below = (*path, "extraPodSpec", "mainContainer")
    user = service.main_container
    command, arguments, own_envs = words_at(user, below, "command"), words_at(user, below, "args"), maps_at(user, below, "env")
    maps_at(user, below, "volumeMounts")
    default = default_container(graph, service)
    if service.is_of_role and role is Role.WORKER:
        default = without_probes(default)
    default = _replaceable(default, user, below)
    if command and not arguments:
        default.pop("args", None)
    container = merged(default, {field: value for field, value in user.items() if field != "env"})
    if user.get("startupProbe"):
        container["startupProbe"] = user["startupProbe"]
    probes = {"livenessProbe": service.spec.liveness_probe, "readinessProbe": service.spec.readiness_probe}
    container |= {field: probe for field, probe in probes.items() if probe is not None}
    if secret := service.spec.env_from_secret:
        container["envFrom"] = [*maps_at(container, below, "envFrom"), {"secretRef": {"name": secret}}]
    container["env"] = list(merged_envs(standard_variables(settings), default["env"], own_envs, service.envs))
    return with_resources(container, service, path)


def _replaceable(default: dict[str, Any], user: Body, path: Path) -> dict[str, Any]:
    """The defaults without the handlers of probes for which the user names another handler: a probe has one."""
    for probe in PROBES:
        own = map_at(user, path, probe)
        if probe in default and (own.keys() & HANDLERS) - default[probe].keys():
            default[probe] = {field: value for field, value in default[probe].items() if field not in HANDLERS}
    return default


def _with_mounts(container: Body, volumes: ServiceVolumes, path: Path) -> Body:
    mounts = [*maps_at(container, (*path, "extraPodSpec", "mainContainer"), "volumeMounts"), *volumes.mounts]
    return {**container, "volumeMounts": mounts} if mounts else container


def _with_cache(container: Body, volumes: ServiceVolumes, backend: FrameworkBackend, whose: str) -> tuple[Body, tuple[str, ...]]:
    """The container with the variable that names its compilation cache, and a warning if it named another directory."""
    name = backend.cache_variable
    if not name or not volumes.cache:
        return container, ()
    variable = {"name": name, "value": volumes.cache}
    others = [env for env in container["env"] if env.get("name") == name and env != variable]
    warnings = (
        (f"{whose}: {name} is {printable(volumes.cache)}, where the compilation cache is mounted, instead of the given value",)
        if others
        else ()
    )
    return {**container, "env": list(merged_envs(container["env"], [variable]))}, warnings


def _probe_warnings(container: Body, whose: str) -> Iterator[str]:
    """A warning for each probe that names a port that the container does not have: such a probe always fails."""
    names = {port.get("name") for port in mappings(container.get("ports"))}
    for probe in PROBES:
        ports = [mapping(mapping(container.get(probe)).get(handler)).get("port") for handler in ("httpGet", "tcpSocket")]
        for port in ports:
            if isinstance(port, str) and not port.isdecimal() and port not in names:
                reason = "which the container does not have: `ports` replaces the default ones"
                yield f"{whose}: {probe} asks the port {printable(port)}, {reason}"


def _placement(
    graph: InferenceGraph, service: GraphService, role: Role, orchestrator: Orchestrator, settings: DynamoSettings
) -> Placement | None:
    """Where the pod of a service on several nodes runs; None for a single node."""
    if not service.is_multinode:
        return None
    if not _HOST_PART.fullmatch(service.key):
        raise PodFault(
            ("spec", "services", service.name), "the name must consist of letters, digits, dashes and dots, as part of host names"
        )
    return Placement(
        service=service.name,
        role=role,
        nodes=service.nodes,
        addresses=addresses_of(graph, service, orchestrator),
        gpus=service.requested_gpus,
        ssh_secret=settings.ssh_secret_of(component(graph, service)),
        form=graph.form,
        executor=executor_of(graph, service).executor if service.framework is Framework.VLLM else Executor.RAY,
        node_gpus=service.node_gpus,
        user=_user(service),
        without_ray=without_ray(graph, service),
        is_of_role=service.is_of_role,
    )


def _user(service: GraphService) -> int | None:
    """The number of the user that the main container names, else its pod; None without one."""
    contexts = (mapping(part.get("securityContext")) for part in (service.main_container, service.extra_pod_spec))
    users = (context.get("runAsUser") for context in contexts)
    return next((user for user in users if isinstance(user, int)), None)


def _rewritten(container: Body, graph: InferenceGraph, service: GraphService, placement: Placement) -> RewrittenContainer:
    ranked = _with_rank(container, placement) if graph.knows_ranks or service.is_of_role else RewrittenContainer(container)
    if service.framework is Framework.NONE:
        if service.is_of_role:
            return ranked
        return ranked.with_warnings(placement.warning(_why_unchanged(graph, service)))
    return BACKENDS[service.framework].rewritten(ranked.container, placement).with_warnings(*ranked.warnings)


def _with_rank(container: Body, placement: Placement) -> RewrittenContainer:
    """The container with the variables by which it knows its rank and its leader, and a warning if its user has set one of them."""
    addresses = placement.addresses
    values = {
        RANK: "0" if placement.role is Role.LEADER else by_kubelet(addresses.rank_variable),
        LEADER: addresses.leader(by_kubelet),
    }
    own = [env for env in container["env"] if env.get("name") in values]
    variables = [{"name": name, "value": value} for name, value in values.items()]
    changed = {**container, "env": list(merged_envs(container["env"], variables))}
    names = ", ".join(str(env["name"]) for env in own)
    return RewrittenContainer(changed, warnings=(placement.warning(f"{names}: the given value is replaced"),) if own else ())


def _why_unchanged(graph: InferenceGraph, service: GraphService) -> str:
    """Why the nodes of a service do not work together, and what its author can do."""
    start = f"every node runs the same command, as {service.nodes} independent servers: "
    if not graph.is_recorded and service.component_type not in WORKERS:
        reason = "the service is no worker, prefill or decode, and the graph was made when only those were changed"
        return f'{start}{reason}; set componentType: worker, or annotate the graph with {POD_FORM}: "{PodForm.CURRENT}"'
    return (
        f"{start}none of `python … -m dynamo.vllm`, `dynamo.sglang` and `dynamo.trtllm` was recognised in it;"
        " spec.backendFramework can name the framework"
    )


def _pod(service: GraphService, rewritten: RewrittenContainer, volumes: ServiceVolumes, path: Path) -> dict[str, Any]:
    """The pod spec: defaults, then `extraPodSpec`, then the main container and its volumes behind those of the user."""
    user = {field: value for field, value in service.extra_pod_spec.items() if field != "mainContainer"}
    below = (*path, "extraPodSpec")
    own, init = ([_with_shared(each, rewritten) for each in maps_at(user, below, key)] for key in ("containers", "initContainers"))
    lists = {
        "containers": [*own, rewritten.container],
        "volumes": [*maps_at(user, below, "volumes"), *volumes.volumes, *rewritten.volumes],
        "initContainers": _init_containers(init, rewritten.init_containers),
    }
    return {**merged(default_pod(service), user), **{field: entries for field, entries in lists.items() if entries}}


def _with_shared(container: Body, rewritten: RewrittenContainer) -> Body:
    """A container of the user beside the main one, with the variables and mounts that concern every container, unless it has its own."""
    if not (rewritten.shared_envs or rewritten.shared_mounts):
        return container
    envs, mounts = mappings(container.get("env")), mappings(container.get("volumeMounts"))
    names, places = {env.get("name") for env in envs}, {mount.get("mountPath") for mount in mounts}
    added = {
        "env": [*(env for env in rewritten.shared_envs if env["name"] not in names), *envs],
        "volumeMounts": [*mounts, *(mount for mount in rewritten.shared_mounts if mount["mountPath"] not in places)],
    }
    return {**container, **{field: entries for field, entries in added.items() if entries}}


def _init_containers(own: list[Body], added: Sequence[Body]) -> list[Body]:
    """The entries of the user, then the others, without those that have the name of one of the user's."""
    names = {container.get("name") for container in own}
    return [*own, *(container for container in added if container["name"] not in names)]


def _check_names(pod: Body, main: Body, path: Path) -> None:
    """Raise `PodFault` where a server would reject the pod for a name or a mount path that occurs twice."""
    below = (*path, "extraPodSpec")
    containers = [*pod["containers"], *maps_at(pod, below, "initContainers")]
    if name := _repeated(entry.get("name") for entry in containers):
        raise PodFault((*below, "containers"), f"two containers have the name {printable(name)}; that of the service is the main container")
    if name := _repeated(entry.get("name") for entry in pod.get("volumes", ())):
        raise PodFault(
            (*below, "volumes"), f"two volumes have the name {printable(name)}; volumeMounts and sharedMemory of the service add volumes"
        )
    if mount_path := _repeated(entry.get("mountPath") for entry in main.get("volumeMounts", ())):
        hint = "; sharedMemory.disabled leaves out the one of the service" if mount_path == "/dev/shm" else ""
        raise PodFault((*below, "mainContainer", "volumeMounts"), f"two volumes are mounted at {printable(mount_path)}{hint}")


def _repeated(values: Iterable[Any]) -> str:
    """The first text that occurs a second time; empty if none does."""
    seen: set[str] = set()
    for value in values:
        text = str(value or "")
        if text and text in seen:
            return text
        seen.add(text)
    return ""
