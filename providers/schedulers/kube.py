"""Kube: the scheduler that every cluster has. It knows no gangs: gates and order alone keep them together."""

from typing import Any


class KubeScheduler:
    """The back end `default-scheduler`."""

    name = "default-scheduler"

    def decorate_pod(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Name the scheduler."""
        return {**spec, "schedulerName": self.name}
