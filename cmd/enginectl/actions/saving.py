"""Saving: the options with which a preview saves what it has seen as a plan."""

from datetime import timedelta
from pathlib import Path

from msgspec import Struct


class Saving(Struct, frozen=True):
    """Where a plan is saved, and how long it may be applied."""

    file: Path
    valid_for: timedelta
