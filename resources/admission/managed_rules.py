"""Managed rules: who may touch what the engine has made for a workload."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Protection:
    """Whether what we have made is protected, and from whom not."""

    enabled: bool = False
    operator: str = ""
    """The user that the engine itself is."""
    exempt: frozenset[str] = frozenset()
    """Users who may do what the engine may."""
