"""Use: what an account does with the engine, on which its permissions depend."""

from enum import StrEnum


class Use(StrEnum):
    """What an account does with the engine."""

    RUN = "run"
    """`engine run`: manages every workload without end, by watches."""
    SYNC = "sync"
    """`engine sync`: manages every workload once, by lists, and creates the workloads of `-f`."""
    READ = "read"
    """`engine diff`, `status`, `why`, `snapshot` and `preflight`: writes nothing."""
