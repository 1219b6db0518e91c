"""Asked: a set as it is asked for, with its defaults: as it is stored, or as a manifest proposes it."""

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
from resources.ports.configuration import Setup
from resources.ports.references import neighbours


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What is asked for, and what is wrong with it."""

    body: Body
    gist: bytes
    """What tells an edit: neither a state nor another number of replicas changes it."""
    is_new: bool
    """Whether nobody has dealt with the set yet: it is admitted, and enrolled where it is to be, now or never (R20, R21)."""
    problems: tuple[str, ...]


def asked(observed: Observed, setup: Setup, looked_at: tuple[str, ...], memo: Memo) -> Asked:
    """The set as it is asked for. One that is new passes the rules of admission, for nothing may stand in front of the cluster to
    do that; `looked_at` are the kinds of which everything is seen."""
    is_new = _is_new(observed)
    facts = (observed.root, observed.proposal, setup, observed.neighbours if is_new else None)
    return memo.recall("asked", facts, lambda: _admitted(observed, setup, looked_at) if is_new else _known(observed, setup))


def _is_new(observed: Observed) -> bool:
    root = observed.root
    if not root.uid:
        return True
    is_admitted = labels.SET_FINALIZER in (root.body["metadata"].get("finalizers") or ())
    return not is_admitted and "observedGeneration" not in (root.body.get("status") or {})


def _admitted(observed: Observed, setup: Setup, looked_at: tuple[str, ...]) -> Asked:
    lives = observed.neighbours.objects.values()
    # Of a set that is only proposed nobody can say that what it refers to is missing: perhaps nobody has looked for that.
    known = looked_at if observed.root.uid else {live.id.kind for live in lives}
    seen = neighbours(lives, (kind for kind in known if kind not in observed.incomplete))
    decision = admit(Request(Act.CREATE, observed.root.id, _said(observed)), setup, seen)
    return _asked(decision.body or {}, tuple(map(str, decision.issues)), is_new=True)


def _known(observed: Observed, setup: Setup) -> Asked:
    """A known set is held to no rule but that it can be computed: the rules may be younger than it."""
    body = defaulted(_said(observed), observed.root.body)
    return _asked(body, faults(body.get("spec") or {}, setup), is_new=False)


def _said(observed: Observed) -> Body:
    body = observed.root.body
    if observed.proposal is None:
        return body
    return {**observed.proposal, "metadata": overlay(body["metadata"], observed.proposal.get("metadata") or {})}


def _asked(body: Body, problems: tuple[str, ...], *, is_new: bool) -> Asked:
    if problems:
        return Asked(body, b"", is_new, problems)
    metadata, spec = body["metadata"], body.get("spec") or {}
    gist = canonical([spec.get("template"), spec.get("updateStrategy"), metadata.get("labels"), metadata.get("annotations")])
    return Asked(body, gist, is_new, ())
