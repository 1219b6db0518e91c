"""Create rules: what a PodCliqueSet must be to be admitted. All but those about new sets hold for every later version of it as well."""

from collections.abc import Iterator
from typing import Any, Final

from engine.duration import nanoseconds
from resources.admission import metadata_rules, soundness
from resources.admission.soundness import CLIQUES, GROUPS
from resources.ports.configuration import Configuration
from resources.schema.autoscaling import AutoScaling
from resources.schema.formats import subdomain_faults, variable_faults
from resources.schema.issues import Fault, Issue, Path, duplicates
from resources.schema.meta import ObjectMeta
from resources.schema.podcliqueset import CREATE_RULES, CliqueTemplate, PodCliqueSet, ScalingGroupConfig, Template
from resources.schema.topology import TopologyConstraint

TEMPLATE: Final[Path] = ("spec", "template")
NAME: Final[Path] = ("metadata", "name")
LONGEST: Final = 45
"""How long the names that the name of a pod is made of may be together."""


def issues(body: PodCliqueSet, configuration: Configuration) -> Iterator[Issue]:
    """What is wrong with a set that has the right shape and its defaults, whether it is new or not."""
    template = body.spec.template
    yield from metadata_rules.issues(body.metadata, namespaced=True)
    if body.spec.replicas < 0:
        yield Issue(("spec", "replicas"), Fault.INVALID, "must be greater than or equal to 0", body.spec.replicas)
    yield from soundness.issues(template, configuration)
    yield from duplicates(((*CLIQUES, number, "spec", "roleName"), clique.spec.role_name) for number, clique in enumerate(template.cliques))
    for number, clique in enumerate(template.cliques):
        yield from _clique((*CLIQUES, number), clique)
    for number, group in enumerate(template.pod_clique_scaling_groups):
        yield from _group((*GROUPS, number), group)
    yield from _scaled_twice(template)
    yield from _lengths(body.metadata, template)
    if template.termination_delay is not None and nanoseconds(template.termination_delay) <= 0:
        message = "terminationDelay must be greater than 0"
        yield Issue((*TEMPLATE, "terminationDelay"), Fault.INVALID, message, template.termination_delay)


def newcomer_issues(template: Template) -> Iterator[Issue]:
    """What only a new set must not have; one that has it already keeps it."""
    yield from _pack_domain(TEMPLATE, template.topology_constraint)
    for number, clique in enumerate(template.cliques):
        yield from _pack_domain((*CLIQUES, number), clique.topology_constraint)
        for field in ("topologySpreadConstraints", "nodeName"):
            said = clique.spec.pod_spec.get(field)
            if said is not None and said != "":
                yield Issue((*CLIQUES, number, "spec", "podSpec", field), Fault.INVALID, "must not be set", said)
    for number, group in enumerate(template.pod_clique_scaling_groups):
        yield from _pack_domain((*GROUPS, number), group.topology_constraint)


def warnings(template: Template) -> Iterator[str]:
    """What is admitted, and hardly meant (Q6)."""
    for clique in template.cliques:
        if clique.spec.pod_spec.get("restartPolicy") not in (None, "", "Always"):
            yield "restartPolicy will be ignored, it will be set to Always"


def _clique(path: Path, clique: CliqueTemplate) -> Iterator[Issue]:
    if not clique.name:
        yield Issue((*path, "name"), Fault.REQUIRED, "field cannot be empty")
    elif subdomain_faults(clique.name):
        yield Issue((*path, "name"), Fault.INVALID, "invalid PodCliqueTemplateSpec name, must be a valid DNS subdomain", clique.name)
    yield from metadata_rules.labels(clique.labels, (*path, "labels"))
    yield from metadata_rules.annotations(clique.annotations, (*path, "annotations"))
    if clique.spec.auto_scaling_config is not None:
        yield from _clique_scaling((*path, "spec", "autoScalingConfig"), clique, clique.spec.auto_scaling_config)
    yield from _pod_spec((*path, "spec", "podSpec"), clique.spec.pod_spec)


def _clique_scaling(path: Path, clique: CliqueTemplate, scaling: AutoScaling) -> Iterator[Issue]:
    least, most = _fewest(scaling, clique.spec.replicas), scaling.max_replicas
    if clique.spec.min_available is not None and least < clique.spec.min_available:
        yield Issue((*path, "minReplicas"), Fault.INVALID, "must be greater than or equal to podCliqueSpec.minAvailable", least)
    if most < least:
        yield Issue((*path, "maxReplicas"), Fault.INVALID, "must be greater than or equal to podCliqueSpec.minReplicas", most)
    if most < clique.spec.replicas:
        yield Issue((*path, "maxReplicas"), Fault.INVALID, "must be greater than or equal to replicas", most)


