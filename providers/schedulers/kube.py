"""Kube: the default scheduler of Kubernetes. It does not schedule gangs: only scheduling gates and the start order keep a gang together."""

from typing import Any


class KubeScheduler:
    """The back end `default-scheduler`."""

    name = "default-scheduler"

    def decorate_pod(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The pod spec with this scheduler's name."""
        return {**spec, "schedulerName": self.name}
