"""Plain kinds: those that have only a few defaults or faults of their own."""

from grove_sandbox.kinds.rules import Draft, Environment, Rules, fill, keep_spec, keep_status
from grove_sandbox.product import Body
from grove_sandbox.types import causes
from grove_sandbox.types.status import Cause

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


def _default_volume_claim(claim: Draft) -> None:
    fill(claim["spec"], {"volumeMode": "Filesystem"})


def _create_volume_claim(claim: Draft, _: Environment) -> None:
    """No finalizer protects a claim in use: nothing here would remove it."""
    claim["status"] = {"phase": "Pending"}


def _volume_claim_faults(claim: Body) -> list[Cause]:
    spec = claim["spec"]
    faults = [] if spec.get("accessModes") else [causes.required("spec.accessModes", "at least 1 access mode is required")]
    if "storage" not in (spec["resources"].get("requests") or {}):
        faults.append(causes.required("spec.resources[storage]"))
    return faults


_CHANGEABLE = ("resources", "volumeAttributesClassName")


def _volume_claim_change_faults(new: Body, old: Body) -> list[Cause]:
    specs = [{key: value for key, value in body["spec"].items() if key not in _CHANGEABLE} for body in (new, old)]
    unchangeable = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    return [causes.forbidden("spec", unchangeable)] if specs[0] != specs[1] else []


def _create_ingress(ingress: Draft, _: Environment) -> None:
    ingress["status"] = {"loadBalancer": {}}


def _ingress_faults(ingress: Body) -> list[Cause]:
    spec = ingress["spec"]
    if not spec.get("rules") and not spec.get("defaultBackend"):
        return [causes.invalid("spec", None, "either `defaultBackend` or `rules` must be specified")]
    faults = []
    for at, rule in enumerate(spec.get("rules") or ()):
        for number, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            if path.get("pathType") not in _PATH_TYPES:
                where = f"spec.rules[{at}].http.paths[{number}].pathType"
                known = causes.unsupported(where, path["pathType"], _PATH_TYPES) if path.get("pathType") else None
                faults.append(known or causes.required(where, "pathType must be specified"))
    return faults


_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def _lease_faults(lease: Body) -> list[Cause]:
    seconds = lease["spec"].get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        return [causes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")]
    return []


def _claim_change_faults(new: Body, old: Body) -> list[Cause]:
    # A real server quotes nothing of the spec.
    return [causes.invalid("spec", None, "field is immutable")] if new["spec"] != old["spec"] else []


LEASE = Rules(validate=_lease_faults, creates_on_put=True, unconditional=False)
ADMISSION_POLICY = Rules(default=_default_policy, generation=("spec",), unconditional=False)
WEBHOOKS = Rules(default=_default_webhooks, generation=("webhooks",))
ENDPOINT_SLICE = Rules(default=_default_endpoints, generation=("endpoints", "ports", "addressType"))
NODE = Rules(default=_default_node, resets_status=False)
PRIORITY = Rules(default=_default_priority, generation=("value", "globalDefault", "description", "preemptionPolicy"))
CLAIM = Rules(default=_default_claim, validate_change=_claim_change_faults, returns_deleted=True)
CLAIM_TEMPLATE = Rules(default=_default_claim_template, validate_change=_claim_change_faults, returns_deleted=True)
VOLUME_CLAIM = Rules(
    default=_default_volume_claim,
    create=_create_volume_claim,
    update=keep_status,
    status=keep_spec,
    validate=_volume_claim_faults,
    validate_change=_volume_claim_change_faults,
    returns_deleted=True,
)
INGRESS = Rules(create=_create_ingress, update=keep_status, status=keep_spec, validate=_ingress_faults, generation=("spec",))
