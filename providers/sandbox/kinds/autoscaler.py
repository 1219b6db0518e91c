"""Horizontal pod autoscalers: what is scaled, by which measure, within which bounds."""

from collections.abc import Mapping
from typing import Any

from providers.sandbox.kinds.rules import Rules, Scene
from providers.sandbox.types import causes
from providers.sandbox.types.status import Cause

Body = Mapping[str, Any]
Draft = dict[str, Any]
_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def _default(autoscaler: Draft) -> None:
    spec = autoscaler["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [_CPU]
    if (behavior := spec.get("behavior")) is not None:
        _default_behavior(behavior)


def _default_behavior(behavior: Draft) -> None:
    up = behavior.setdefault("scaleUp", {})
    up.setdefault("stabilizationWindowSeconds", 0)
    up.setdefault("selectPolicy", "Max")
    if not up.get("policies"):
        up["policies"] = [
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]
    down = behavior.setdefault("scaleDown", {})
    down.setdefault("selectPolicy", "Max")
    if not down.get("policies"):
        down["policies"] = [{"type": "Percent", "value": 100, "periodSeconds": 15}]


def _create(autoscaler: Draft, _: Scene) -> None:
    autoscaler["status"] = {"desiredReplicas": 0, "currentMetrics": None}


def _validate(autoscaler: Body) -> list[Cause]:
    spec = autoscaler["spec"]
    found: list[Cause] = []
    low, high = spec["minReplicas"], spec.get("maxReplicas", 0)
    if low < 1:
        found.append(causes.invalid("spec.minReplicas", low, "must be greater than or equal to 1"))
    if high < 1:
        found.append(causes.invalid("spec.maxReplicas", high, "must be greater than 0"))
    if high < low:
        found.append(causes.invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"))
    if not spec["scaleTargetRef"].get("apiVersion"):
        found.append(causes.invalid("spec.scaleTargetRef.apiVersion", "", "apiVersion must specify API group"))
    for key in ("kind", "name"):
        if not spec["scaleTargetRef"].get(key):
            found.append(causes.required(f"spec.scaleTargetRef.{key}"))
    return found


AUTOSCALER = Rules(default=_default, create=_create, validate=_validate)
