"""Saving: the options with which a preview saves what it has seen as a plan."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Saving:
    """Where a plan is saved, and how long it may be applied."""

    file: Path
    valid_for: timedelta
