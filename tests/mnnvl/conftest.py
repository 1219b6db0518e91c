"""The command line and its clusters, as the tests of the command line have them."""

from tests.enginectl.conftest import box, engine
from tests.enginectl.test_requirements import plain_box

__all__ = ["box", "engine", "plain_box"]
