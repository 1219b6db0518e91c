"""Admit: one door for everybody who asks whether something may be done to an object: the webhook, the preview and the sandbox."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final, cast

from engine.ids import Kind
from engine.paths import get
from engine.report.printable import clipped
from engine.resource import Body
from resources.admission import binding_rules, create_rules, managed_rules, plain, topology_rules, update_rules
from resources.admission.defaults import defaulted
from resources.admission.managed_rules import Protection
from resources.admission.request import Act, Decision, Request
from resources.admission.soundness import read
from resources.base.kinds import PODCLIQUESET, TOPOLOGY_BINDING
from resources.ports.configuration import Configuration
from resources.ports.references import NoReferences, References
from resources.ports.scheduler import ValidatingScheduler
from resources.schema import pod_spec_rules
from resources.schema.issues import LONGEST, Fault, Issue, Rejected
from resources.schema.parse import beside, faults, mistaken, parse
from resources.schema.podcliqueset import PodCliqueSet, Template
from resources.schema.topology import ClusterTopologyBinding

UNSEEN: Final = NoReferences()
UNPROTECTED: Final = Protection()

Judge = Callable[[Request, Configuration, References], Decision]


def admit(request: Request, configuration: Configuration, around: References = UNSEEN, protection: Protection = UNPROTECTED) -> Decision:
    """What becomes of a request. Pure, and never raises, whatever the object is.

    Every issue is told, and none hides another, with four exceptions: what is no JSON, and what has not the shape of its kind, is told
    alone, for nobody can say what it means; an update is held against what was before only if it is sound in itself; and topology
    constraints are read from the outside in (`topology_rules`).
    """
    if request.subresource or request.act is Act.CONNECT:
        return Decision(body=request.body)
    judge = JUDGES.get((request.id.group, request.id.kind))
    decision = judge(request, configuration, around) if judge else managed_rules.decide(request, around, protection)
    warnings = tuple(dict.fromkeys(clipped(warning, LONGEST) for warning in decision.warnings))
    return Decision(decision.issues, warnings, clipped(decision.denial, LONGEST), decision.body)


@dataclass(frozen=True, slots=True)
class Version:
    """A PodCliqueSet with its defaults, as JSON and as its model."""

    body: Body
    model: PodCliqueSet

    @property
    def template(self) -> Template:
        """What its replicas are made of."""
        return self.model.spec.template


def _set(request: Request, configuration: Configuration, around: References) -> Decision:
    """A PodCliqueSet. One that is on its way out is not judged: nothing is made of it any more, and its finalizers must be able to go."""
    if request.act is Act.DELETE or _is_going(request.old):
        return Decision(body=request.body)
    if strange := _strange(PODCLIQUESET, request.body):
        return Decision(strange, body=request.body)
    old = _stored(request.old) if request.act is Act.UPDATE else None
    body = defaulted(cast(Body, request.body), old.body if old else None)
    pods = pod_spec_rules.judged(PODCLIQUESET, body, old.body if old else None)
    wrong = tuple(finding for finding in pods if finding.kind is not Fault.UNKNOWN)
    unknown = (*_unknown_fields(PODCLIQUESET, request.body), *(pod_spec_rules.warning(one) for one in pods if one.kind is Fault.UNKNOWN))
    try:
        new = Version(body, read(body))
    except Rejected as rejected:
        return Decision((*beside(rejected.issues, wrong), *wrong), unknown, body=request.body)
    if request.act is Act.CREATE:
        new = replace(new, body=reduce(lambda body, fabric: fabric.enrolled(body), configuration.fabrics, new.body))
        found = _creation(new, configuration, around)
        advice = topology_rules.warnings(new.template, around, enabled=configuration.topology)
    else:
        found = _update(old, new, configuration, around)
        advice = update_rules.warnings(old.template if old else new.template, new.template, around, topology=configuration.topology)
    issues = (*wrong, *found)
    if old and not issues:
        issues = tuple(update_rules.issues(old.template, new.template, around, topology=configuration.topology))
    warnings = (*unknown, *create_rules.warnings(new.template), *advice, *_plug_in_warnings(new, configuration, around))
    return Decision(issues, warnings, body=new.body)


def _stored(old: Any) -> Version | None:
    """What an update is held against; None where that was no set."""
    if not isinstance(old, Mapping) or any(plain.issues(old)):
        return None
    body = defaulted(old)
    try:
        return Version(body, read(body))
    except Rejected:
        return None


def _creation(new: Version, configuration: Configuration, around: References) -> Iterator[Issue]:
    """What is wrong with a new set."""
    yield from topology_rules.issues(new.template, around, enabled=configuration.topology)
    yield from create_rules.issues(new.model, configuration)
    yield from create_rules.newcomer_issues(new.template)
    for fabric in configuration.fabrics:
        yield from fabric.creation_issues(new.body)
    for scheduler in _exacting(new, configuration):
        yield from scheduler.issues(new.body, around)


def _update(old: Version | None, new: Version, configuration: Configuration, around: References) -> Iterator[Issue]:
    """What is wrong with a new version in itself, and what the fabrics let nobody change."""
    yield from create_rules.issues(new.model, configuration)
    if old is not None:
        for fabric in configuration.fabrics:
            yield from fabric.update_issues(old.body, new.body)
    for scheduler in _exacting(new, configuration):
        yield from scheduler.issues(new.body, around)


def _strange(kind: Kind, body: Any) -> tuple[Issue, ...]:
    """What keeps anybody from reading an object as one of that kind."""
    return tuple(plain.issues(body)) or tuple(mistaken(kind, body))


def _is_going(old: Any) -> bool:
    return isinstance(old, Mapping) and bool(get(old, ("metadata", "deletionTimestamp")))


def _exacting(new: Version, configuration: Configuration) -> Iterator[ValidatingScheduler]:
    """The back end that the set names, if it has rules of its own."""
    name = next((clique.spec.pod_spec.get("schedulerName") or "" for clique in new.template.cliques), "")
    scheduler: object = configuration.schedulers.get(name or configuration.default_scheduler)
    if isinstance(scheduler, ValidatingScheduler):
        yield scheduler


def _plug_in_warnings(new: Version, configuration: Configuration, around: References) -> Iterator[str]:
    for fabric in configuration.fabrics:
        yield from fabric.warnings(new.body)
    for scheduler in _exacting(new, configuration):
        yield from scheduler.warnings(new.body, around)


def _unknown_fields(kind: Kind, body: Any) -> tuple[str, ...]:
    """What nobody reads, in the words of an API server."""
    return tuple(f'unknown field "{issue.field}"' for issue in faults(kind, body) if issue.kind is Fault.UNKNOWN)


def _binding(request: Request, configuration: Configuration, _: References) -> Decision:
    """A ClusterTopologyBinding."""
    if request.act is Act.DELETE or _is_going(request.old):
        return Decision(body=request.body)
    if strange := _strange(TOPOLOGY_BINDING, request.body):
        return Decision(strange, body=request.body)
    unknown = _unknown_fields(TOPOLOGY_BINDING, request.body)
    try:
        asked = cast(ClusterTopologyBinding, parse(TOPOLOGY_BINDING, request.body, strict=False))
    except Rejected as rejected:
        return Decision(rejected.issues, unknown, body=request.body)
    return Decision(tuple(binding_rules.issues(asked, configuration)), unknown, body=request.body)


JUDGES: Final[Mapping[tuple[str, str], Judge]] = {
    (PODCLIQUESET.group, PODCLIQUESET.name): _set,
    (TOPOLOGY_BINDING.group, TOPOLOGY_BINDING.name): _binding,
}
"""Who judges which kinds. What is left might be something that we have made."""
