"""Pod rules: what an API server's validation asks of pod specs beyond their types, by type.

The tables state what Kubernetes documents of each field; `make e2e` compares their verdicts with those of a real API server.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from resources.schema import pod_amounts, pod_containers, pod_placement, pod_security, pod_volumes
from resources.schema.issues import Issue, Path
from resources.schema.pod_checks import Fields, Rule
from resources.schema.pod_containers import Placed, containers_of
from resources.schema.pod_volumes import secret_name

ContainersRule = Callable[[Fields, Path, Sequence[Placed]], Iterable[Issue]]
"""A pod spec, its path and its containers -> what is wrong with them together."""
CONTAINERS_RULES: Final[tuple[ContainersRule, ...]] = (
    pod_containers.names,
    pod_containers.roles,
    pod_containers.host_ports,
    pod_containers.claims,
    pod_volumes.uses,
    pod_security.host_users,
    pod_security.host_processes,
)


def _containers_together(spec: Fields, path: Path) -> Iterator[Issue]:
    containers = tuple(containers_of(spec, path))
    for rule in CONTAINERS_RULES:
        yield from rule(spec, path, containers)


RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "PodSpec": (
        _containers_together,
        pod_amounts.pod_requirements,
        pod_amounts.overhead,
        pod_placement.spreading,
        pod_placement.naming,
        pod_security.shared_namespaces,
        pod_security.operating_system,
    ),
    "Container": (pod_containers.container,),
    "MainContainer": (pod_containers.container,),
    "Probe": (pod_containers.probe,),
    "LifecycleHandler": (pod_containers.hook,),
    "EnvVar": (pod_containers.env_variable,),
    "EnvVarSource": (pod_containers.env_source, pod_containers.env_reference),
    "EnvFromSource": (pod_containers.env_from,),
    "ResourceFieldSelector": (pod_amounts.field_reference,),
    "VolumeMount": (pod_containers.mount,),
    "PodResourceClaim": (pod_containers.claim_source,),
    "Volume": (pod_volumes.volume,),
    "VolumeProjection": (pod_volumes.projection,),
    "ProjectedVolumeSource": (pod_volumes.projected,),
    "EmptyDirVolumeSource": (pod_volumes.empty_directory,),
    "DownwardAPIVolumeFile": (pod_volumes.downward_file,),
    "CSIVolumeSource": (pod_volumes.csi,),
    "ISCSIVolumeSource": (pod_volumes.iscsi,),
    "FCVolumeSource": (pod_volumes.fibre_channel,),
    "FlockerVolumeSource": (pod_volumes.flocker,),
    "QuobyteVolumeSource": (pod_volumes.quobyte,),
    "AzureDiskVolumeSource": (pod_volumes.azure_disk,),
    "FlexVolumeSource": (pod_volumes.flex,),
    "CinderVolumeSource": (secret_name("secretRef"),),
    "StorageOSVolumeSource": (secret_name("secretRef"),),
    "PersistentVolumeClaimTemplate": (pod_volumes.claim_metadata,),
    "PersistentVolumeClaimSpec": (pod_volumes.claim_spec, pod_amounts.claim_storage),
    "LabelSelectorRequirement": (pod_placement.label_requirement,),
    "NodeSelectorTerm": (pod_placement.node_term,),
    "NodeSelector": (pod_placement.node_selector,),
    "PodAffinityTerm": (pod_placement.pod_term,),
    "TopologySpreadConstraint": (pod_placement.spread_constraint,),
    "Toleration": (pod_placement.toleration,),
    "SeccompProfile": (pod_security.seccomp,),
    "AppArmorProfile": (pod_security.app_armor,),
    "SecurityContext": (pod_security.container_context,),
    "WindowsSecurityContextOptions": (pod_security.windows_options,),
}
"""Type -> the rules for its objects."""
