"""What tests of the commands ask for: what tests of the other commands of `engine` do."""

from tests.enginectl.conftest import box, engine, quick_clock

__all__ = ["box", "engine", "quick_clock"]