def _pod_spec(path: Path, spec: dict[str, Any]) -> Iterator[Issue]:
    """What is wrong with what we read of a pod spec, and could not be told from its shape."""
    for field in ("containers", "initContainers"):
        for number, container in enumerate(spec.get(field) or ()):
            yield from _environment((*path, field, number, "env"), container.get("env") or ())


def _environment(path: Path, variables: Any) -> Iterator[Issue]:
    for number, variable in enumerate(variables):
        if faults := variable_faults(variable["name"]):
            yield Issue((*path, number, "name"), Fault.INVALID, "; ".join(faults), variable["name"])
    yield from duplicates(((*path, number, "name"), variable["name"]) for number, variable in enumerate(variables))


def _group(path: Path, group: ScalingGroupConfig) -> Iterator[Issue]:
    if subdomain_faults(group.name):
        yield Issue((*path, "name"), Fault.INVALID, "invalid PodCliqueScalingGroupConfig name, must be a valid DNS subdomain", group.name)
    yield from metadata_rules.annotations(group.annotations, (*path, "annotations"))
    if group.scale_config is not None:
        yield from _group_scaling((*path, "scaleConfig"), group, group.scale_config)


def _group_scaling(path: Path, group: ScalingGroupConfig, scaling: AutoScaling) -> Iterator[Issue]:
    """Q23: the upper bound counts as much as the lower one."""
    least, most = _fewest(scaling, group.replicas), scaling.max_replicas
    if least < group.min_available:
        message = "scaleConfig.minReplicas must be greater than or equal to minAvailable"
        yield Issue((*path, "minReplicas"), Fault.INVALID, message, least)
    if most < least:
        message = "scaleConfig.maxReplicas must be greater than or equal to scaleConfig.minReplicas"
        yield Issue((*path, "maxReplicas"), Fault.INVALID, message, most)
    if most < group.replicas:
        yield Issue((*path, "maxReplicas"), Fault.INVALID, "scaleConfig.maxReplicas must be greater than or equal to replicas", most)


def _fewest(scaling: AutoScaling, replicas: int) -> int:
    return replicas if scaling.min_replicas is None else scaling.min_replicas


def _scaled_twice(template: Template) -> Iterator[Issue]:
    """A clique in a group is scaled with the group, and by nothing else."""
    scaled = frozenset(clique.name for clique in template.cliques if clique.spec.auto_scaling_config is not None)
    for path, name in soundness.members(template.pod_clique_scaling_groups):
        if name in scaled:
            message = "AutoScalingConfig is not allowed to be defined for PodClique that is part of scaling group"
            yield Issue(path, Fault.INVALID, message, name)


def _lengths(metadata: ObjectMeta, template: Template) -> Iterator[Issue]:
    """What is made of these names must still be a host's name; told at each name that could be shorter."""
    root, length = metadata.name or metadata.generate_name or "", metadata_rules.name_length(metadata)
    grouped = {name for _, name in soundness.members(template.pod_clique_scaling_groups)}
    for number, clique in enumerate(template.cliques):
        if clique.name not in grouped and (together := length + len(clique.name)) > LONGEST:
            culprits = f"PodCliqueSet '{root}' or PodClique '{clique.name}'"
            yield from _too_long(together, culprits, {(*CLIQUES, number, "name"): clique.name, NAME: root})
    for number, group in enumerate(template.pod_clique_scaling_groups):
        for place, name in enumerate(group.clique_names):
            if (together := length + len(group.name) + len(name)) > LONGEST:
                culprits = f"PodCliqueSet '{root}', PodCliqueScalingGroup '{group.name}', or PodClique '{name}'"
                path = (*GROUPS, number)
                named: dict[Path, str] = {(*path, "cliqueNames", place): name, (*path, "name"): group.name, NAME: root}
                yield from _too_long(together, culprits, named)


def _too_long(length: int, culprits: str, named: dict[Path, str]) -> Iterator[Issue]:
    message = (
        f"combined resource name length {length} exceeds {LONGEST}-character limit required for pod naming. Consider shortening: {culprits}"
    )
    return (Issue(path, Fault.INVALID, message, name) for path, name in named.items())


def _pack_domain(holder: Path, constraint: TopologyConstraint | None) -> Iterator[Issue]:
    """The one rule of the CRD that knows whether a set is new, told at the very field."""
    if constraint is not None and constraint.pack_domain is not None:
        yield Issue((*holder, "topologyConstraint", "packDomain"), Fault.FORBIDDEN, CREATE_RULES[0].message)
