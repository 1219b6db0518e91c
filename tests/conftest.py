"""What every test may ask for, and what none may touch."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

pytest_plugins = ["tests.controlplane.fixtures"]

# How long an example may take says more about the references on the machine than about the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The engine runs on asyncio alone: its transport does."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def no_cluster_but_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test finds the way to a cluster of whoever runs it."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("KUBECONFIG", raising=False)
        environment.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        environment.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield
