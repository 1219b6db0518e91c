"""Deviation: one way in which what is differs from what was approved."""

from msgspec import Struct


class Deviation(Struct, frozen=True):
    """What differs, how it was when the plan was approved, and how it is."""

    about: str
    """An object, or what else is compared, e.g. `the cluster`."""
    then: str
    now: str

    def __str__(self) -> str:
        """`ABOUT: then THEN, now NOW`."""
        return f"{self.about}: then {self.then}, now {self.now}"
