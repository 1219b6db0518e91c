"""What tests of the chart ask for."""

from tests.enginectl.conftest import engine

__all__ = ["engine"]
