"""Plain kinds: a default or two, and nothing else that is their own."""

from collections.abc import Mapping
from typing import Any

from providers.sandbox.kinds.rules import Rules
from providers.sandbox.types import causes
from providers.sandbox.types.status import Cause

Body = Mapping[str, Any]
Draft = dict[str, Any]


def _default_policy(policy: Draft) -> None:
    spec = policy["spec"]
    spec.setdefault("failurePolicy", "Fail")
    _default_match(spec.get("matchConstraints") or {})


def _default_match(match: Draft) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rule in match.get("resourceRules") or ():
        rule.setdefault("scope", "*")


def _default_webhooks(configuration: Draft) -> None:
    for webhook in configuration.get("webhooks") or ():
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("timeoutSeconds", 10)
        webhook.setdefault("matchPolicy", "Equivalent")
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        if configuration["kind"].startswith("Mutating"):
            webhook.setdefault("reinvocationPolicy", "Never")
        for rule in webhook.get("rules") or ():
            rule.setdefault("scope", "*")
        if (service := webhook["clientConfig"].get("service")) is not None:
            service.setdefault("port", 443)


def _default_endpoints(piece: Draft) -> None:
    for port in piece.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def _default_priority(priority: Draft) -> None:
    priority.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _default_claim(claim: Draft) -> None:
    _default_requests(claim["spec"])


def _default_claim_template(template: Draft) -> None:
    _default_requests(template["spec"]["spec"])


def _default_requests(spec: Draft) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for wanted in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if wanted is not None:
                wanted.setdefault("allocationMode", "ExactCount")
                if wanted["allocationMode"] == "ExactCount":
                    wanted["count"] = wanted.get("count") or 1


def _default_node(node: Draft) -> None:
    """What nobody has set aside can be given out."""
    state = node["status"]
    if state.get("capacity") is not None:
        state.setdefault("allocatable", dict(state["capacity"]))


def _lease_faults(lease: Body) -> list[Cause]:
    seconds = lease["spec"].get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        return [causes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")]
    return []


def _claim_change_faults(new: Body, old: Body) -> list[Cause]:
    # A real server shows its internal struct here; we show what was asked for.
    return [] if new["spec"] == old["spec"] else [causes.invalid("spec", new["spec"], causes.IMMUTABLE)]


LEASE = Rules(validate=_lease_faults, creates_on_put=True, unconditional=False)
ADMISSION_POLICY = Rules(default=_default_policy, generation=("spec",), unconditional=False)
WEBHOOKS = Rules(default=_default_webhooks, generation=("webhooks",))
ENDPOINT_SLICE = Rules(default=_default_endpoints, generation=("endpoints", "ports", "addressType"))
NODE = Rules(default=_default_node, resets_status=False)
PRIORITY = Rules(default=_default_priority, generation=("value", "globalDefault", "description", "preemptionPolicy"))
CLAIM = Rules(default=_default_claim, validate_change=_claim_change_faults, returns_deleted=True)
CLAIM_TEMPLATE = Rules(default=_default_claim_template, validate_change=_claim_change_faults, returns_deleted=True)
