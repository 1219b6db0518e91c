"""Pod match: whether a pod was created from a pod spec, judged by its contents instead of its hash label."""

from collections.abc import Mapping
from typing import Any

from engine.diff import same
from engine.resource import Body

REMOVED_LATER = "schedulingGates"
"""The field of a pod spec that loses entries while the pod lives."""


def is_created_from(pod: Body, pod_spec: Body) -> bool:
    """Whether the pod has everything that is in the pod spec; it may have more, which the engine, admission or defaults have added."""
    return _includes(pod.get("spec") or {}, {key: value for key, value in pod_spec.items() if key != REMOVED_LATER})


def _includes(live: Any, desired: Any) -> bool:
    """Whether a live value has everything desired. The entries of a list of objects may be in any order."""
    if live is None:
        return not desired  # The server leaves out empty values.
    if isinstance(desired, Mapping):
        return isinstance(live, Mapping) and all(_includes(live.get(key), value) for key, value in desired.items())
    if isinstance(desired, list | tuple) and all(isinstance(item, Mapping) for item in desired):
        return all(any(_includes(live_item, item) for live_item in live) for item in desired)
    return same(live, desired)
