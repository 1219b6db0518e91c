"""AdmittedSet: a set as it is admitted_set for, with its defaults: as it is stored, or as a manifest proposes it."""

from dataclasses import dataclass

from engine.canonical import canonical
from engine.memo import Memo
from engine.observed import Observed
from engine.paths import overlay
from engine.resource import Body
from resources.admission.admit import admit
from resources.admission.defaults import defaulted
from resources.admission.request import Act, Request
from resources.admission.soundness import faults
from resources.base import labels
from resources.ports.configuration import Configuration
from resources.ports.references import references


@dataclass(frozen=True, slots=True, eq=False)
class AdmittedSet:
    """What is admitted_set for, and what is wrong with it."""

    body: Body
    gist: bytes
    """What tells an edit: neither a state nor another number of replicas changes it."""
    is_new: bool
    """Whether nobody has dealt with the set yet: it is admitted, and enrolled where it is to be, now or never (R20, R21)."""
    problems: tuple[str, ...]


def admitted_set(observed: Observed, configuration: Configuration, looked_at: tuple[str, ...], memo: Memo) -> AdmittedSet:
    """The set as it is admitted_set for. One that is new passes the rules of admission, for nothing may stand in front of the cluster to
    do that; `looked_at` are the kinds of which everything is seen."""
    is_new = _is_new(observed)
    facts = (observed.root, observed.proposal, configuration, observed.references if is_new else None)
    return memo.recall(
        "admitted_set", facts, lambda: _admitted(observed, configuration, looked_at) if is_new else _known(observed, configuration)
    )


def _is_new(observed: Observed) -> bool:
    root = observed.root
    if not root.uid:
        return True
    is_admitted = labels.SET_FINALIZER in (root.body["metadata"].get("finalizers") or ())
    return not is_admitted and "observedGeneration" not in (root.body.get("status") or {})


def _admitted(observed: Observed, configuration: Configuration, looked_at: tuple[str, ...]) -> AdmittedSet:
    lives = observed.references.objects.values()
    # Of a set that is only proposed nobody can say that what it refers to is missing: perhaps nobody has looked for that.
    known = looked_at if observed.root.uid else {live.id.kind for live in lives}
    seen = references(lives, (kind for kind in known if kind not in observed.incomplete))
    decision = admit(Request(Act.CREATE, observed.root.id, _said(observed)), configuration, seen)
    return _asked(decision.body or {}, tuple(map(str, decision.issues)), is_new=True)


def _known(observed: Observed, configuration: Configuration) -> AdmittedSet:
    """A known set is held to no rule but that it can be computed: the rules may be younger than it."""
    body = defaulted(_said(observed), observed.root.body)
    return _asked(body, faults(body.get("spec") or {}, configuration), is_new=False)


def _said(observed: Observed) -> Body:
    body = observed.root.body
    if observed.proposal is None:
        return body
    return {**observed.proposal, "metadata": overlay(body["metadata"], observed.proposal.get("metadata") or {})}


def _asked(body: Body, problems: tuple[str, ...], *, is_new: bool) -> AdmittedSet:
    if problems:
        return AdmittedSet(body, b"", is_new, problems)
    metadata, spec = body["metadata"], body.get("spec") or {}
    gist = canonical([spec.get("template"), spec.get("updateStrategy"), metadata.get("labels"), metadata.get("annotations")])
    return AdmittedSet(body, gist, is_new, ())
