"""Kube: the default scheduler of Kubernetes. It has no gang scheduling: gates and start order alone keep a gang together."""

from typing import Any


class KubeScheduler:
    """The back end `default-scheduler`."""

    name = "default-scheduler"

    def decorate_pod(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The pod spec with this scheduler's name."""
        return {**spec, "schedulerName": self.name}
