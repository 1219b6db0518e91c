"""Trial: a create that the API server is asked to check without storing anything, before something is deleted because of it."""

from msgspec import Struct

from engine.operation import Operation


class Trial(Struct, frozen=True, eq=False):
    """A create that a plan relies on."""

    key: str
    """Equal for creates of the same content."""
    about: str
    """What it stands for, for people, e.g. `clique worker`."""
    create: Operation
    """The object, under a name that no other object has."""
