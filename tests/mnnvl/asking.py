"""Asking: what admission says of a set, and what people are told, in the words of a user."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.plan import Plan
from engine.result import Outcome, Result
from engine.verb import Verb
from providers.fabrics.nvidia import Nvidia
from providers.fabrics.nvidia_words import COMPUTE_DOMAIN
from resources.admission.admit import admit
from resources.admission.request import Act, Decision, Request
from resources.base import kinds
from resources.reports.events import event_builder
from tests.builders import podcliqueset
from tests.laws.fabric_worlds import pass_, rest
from tests.laws.rack import Rack
from tests.laws.toy import SETUP
from tests.mnnvl.sets import OPTED_OUT, said

Body = dict[str, Any]
OFF = replace(SETUP, fabrics=(Nvidia(),))
"""An installation on which nobody has switched anything on."""


def ask(manifest: Mapping[str, Any], *, flag: bool = True, old: Mapping[str, Any] | None = None) -> Decision:
    """What admission says of a set that is being made, or changed from what it was."""
    id = kinds.PODCLIQUESET.id("default", manifest["metadata"]["name"])
    return admit(Request(Act.UPDATE if old else Act.CREATE, id, manifest, old), SETUP if flag else OFF)


def annotations(manifest: Mapping[str, Any], *, flag: bool = True) -> Mapping[str, str]:
    """What is stored of the annotations of a set that somebody creates."""
    decision = ask(manifest, flag=flag)
    assert decision.allowed and decision.body is not None, decision.issues
    return dict(decision.body["metadata"].get("annotations") or {})


def complaints(manifest: Mapping[str, Any], *, flag: bool = True, old: Mapping[str, Any] | None = None) -> list[str]:
    """Everything that is wrong with it, line by line."""
    return [str(issue) for issue in ask(manifest, flag=flag, old=old).issues]


def events(plan: Plan, error: Exception | None = None) -> list[tuple[bool, str, str]]:
    """What people are told when the plan is carried out, or when every create of it fails: whether it is a warning, reason, message."""
    outcome = Outcome.DONE if error is None else Outcome.FAILED
    results = [Result(one, outcome, error=error) for one in plan.operations if one.verb in (Verb.CREATE, Verb.DELETE)]
    return [(event.warning, event.reason, event.message) for event in event_builder(SETUP)((), results) if "ComputeDomain" in event.reason]


def claimed(toy: Rack) -> dict[str, list[str]]:
    """PodClique -> the claim templates of its pods."""
    found: dict[str, list[str]] = {}
    for id in toy.pods():
        pod = toy.objects[id]
        claims = [one["resourceClaimTemplateName"] for one in pod["spec"].get("resourceClaims") or ()]
        found.setdefault(pod["metadata"]["labels"]["grove.io/podclique"], []).extend(claims)
    return found


def up(*manifests: Any, flag: bool = True) -> Rack:
    """A cluster in which these sets are up."""
    toy = Rack()
    toy.settings = toy.settings if flag else OFF
    for manifest in manifests:
        toy.put(manifest)
    rest(toy)
    return toy


def uids(toy: Rack) -> dict[str, str]:
    """The domains and which incarnation of each."""
    return {name: body["metadata"]["uid"] for name, body in toy.domains().items()}


def root(name: str = "demo") -> Any:
    """The set of that name."""
    return kinds.PODCLIQUESET.id("default", name)


def sharing(*cliques: Body, name: str = "demo", replicas: int = 1, **more: Any) -> dict[str, Any]:
    """A set with these cliques that has opted out."""
    return said(podcliqueset(name, *(dict(one) for one in cliques), replicas=replicas, **more), OPTED_OUT)


def plan_of(toy: Rack, name: str = "demo") -> Plan:
    """What is to be done about one set."""
    return next(plan for plan in toy.plans() if plan.root == root(name))


def owners(toy: Rack, domain: str) -> list[str]:
    """The sets that have a part in it."""
    return [owner["name"] for owner in toy.domains()[domain]["metadata"].get("ownerReferences", ())]


def held(plan: Plan) -> dict[str, str]:
    """What is held, and why."""
    return {one.id.name: one.why for one in plan.deferred}


def done_to_domains(toy: Rack, passes: int = 12) -> list[tuple[str, str]]:
    """What is done to domains, in order, while time passes."""
    found: list[tuple[str, str]] = []
    for _ in range(passes):
        for plan in toy.plans():
            found += [(str(one.verb), one.id.name) for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name]
        pass_(toy)
        toy.live()
    return found
