"""Modes: what an administrator chooses between, and the defaults that the command line shows. It imports nothing, so that help is fast."""

from enum import StrEnum
from typing import Final

NAMESPACE: Final = "grove-system"
"""Where the engine runs."""
REPLICAS: Final = 2
"""Pods of the Deployment."""
SCHEDULE: Final = "*/5 * * * *"
"""When the CronJob starts."""
TIMEOUT: Final = "4m"
"""Maximum duration of a job of the CronJob."""


class Mode(StrEnum):
    """What keeps the workloads of a cluster as they should be."""

    DEPLOYMENT = "deployment"
    """`engine run`, all the time."""
    CRONJOB = "cronjob"
    """`engine sync`, every few minutes."""


class AdmissionMode(StrEnum):
    """What judges the sets that users write before they are stored."""

    WEBHOOKS = "webhooks"
    """The engine's own server."""
    POLICIES = "policies"
    """The API server, by CEL."""
    NONE = "none"
    """Nothing; the engine judges a set when it first plans it."""


class Use(StrEnum):
    """What an account does with the engine."""

    RUN = "run"
    """`engine run`: manages every workload without end, by watches."""
    SYNC = "sync"
    """`engine sync`: manages every workload once, by lists, and creates the workloads of `-f`."""
    READ = "read"
    """`engine diff`, `status`, `why`, `snapshot` and `preflight`: writes nothing."""
