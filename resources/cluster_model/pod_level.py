"""Pod-level resources: what a pod says of its resources as a whole, in `spec.resources`."""

from collections.abc import Mapping
from typing import Any, Final

from resources.base.fields import mapping

HUGE_PAGES: Final = "hugepages-"
_SUPPORTED: Final = frozenset({"cpu", "memory"})


def pod_level(spec: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The limits and the requests of a pod as a whole, of the resources for which Kubernetes heeds them; both empty if it has none."""
    resources = mapping(spec.get("resources"))
    return _heeded(resources.get("limits")), _heeded(resources.get("requests"))


def _heeded(amounts: Any) -> Mapping[str, Any]:
    return {what: value for what, value in mapping(amounts).items() if what in _SUPPORTED or str(what).startswith(HUGE_PAGES)}
