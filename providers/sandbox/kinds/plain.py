"""Plain kinds: those that have only a few defaults or faults of their own."""

from engine.resource import Body
from providers.sandbox.kinds.rules import Draft, Rules, fill
from providers.sandbox.types import causes
from providers.sandbox.types.status import Cause

_MATCH = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}


def _default_policy(policy: Draft) -> None:
    spec = policy["spec"]
    fill(spec, {"failurePolicy": "Fail"})
    constraints = spec.get("matchConstraints") or {}
    fill(constraints, _MATCH)
    for rule in constraints.get("resourceRules") or ():
        fill(rule, {"scope": "*"})


def _default_webhooks(configuration: Draft) -> None:
    for webhook in configuration.get("webhooks") or ():
        fill(webhook, {"failurePolicy": "Fail", "timeoutSeconds": 10, **_MATCH})
        if configuration["kind"].startswith("Mutating"):
            fill(webhook, {"reinvocationPolicy": "Never"})
        for rule in webhook.get("rules") or ():
            fill(rule, {"scope": "*"})
        if (service := webhook["clientConfig"].get("service")) is not None:
            fill(service, {"port": 443})


def _default_endpoints(endpoint_slice: Draft) -> None:
    for port in endpoint_slice.get("ports") or ():
        fill(port, {"name": "", "protocol": "TCP"})


def _default_priority(priority: Draft) -> None:
    fill(priority, {"preemptionPolicy": "PreemptLowerPriority"})


def _default_claim(claim: Draft) -> None:
    _default_requests(claim["spec"])


def _default_claim_template(template: Draft) -> None:
    _default_requests(template["spec"]["spec"])


def _default_requests(spec: Draft) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for alternative in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if alternative is not None:
                fill(alternative, {"allocationMode": "ExactCount"})
                if alternative["allocationMode"] == "ExactCount":
                    alternative["count"] = alternative.get("count") or 1


def _default_node(node: Draft) -> None:
    """Everything in a node can be allocated unless its status says otherwise."""
    status = node["status"]
    if status.get("capacity") is not None:
        status.setdefault("allocatable", dict(status["capacity"]))


def _lease_faults(lease: Body) -> list[Cause]:
    seconds = lease["spec"].get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        return [causes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")]
    return []


def _claim_change_faults(new: Body, old: Body) -> list[Cause]:
    # A real server quotes its internal struct here; the sandbox quotes the spec.
    return causes.changed("spec", new["spec"], old["spec"])


LEASE = Rules(validate=_lease_faults, creates_on_put=True, unconditional=False)
ADMISSION_POLICY = Rules(default=_default_policy, generation=("spec",), unconditional=False)
WEBHOOKS = Rules(default=_default_webhooks, generation=("webhooks",))
ENDPOINT_SLICE = Rules(default=_default_endpoints, generation=("endpoints", "ports", "addressType"))
NODE = Rules(default=_default_node, resets_status=False)
PRIORITY = Rules(default=_default_priority, generation=("value", "globalDefault", "description", "preemptionPolicy"))
CLAIM = Rules(default=_default_claim, validate_change=_claim_change_faults, returns_deleted=True)
CLAIM_TEMPLATE = Rules(default=_default_claim_template, validate_change=_claim_change_faults, returns_deleted=True)
