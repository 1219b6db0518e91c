"""Figures: what one phase of a workload took, for one subject; one line of JSON each."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Figures:
    """What a phase has taken."""

    workload: str
    subject: str
    """`engine`, `bare client`, or the name of another operator."""
    phase: str
    seconds: Mapping[str, float | None]
    """Milestone -> seconds since the phase began; None: not reached in time. The last one is the end of the phase."""
    writes: int
    """Without Events and Leases."""
    by_kind: Mapping[str, int]
    """Writes by verb and resource, Events and Leases included."""
    reads: int
    cpu: float
    """CPU seconds of the subject's processes."""
    peak_mib: float
    """The most memory that it has had since it started."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What else was counted, e.g. the fewest ready pods."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Where the seconds up to the end went, if it was asked to tell."""

    @property
    def end(self) -> float | None:
        """The seconds of the last milestone; None: not reached, or the phase has none."""
        return list(self.seconds.values())[-1] if self.seconds else None

    def line(self) -> str:
        """As one line of JSON."""
        return json.dumps(asdict(self))


def ratio(ours: float | None, limit: float | None) -> float | None:
    """How many times the limit ours is; None if one of them is unknown or the limit is zero."""
    return None if ours is None or not limit else ours / limit
