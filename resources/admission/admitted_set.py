"""AdmittedSet: the desired PodCliqueSet, stored or proposed by a manifest, with its defaults."""

from msgspec import Struct
from msgspec.structs import replace

from engine.canonical import canonical
from engine.conditions import completed_generation
from engine.memo import Memo
from engine.observed import Observed
from engine.paths import get
from engine.plan import Alarm
from engine.resource import Body
from resources.admission.admit import admit
from resources.admission.defaults import defaulted
from resources.admission.request import Act, Request
from resources.admission.set_version import VERSION, SetVersion, read_version
from resources.base import labels
from resources.model.membership import EffectiveSet, Records, effective_set, records_of, specified_body
from resources.ports.configuration import UNLIMITED, Configuration
from resources.ports.references import known_references


class AdmittedSet(Struct, frozen=True, eq=False):
    """The desired set, and the problems because of which nothing can be computed for it."""

    body: Body
    """The set with its defaults, as it is stored; not necessarily valid if there are problems."""
    version: SetVersion
    """What was read from it."""
    effective: Body
    """The set from which its objects are computed: `body` with the fabric domains that its objects record (N24)."""
    faults: tuple[Alarm, ...]
    """One for each annotation of `body` that differs from the record and has no effect (N25)."""
    fingerprint: bytes
    """Changes with edits of the effective template, update strategy, labels and annotations, but not of replicas.

    Empty if there are problems.
    """
    is_new: bool
    """Whether the engine has not managed the set before: only then all admission rules and the fabrics' defaults apply (R20, R21)."""
    problems: tuple[str, ...]
    """Why nothing can be computed for the set; empty if it can."""


def admitted_set(observed: Observed, configuration: Configuration, listed: tuple[str, ...], memo: Memo) -> AdmittedSet:
    """The desired set. `listed` are the kinds of the references that the observation lists.

    A new set must pass all admission rules, because there may be no webhook that has applied them.
    """
    facts = (observed.root, observed.proposal, configuration)
    if _is_new(observed):
        of_new = (*facts, observed.references, listed)
        admitted = memo.recall("admitted_set", of_new, lambda: _new(observed, configuration, listed, memo))
    else:
        records = records_of(observed, configuration, memo)
        admitted = memo.recall("admitted_set", (*facts, records), lambda: _known(observed, configuration, records, memo.last(VERSION)))
    memo.remember(VERSION, admitted.version)
    return admitted


def _is_new(observed: Observed) -> bool:
    """Whether the set is only proposed, or has neither the engine's finalizer nor ever been carried out."""
    root = observed.root
    if not root.uid:
        return True
    is_admitted = labels.SET_FINALIZER in root.finalizers
    return not is_admitted and completed_generation(root.body) is None


def _new(observed: Observed, configuration: Configuration, listed: tuple[str, ...], memo: Memo) -> AdmittedSet:
    lives = observed.references.objects.values()
    # For a set that is only proposed, a kind without any object may not have been listed at all: it does not count as known.
    known = listed if observed.root.uid else {key for live in lives for key in live.id.keys()}
    references = known_references(lives, (kind for kind in known if kind not in observed.incomplete))
    specified = specified_body(observed)
    request = Request(Act.CREATE, observed.root.id, specified)
    decision = admit(request, configuration, references, memo=memo)
    if decision.issues and get(specified, ("metadata", "labels", labels.MANAGED_BY)) == labels.GRAPH_MANAGER:
        # The decision on the graph has applied the limits. If the set is made anew, no more is created than they allow.
        decision = admit(request, replace(configuration, limits=UNLIMITED), references, memo=memo)
    body = decision.body or {}
    version = read_version(body.get("spec"), memo.last(VERSION))
    return _with_fingerprint(body, version, tuple(map(str, decision.issues)), EffectiveSet(body), is_new=True)


def _known(observed: Observed, configuration: Configuration, records: Records, earlier: SetVersion | None) -> AdmittedSet:
    """A known set must only be computable: it may have been admitted by older rules."""
    body = defaulted(specified_body(observed), observed.root.body)
    version = read_version(body.get("spec") or {}, earlier)
    body = {**body, "spec": version.spec}
    return _with_fingerprint(body, version, tuple(map(str, version.problems(configuration))), effective_set(body, records), is_new=False)


def _with_fingerprint(body: Body, version: SetVersion, problems: tuple[str, ...], effective: EffectiveSet, *, is_new: bool) -> AdmittedSet:
    if problems:
        return AdmittedSet(body, version, effective.body, effective.faults, b"", is_new, problems)
    metadata, spec = effective.body["metadata"], effective.body.get("spec") or {}
    fingerprint = canonical([spec.get("template"), spec.get("updateStrategy"), metadata.get("labels"), metadata.get("annotations")])
    return AdmittedSet(body, version, effective.body, effective.faults, fingerprint, is_new, ())
