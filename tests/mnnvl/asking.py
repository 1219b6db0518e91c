"""Asking: what admission says of a set, and what people are told, in the words of a user."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.operation import Outcome, Plan, Result, Verb
from providers.fabrics.nvidia import Nvidia
from resources import kinds
from resources.admission.admit import admit
from resources.admission.request import Act, Decision, Request
from resources.narrate import narrator
from tests.laws.rack import Rack
from tests.laws.toy import SETUP

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
    return [(event.warning, event.reason, event.message) for event in narrator(SETUP)((), results) if "ComputeDomain" in event.reason]


def claimed(toy: Rack) -> dict[str, list[str]]:
    """PodClique -> the claim templates of its pods."""
    found: dict[str, list[str]] = {}
    for id in toy.pods():
        pod = toy.objects[id]
        claims = [one["resourceClaimTemplateName"] for one in pod["spec"].get("resourceClaims") or ()]
        found.setdefault(pod["metadata"]["labels"]["grove.io/podclique"], []).extend(claims)
    return found
