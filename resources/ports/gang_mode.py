"""Gang mode: whether kube-scheduler schedules gangs, as `gangScheduling` of its profile says."""

from enum import StrEnum


class GangMode(StrEnum):
    """The values of the option."""

    AUTO = "Auto"
    """Where the cluster serves PodGroups."""
    REQUIRE = "Require"
    """Always: a cluster that does not serve PodGroups cannot be managed."""
    OFF = "Off"
    """Never."""
