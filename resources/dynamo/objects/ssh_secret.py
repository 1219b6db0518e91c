"""SSH Secrets: the key pairs with which the leader of a TensorRT-LLM service on several nodes reaches its workers."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from engine.ids import Owner
from engine.observed import Live
from engine.resource import Policy, Want
from resources.base import kinds
from resources.base.fields import manifest, omitted_fields
from resources.base.labels import GRAPH_MANAGER, MANAGED_BY, PART_OF
from resources.dynamo.model.framework import Framework
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.model.names import component
from resources.dynamo.objects.labels import own_labels
from resources.ports.configuration import GENERATED, SSH_KEYS, SSH_SECRET, DynamoSettings

OF_OPERATOR: Final = "mpi-run-ssh-secret"
"""The Secret that Dynamo's operator copies into the namespaces of graphs, by the default of its chart."""


def needed_secrets(graph: InferenceGraph, settings: DynamoSettings) -> dict[str, str]:
    """Service -> the name of its Secret, for each TensorRT-LLM service on several nodes with replicas. Several may share one."""
    return {
        service.name: settings.ssh_secret_of(component(graph, service))
        for service in graph.services
        if service.is_multinode and service.framework is Framework.TRTLLM and service.replicas > 0
    }


def shared_secrets(graph: InferenceGraph, settings: DynamoSettings) -> tuple[str, ...]:
    """The names of the Secrets that all services of a graph may share, the first that exists: the configured one with the graph in place of
    the component, and the one that Dynamo's operator puts into every namespace, unless another name is configured."""
    return (settings.ssh_secret_of(graph.name), *((OF_OPERATOR,) if settings.ssh_secret == SSH_SECRET else ()))


def with_existing(graph: InferenceGraph, settings: DynamoSettings, existing: Collection[str], mounted: Collection[str]) -> DynamoSettings:
    """The settings by which a service has a shared Secret where one exists and its own does not.

    `existing` has the names of the Secrets that exist, `mounted` of those that pods of the graph have: what runs keeps its Secret.
    """
    usable = [name for name in shared_secrets(graph, settings) if name in existing]
    if settings.create_ssh_secret or not usable:
        return settings
    shared = next((name for name in usable if name in mounted), "")
    own = {component(graph, service): settings.ssh_secret_of(component(graph, service)) for service in graph.services}
    lacking = [key for key, name in own.items() if name not in mounted and (shared or name not in existing)]
    return replace(settings, ssh_names=tuple((key, shared or usable[0]) for key in lacking))


def missing_secrets(graph: InferenceGraph, settings: DynamoSettings, existing: Collection[str]) -> dict[str, str]:
    """Service -> why its pods cannot start: its Secret does not exist and is not created.

    `existing` has the names of the Secrets in the graph's namespace. Empty if the settings have missing Secrets created.
    """
    if settings.create_ssh_secret:
        return {}
    shared = shared_secrets(graph, settings)[0]
    return {service: _reason(name, shared) for service, name in needed_secrets(graph, settings).items() if name not in existing}


def created_secrets(graph: InferenceGraph, settings: DynamoSettings, live: Mapping[str, Live]) -> Iterator[Want]:
    """The Secrets that are created for a graph, if the settings ask for it. `live` has the Secrets of its namespace by name.

    A Secret that exists and that others have created is used as it is. A name without `{component}` is shared by the graphs of a
    namespace: each adds its own owner reference, and the Secret is deleted with the last of them.
    """
    if not settings.create_ssh_secret:
        return
    is_shared = settings.ssh_secret_of("") == settings.ssh_secret
    for name in dict.fromkeys(needed_secrets(graph, settings).values()):
        if name in live and not _is_ours(live[name], graph, is_shared=is_shared):
            continue
        body = manifest(kinds.SECRET, graph.namespace, name, own_labels(graph), type="Opaque", data=dict.fromkeys(SSH_KEYS, GENERATED))
        owner = Owner(graph.id, graph.api_version, controller=not is_shared)
        policy = Policy(create_only=True, shared=is_shared, omitted=omitted_fields(kinds.SECRET))
        yield Want(kinds.SECRET.id(graph.namespace, name), "SSH key pair for TensorRT-LLM", (owner,), body=body, policy=policy)


def _is_ours(secret: Live, graph: InferenceGraph, *, is_shared: bool) -> bool:
    """Whether it was created for this graph or, if it is shared, for any graph."""
    return secret.labels.get(MANAGED_BY) == GRAPH_MANAGER and (is_shared or secret.labels.get(PART_OF) == graph.name)


def _reason(name: str, shared: str) -> str:
    keys = " and ".join(SSH_KEYS)
    other = f" (nor {shared} for the whole graph)" if shared != name else ""
    need = f"Secret {name} does not exist{other}: TensorRT-LLM on several nodes needs it for the SSH key pair (keys {keys})"
    return f"{need}; create it, or set dynamo.mpiRun.createSshSecret"
