"""HorizontalPodAutoscalers: their target, metrics and bounds."""

from grove_sandbox.kinds.rules import Draft, Environment, Rules, fill
from grove_sandbox.product import Body
from grove_sandbox.types import causes
from grove_sandbox.types.status import Cause

_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}

_DOUBLE = {"type": "Percent", "value": 100, "periodSeconds": 15}
_BEHAVIOR = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _DOUBLE],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [_DOUBLE]},
}


def _default(autoscaler: Draft) -> None:
    spec = autoscaler["spec"]
    fill(spec, {"minReplicas": 1, "metrics": [_CPU]})
    if spec.get("behavior") is not None:
        fill(spec["behavior"], _BEHAVIOR)


def _create(autoscaler: Draft, _: Environment) -> None:
    autoscaler["status"] = {"desiredReplicas": 0, "currentMetrics": None}


def _validate(autoscaler: Body) -> list[Cause]:
    spec = autoscaler["spec"]
    faults: list[Cause] = []
    low, high = spec["minReplicas"], spec.get("maxReplicas", 0)
    if low < 1:
        faults.append(causes.invalid("spec.minReplicas", low, "must be greater than or equal to 1"))
    if high == 0:
        faults.append(causes.required("spec.maxReplicas"))
    elif high < 0:
        faults.append(causes.invalid("spec.maxReplicas", high, "must be greater than or equal to 1"))
    if high < low:
        faults.append(causes.invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"))
    if not spec["scaleTargetRef"].get("apiVersion"):
        faults.append(causes.invalid("spec.scaleTargetRef.apiVersion", "", "apiVersion must specify API group"))
    for key in ("kind", "name"):
        if not spec["scaleTargetRef"].get(key):
            faults.append(causes.required(f"spec.scaleTargetRef.{key}"))
    return faults


AUTOSCALER = Rules(default=_default, create=_create, validate=_validate, generation=("spec",))
