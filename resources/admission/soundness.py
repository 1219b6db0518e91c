"""Soundness: what a set must not get wrong for its objects to be computed at all; everything finer is the business of admission.

A set that is known already is judged by nothing else, so whatever could make the computing of its objects fail is a rule here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from engine.resource import Body
from resources.admission import dependency_rules, plain, sharing
from resources.base.kinds import PODCLIQUESET
from resources.ports.configuration import Configuration
from resources.schema.issues import Fault, Issue, Path, Rejected, duplicates
from resources.schema.parse import parse
from resources.schema.podcliqueset import CliqueTemplate, PodCliqueSet, ScalingGroupConfig, Template

CLIQUES: Final[Path] = ("spec", "template", "cliques")
GROUPS: Final[Path] = ("spec", "template", "podCliqueScalingGroups")
POSITIVE: Final = "must be greater than 0"
TOO_FEW: Final = "minAvailable must not be greater than replicas"


def faults(spec: Mapping[str, Any], configuration: Configuration) -> tuple[str, ...]:
    """What is wrong with a set whose defaults are filled in: each fault with its field path; none if it can be computed."""
    return tuple(map(str, _of_spec(spec, configuration)))


def _of_spec(spec: Mapping[str, Any], configuration: Configuration) -> tuple[Issue, ...]:
    if strange := tuple(plain.issues(spec, ("spec",))):
        return strange
    try:
        return tuple(issues(read({"spec": spec}).spec.template, configuration))
    except Rejected as rejected:
        return rejected.issues


def read(body: Body) -> PodCliqueSet:
    """The model of a set; what it says beyond the model is not looked at. Raises `Rejected` where it has not the shape of a set."""
    return cast(PodCliqueSet, parse(PODCLIQUESET, body, strict=False))


def issues(template: Template, configuration: Configuration) -> Iterator[Issue]:
    """What is wrong with a template that has the right shape and its defaults."""
    if not template.cliques:
        yield Issue(CLIQUES, Fault.REQUIRED, "at least one PodClique must be defined")
    for number, clique in enumerate(template.cliques):
        yield from _clique((*CLIQUES, number), clique)
    yield from duplicates(((*CLIQUES, number, "name"), clique.name) for number, clique in enumerate(template.cliques))
    yield from dependency_rules.issues(template)
    yield from _groups(template)
    yield from sharing.issues(template)
    yield from _schedulers(template.cliques, configuration)


def _clique(path: Path, clique: CliqueTemplate) -> Iterator[Issue]:
    if not clique.spec.pod_spec["containers"]:
        yield Issue((*path, "spec", "podSpec", "containers"), Fault.REQUIRED, "at least one container must be defined")
    minimum = clique.spec.replicas if clique.spec.min_available is None else clique.spec.min_available
    yield from _numbers((*path, "spec"), clique.spec.replicas, minimum)


def _numbers(path: Path, replicas: int, minimum: int) -> Iterator[Issue]:
    for field, number in (("replicas", replicas), ("minAvailable", minimum)):
        if number <= 0:
            yield Issue((*path, field), Fault.INVALID, POSITIVE, number)
    if minimum > replicas:
        yield Issue((*path, "minAvailable"), Fault.INVALID, TOO_FEW, minimum)


def _groups(template: Template) -> Iterator[Issue]:
    groups = template.pod_clique_scaling_groups
    known = frozenset(clique.name for clique in template.cliques)
    for number, group in enumerate(groups):
        path = (*GROUPS, number)
        if not group.clique_names:
            yield Issue((*path, "cliqueNames"), Fault.REQUIRED, "at least one PodClique must be named")
        if unknown := [name for name in dict.fromkeys(group.clique_names) if name not in known]:
            yield Issue((*path, "cliqueNames"), Fault.INVALID, "unidentified PodClique names found", ",".join(unknown))
        yield from _numbers(path, group.replicas, group.min_available)
    yield from duplicates(((*GROUPS, number, "name"), group.name) for number, group in enumerate(groups))
    yield from duplicates(members(groups))


def members(groups: Sequence[ScalingGroupConfig]) -> Iterator[tuple[Path, str]]:
    """Every clique that is named by a group, and where."""
    for number, group in enumerate(groups):
        for place, name in enumerate(group.clique_names):
            yield (*GROUPS, number, "cliqueNames", place), name


def _schedulers(cliques: Sequence[CliqueTemplate], configuration: Configuration) -> Iterator[Issue]:
    """All pods of a set have the same scheduler, and it is one of those that are enabled."""
    asked = [((*CLIQUES, number, "spec", "podSpec", "schedulerName"), _scheduler(clique)) for number, clique in enumerate(cliques)]
    # Where each of them is named first: the second of these places is where somebody begins to differ.
    meant = {name or configuration.default_scheduler: path for path, name in reversed(asked)}
    if len(meant) > 1:
        message = "the schedulerName for all pods have to be the same"
        yield Issue(sorted(meant.values())[1], Fault.INVALID, message, ", ".join(sorted(meant)))
    for name in dict.fromkeys(name for _, name in asked):
        if name and name not in configuration.schedulers:
            message = "schedulerName must be an enabled scheduler backend; this scheduler is not enabled in OperatorConfiguration"
            yield Issue(meant[name], Fault.INVALID, message, name)
        elif configuration.default_scheduler not in configuration.schedulers and not name:
            yield Issue(("spec",), Fault.INVALID, "default scheduler backend is not configured")


def _scheduler(clique: CliqueTemplate) -> str:
    return clique.spec.pod_spec.get("schedulerName") or ""
