"""What every test may ask for."""

import pytest

pytest_plugins = ["tests.controlplane.fixtures"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The engine runs on asyncio alone: its transport does."""
    return "asyncio"
