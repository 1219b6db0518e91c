"""Admit: one door for everybody who asks whether something may be done to an object: the webhook, the preview and the sandbox."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Final, cast

from engine.ids import Kind
from engine.paths import get
from engine.report.printable import clipped
from engine.resource import Body
from resources.admission import binding_rules, create_rules, managed_rules, plain, topology_rules, update_rules
from resources.admission.defaults import defaulted
from resources.admission.issues import LONGEST, Fault, Issue, Rejected
from resources.admission.managed_rules import Protection
from resources.admission.request import Act, Decision, Neighbourhood, Request, Unseen
from resources.admission.soundness import read
from resources.kinds import PODCLIQUESET, TOPOLOGY_BINDING
from resources.ports import Exacting
from resources.schema.parse import faults, parse
from resources.schema.podcliqueset import PodCliqueSet
from resources.schema.topology import ClusterTopologyBinding
from resources.setup import Setup

UNSEEN: Final = Unseen()
UNPROTECTED: Final = Protection()

Judge = Callable[[Request, Setup, Neighbourhood], Decision]
Found = Iterable[Issue]


def admit(request: Request, setup: Setup, around: Neighbourhood = UNSEEN, protection: Protection = UNPROTECTED) -> Decision:
    """What becomes of a request. Pure, and never raises, whatever the object is.

    Every issue is told, and none hides another, with four exceptions: what is no JSON, and what has not the shape of its kind, is told
    alone, for nobody can say what it means; an update is held against what was before only if it is sound in itself; and topology
    constraints are read from the outside in (`topology_rules`).
    """
    if request.subresource or request.act is Act.CONNECT:
        return Decision(body=request.body)
    judge = JUDGES.get((request.id.group, request.id.kind))
    decision = judge(request, setup, around) if judge else managed_rules.decide(request, around, protection)
    warnings = tuple(dict.fromkeys(clipped(warning, LONGEST) for warning in decision.warnings))
    return Decision(decision.issues, warnings, clipped(decision.denial, LONGEST), decision.body)


def _set(request: Request, setup: Setup, around: Neighbourhood) -> Decision:
    """A PodCliqueSet. One that is on its way out is not judged: nothing is made of it any more, and its finalizers must be able to go."""
    if request.act is Act.DELETE or request.body is None or _is_going(request.old):
        return Decision(body=request.body)
    if strange := tuple(plain.issues(request.body)):
        return Decision(strange, body=request.body)
    body = defaulted(request.body)
    unknown = _unknown_fields(PODCLIQUESET, body)
    try:
        asked = read(body)
    except Rejected as rejected:
        return Decision(rejected.issues, unknown, body=body)
    if request.act is Act.CREATE:
        body = reduce(lambda enrolled, fabric: fabric.enrolled(enrolled), setup.fabrics, body)
        issues = tuple(_creation(body, asked, setup, around))
        advice = topology_rules.warnings(asked.spec.template, around, enabled=setup.topology)
    else:
        issues = tuple(_update(request.old, body, asked, setup, around))
        advice = update_rules.warnings(asked.spec.template)
    warnings = (*unknown, *create_rules.warnings(asked.spec.template), *advice, *_plug_in_warnings(body, asked, setup, around))
    return Decision(issues, warnings, body=body)


def _creation(body: Body, asked: PodCliqueSet, setup: Setup, around: Neighbourhood) -> Iterator[Issue]:
    yield from topology_rules.issues(asked.spec.template, around, enabled=setup.topology)
    yield from create_rules.issues(asked, setup)
    yield from create_rules.newcomer_issues(asked.spec.template)
    for fabric in setup.fabrics:
        yield from fabric.creation_issues(body)
    for scheduler in _exacting(asked, setup):
        yield from scheduler.issues(body, around)


def _update(old: Body | None, body: Body, asked: PodCliqueSet, setup: Setup, around: Neighbourhood) -> Found:
    """What is wrong with the new version in itself; if nothing is, what it changes and must not."""
    was = _stored(old)
    found = tuple(create_rules.issues(asked, setup))
    if was is not None:
        found += tuple(issue for fabric in setup.fabrics for issue in fabric.update_issues(was[0], body))
    found += tuple(issue for scheduler in _exacting(asked, setup) for issue in scheduler.issues(body, around))
    if found or was is None:
        return found
    return update_rules.issues(was[1].spec.template, asked.spec.template, around, topology=setup.topology)


def _stored(old: Body | None) -> tuple[Body, PodCliqueSet] | None:
    """The set as it was, with its defaults; None where it was nothing that an update could be held against."""
    if old is None or any(plain.issues(old)):
        return None
    body = defaulted(old)
    try:
        return body, read(body)
    except Rejected:
        return None


def _is_going(old: Any) -> bool:
    return isinstance(old, Mapping) and bool(get(old, ("metadata", "deletionTimestamp")))


def _exacting(asked: PodCliqueSet, setup: Setup) -> Iterator[Exacting]:
    """The back end that the set names, if it has rules of its own."""
    name = next((clique.spec.pod_spec.get("schedulerName") or "" for clique in asked.spec.template.cliques), "")
    scheduler: object = setup.schedulers.get(name or setup.default_scheduler)
    if isinstance(scheduler, Exacting):
        yield scheduler


def _plug_in_warnings(body: Body, asked: PodCliqueSet, setup: Setup, around: Neighbourhood) -> Iterator[str]:
    for fabric in setup.fabrics:
        yield from fabric.warnings(body)
    for scheduler in _exacting(asked, setup):
        yield from scheduler.warnings(body, around)


def _unknown_fields(kind: Kind, body: Any) -> tuple[str, ...]:
    """What nobody reads, in the words of an API server."""
    if not isinstance(body, Mapping):
        return ()
    framed = {**body, "apiVersion": kind.api_version, "kind": kind.name}
    return tuple(f'unknown field "{issue.field}"' for issue in faults(kind, framed) if issue.kind is Fault.UNKNOWN)


def _binding(request: Request, setup: Setup, _: Neighbourhood) -> Decision:
    """A ClusterTopologyBinding."""
    if request.act is Act.DELETE or request.body is None or _is_going(request.old):
        return Decision(body=request.body)
    if strange := tuple(plain.issues(request.body)):
        return Decision(strange, body=request.body)
    unknown = _unknown_fields(TOPOLOGY_BINDING, request.body)
    try:
        asked = cast(ClusterTopologyBinding, parse(TOPOLOGY_BINDING, request.body, strict=False))
    except Rejected as rejected:
        return Decision(rejected.issues, unknown, body=request.body)
    return Decision(tuple(binding_rules.issues(asked, setup)), unknown, body=request.body)


JUDGES: Final[Mapping[tuple[str, str], Judge]] = {
    (PODCLIQUESET.group, PODCLIQUESET.name): _set,
    (TOPOLOGY_BINDING.group, TOPOLOGY_BINDING.name): _binding,
}
"""Who judges which kinds. What is left might be something that we have made."""
