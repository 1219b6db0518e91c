"""Asking: the decisions of admission about a set, and the events that its users see."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from engine.operation import Outcome, Result
from engine.plan import Plan
from engine.verb import Verb
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.admission.admit import admit
from resources.admission.request import Act, Decision, Request
from resources.base import kinds
from resources.reports.events import event_builder
from tests.builders import podcliqueset
from tests.laws.fabric_worlds import pass_, settle
from tests.laws.rack import Rack
from tests.laws.toy import CONFIGURATION
from tests.mnnvl.sets import OPTED_OUT, said

Body = dict[str, Any]
OFF = replace(CONFIGURATION, fabrics=(Nvidia(),))
"""An installation without automatic domains."""


def ask(manifest: Mapping[str, Any], *, flag: bool = True, old: Mapping[str, Any] | None = None) -> Decision:
    """The decision about a set that is created, or updated from `old`."""
    id = kinds.PODCLIQUESET.id("default", manifest["metadata"]["name"])
    return admit(Request(Act.UPDATE if old else Act.CREATE, id, manifest, old), CONFIGURATION if flag else OFF)


def annotations(manifest: Mapping[str, Any], *, flag: bool = True) -> Mapping[str, str]:
    """The stored annotations of a new set."""
    decision = ask(manifest, flag=flag)
    assert decision.allowed and decision.body is not None, decision.issues
    return dict(decision.body["metadata"].get("annotations") or {})


def complaints(manifest: Mapping[str, Any], *, flag: bool = True, old: Mapping[str, Any] | None = None) -> list[str]:
    """The issues of the decision, as strings."""
    return [str(issue) for issue in ask(manifest, flag=flag, old=old).issues]


def events(plan: Plan, error: Exception | None = None) -> list[tuple[bool, str, str]]:
    """The events of a plan that succeeds, or whose creates all fail with this error: whether it is a warning, reason, message."""
    outcome = Outcome.DONE if error is None else Outcome.FAILED
    results = [Result(one, outcome, error=error) for one in plan.operations if one.verb in (Verb.CREATE, Verb.DELETE)]
    return [
        (event.warning, event.reason, event.message)
        for event in event_builder(CONFIGURATION)((), results)
        if "ComputeDomain" in event.reason
    ]


def claimed(toy: Rack) -> dict[str, list[str]]:
    """PodClique -> the claim templates of its pods."""
    found: dict[str, list[str]] = {}
    for id in toy.pods():
        pod = toy.objects[id]
        claims = [one["resourceClaimTemplateName"] for one in pod["spec"].get("resourceClaims") or ()]
        found.setdefault(pod["metadata"]["labels"]["grove.io/podclique"], []).extend(claims)
    return found


def up(*manifests: Any, flag: bool = True) -> Rack:
    """A cluster with these sets, settled."""
    toy = Rack()
    toy.configuration = toy.configuration if flag else OFF
    for manifest in manifests:
        toy.put(manifest)
    settle(toy)
    return toy


def uids(toy: Rack) -> dict[str, str]:
    """Domain -> its uid."""
    return {name: body["metadata"]["uid"] for name, body in toy.domains().items()}


def root(name: str = "demo") -> Any:
    """The set of that name."""
    return kinds.PODCLIQUESET.id("default", name)


def sharing(*cliques: Body, name: str = "demo", replicas: int = 1, **more: Any) -> dict[str, Any]:
    """A set with these cliques that has opted out."""
    return said(podcliqueset(name, *(dict(one) for one in cliques), replicas=replicas, **more), OPTED_OUT)


def plan_of(toy: Rack, name: str = "demo") -> Plan:
    """The plan of one set."""
    return next(plan for plan in toy.plans() if plan.root == root(name))


def owners(toy: Rack, domain: str) -> list[str]:
    """The names of its owners."""
    return [owner["name"] for owner in toy.domains()[domain]["metadata"].get("ownerReferences", ())]


def deferred(plan: Plan) -> dict[str, str]:
    """What is deferred, and why."""
    return {wait.id.name: wait.why for wait in plan.deferred}


def done_to_domains(toy: Rack, passes: int = 12) -> list[tuple[str, str]]:
    """Verb and name of each operation on a domain in the next passes."""
    found: list[tuple[str, str]] = []
    for _ in range(passes):
        for plan in toy.plans():
            found += [(str(one.verb), one.id.name) for one in plan.operations if one.id.kind == COMPUTE_DOMAIN.name]
        pass_(toy)
        toy.live()
    return found
