"""Ports: what a plug-in may do for a workload. All of it is pure; a plug-in never meets a client."""

from typing import Any, Protocol


class Scheduler(Protocol):
    """A scheduler back end: how pods and gangs speak to one particular scheduler."""

    @property
    def name(self) -> str:
        """The profile name in the configuration, which is also what a pod names as its `schedulerName`."""
        ...

    def dress(self, spec: dict[str, Any]) -> dict[str, Any]:
        """A pod spec as this scheduler wants it."""
        ...
