"""Mounts of a graph: the Secrets and claims that its pods mount, and which services lack some."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import Live, Observed
from engine.paths import get
from resources.base import kinds
from resources.base.fields import mapping, mappings
from resources.dynamo.model.graph import InferenceGraph
from resources.dynamo.objects import pvc, ssh_secret
from resources.dynamo.objects.group_scheduler import TEMPLATES
from resources.ports.configuration import ONLY, Configuration


def blockers_of(observed: Observed, graph: InferenceGraph, configuration: Configuration) -> Mapping[str, str]:
    """Service -> why its pods must not be created: a Secret or a claim that it mounts is known not to exist."""
    known = {id for id, live in observed.looked_up.items() if live is not None}
    unknown = {id for id in mounted(graph, configuration) if id not in observed.looked_up}
    present = {(id.kind, id.name) for id in known | unknown}
    claims = [name for kind, name in present if kind == kinds.PVC.name]
    secrets = [name for kind, name in present if kind == kinds.SECRET.name]
    lacks: dict[str, list[str]] = {}
    for missing in (pvc.missing_claims(graph, claims), ssh_secret.missing_secrets(graph, configuration.dynamo, secrets)):
        for service, why in missing.items():
            lacks.setdefault(service, []).append(why)
    return {service: "; ".join(reasons) for service, reasons in lacks.items()}


def with_existing_secrets(observed: Observed, graph: InferenceGraph, configuration: Configuration) -> Configuration:
    """The configuration with the SSH Secrets that exist: a service may have one that it shares."""
    shared = ssh_secret.shared_secrets(graph, configuration.dynamo)
    existing = {id.name for id, live in observed.looked_up.items() if live is not None and id.kind == kinds.SECRET.name}
    if existing.isdisjoint(shared) or not ssh_secret.needed_secrets(graph, configuration.dynamo):
        return configuration
    settings = ssh_secret.with_existing(graph, configuration.dynamo, existing, set(_mounted_secrets(observed)))
    return replace(configuration, dynamo=settings) if settings.ssh_names else configuration


def pods_of(observed: Observed) -> Iterator[Live]:
    """The pods of the graph's set."""
    return (pod for nested in observed.nested.values() for part in nested.slices.values() for pod in part.of(kinds.POD.name))


def _mounted_secrets(observed: Observed) -> Iterator[str]:
    """The names of the Secrets that pods of a graph, or the templates of its LeaderWorkerSets, mount."""
    pods = (pod.body for pod in pods_of(observed))
    groups = (live.body for live in observed.slice(ONLY).of(kinds.LEADER_WORKER_SET.name))
    templates = (get(body, ("spec", "leaderWorkerTemplate", field), {}) for body in groups for field in TEMPLATES)
    for body in (*pods, *templates):
        yield from (mapping(volume.get("secret")).get("secretName", "") for volume in mappings(get(body, ("spec", "volumes"), ())))


def mounted(graph: InferenceGraph, configuration: Configuration) -> Iterator[ResourceId]:
    """The Secrets and claims that the pods of a graph mount, each once."""
    secrets = list(ssh_secret.needed_secrets(graph, configuration.dynamo).values())
    secrets += ssh_secret.shared_secrets(graph, configuration.dynamo) if secrets else []
    claims = [name for service in graph.services for name in pvc.mounted_claims(service)]
    claims += [entry.name for entry in graph.pvcs if entry.name]
    yield from (kinds.SECRET.id(graph.namespace, name) for name in dict.fromkeys(secrets))
    yield from (kinds.PVC.id(graph.namespace, name) for name in dict.fromkeys(claims))
