"""Computable rules: what a PodCliqueSet must satisfy for its objects to be computed.

A set that was admitted before is judged by these rules only, so anything that would make the computation fail is a rule here.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from resources.admission import dependency_rules, sharing_rules
from resources.base.fields import CLIQUES, GROUPS
from resources.ports.configuration import Configuration
from resources.schema.issues import ErrorType, Issue, Path, duplicates
from resources.schema.podcliqueset import CliqueTemplate, ScalingGroupConfig, SetTemplate
from resources.schema.unknown_fields import instead

POSITIVE: Final = "must be greater than 0"
NOT_ENABLED: Final = "schedulerName must be an enabled scheduler backend; this scheduler is not enabled in OperatorConfiguration"
MINIMUM_TOO_LARGE: Final = "minAvailable must not be greater than replicas"


def issues(template: SetTemplate) -> Iterator[Issue]:
    """The issues of a template that has the right shape and its defaults, besides those of its schedulers."""
    if not template.cliques:
        yield Issue(CLIQUES, ErrorType.REQUIRED, "at least one PodClique must be defined")
    for number, clique in enumerate(template.cliques):
        yield from _clique((*CLIQUES, number), clique)
    yield from duplicates(((*CLIQUES, number, "name"), clique.name) for number, clique in enumerate(template.cliques))
    yield from dependency_rules.issues(template)
    yield from _groups(template)
    yield from sharing_rules.issues(template)


def _clique(path: Path, clique: CliqueTemplate) -> Iterator[Issue]:
    if not clique.spec.pod_spec["containers"]:
        yield Issue((*path, "spec", "podSpec", "containers"), ErrorType.REQUIRED, "at least one container must be defined")
    minimum = clique.spec.replicas if clique.spec.min_available is None else clique.spec.min_available
    yield from _replica_issues((*path, "spec"), clique.spec.replicas, minimum)


def _replica_issues(path: Path, replicas: int, minimum: int) -> Iterator[Issue]:
    for field, number in (("replicas", replicas), ("minAvailable", minimum)):
        if number <= 0:
            yield Issue((*path, field), ErrorType.INVALID, POSITIVE, number)
    if minimum > replicas:
        yield Issue((*path, "minAvailable"), ErrorType.INVALID, MINIMUM_TOO_LARGE, minimum)


def _groups(template: SetTemplate) -> Iterator[Issue]:
    groups = template.pod_clique_scaling_groups
    names = [clique.name for clique in template.cliques if clique.name]
    known = frozenset(names)
    for number, group in enumerate(groups):
        path = (*GROUPS, number)
        if not group.clique_names:
            yield Issue((*path, "cliqueNames"), ErrorType.REQUIRED, "at least one PodClique must be named")
        if unknown := [name for name in dict.fromkeys(group.clique_names) if name not in known]:
            message = f"unidentified PodClique names found{instead(unknown, names)}"
            yield Issue((*path, "cliqueNames"), ErrorType.INVALID, message, ",".join(unknown))
        yield from _replica_issues(path, group.replicas, group.min_available)
    yield from duplicates(((*GROUPS, number, "name"), group.name) for number, group in enumerate(groups))
    yield from duplicates(members(groups))


def members(groups: Sequence[ScalingGroupConfig]) -> Iterator[tuple[Path, str]]:
    """The path and the value of every entry of a scaling group's `cliqueNames`."""
    for number, group in enumerate(groups):
        for index, name in enumerate(group.clique_names):
            yield (*GROUPS, number, "cliqueNames", index), name


def scheduler_issues(template: SetTemplate, configuration: Configuration) -> Iterator[Issue]:
    """All pods of a set must have the same scheduler, which must be enabled."""
    path = ("spec", "podSpec", "schedulerName")
    named = [((*CLIQUES, number, *path), _scheduler(clique)) for number, clique in enumerate(template.cliques)]
    # Scheduler -> the first clique that names it. Different schedulers are reported at the first clique that differs from those before it.
    first_paths = {name or configuration.default_scheduler: path for path, name in reversed(named)}
    if len(first_paths) > 1:
        message = "the schedulerName for all pods have to be the same"
        yield Issue(sorted(first_paths.values())[1], ErrorType.INVALID, message, ", ".join(sorted(first_paths)))
    for name in dict.fromkeys(name for _, name in named):
        if name and name not in configuration.schedulers:
            message = f"{NOT_ENABLED}{instead([name], sorted(configuration.schedulers))}"
            yield Issue(first_paths[name], ErrorType.INVALID, message, name)
        elif configuration.default_scheduler not in configuration.schedulers and not name:
            yield Issue(("spec",), ErrorType.INVALID, "default scheduler backend is not configured")


def _scheduler(clique: CliqueTemplate) -> str:
    """The scheduler that a clique names; empty for the default."""
    return clique.spec.pod_spec.get("schedulerName") or ""
