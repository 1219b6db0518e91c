"""What every test may ask for, and what none may touch."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

MANY_COLLECTIONS = 200
"""So many collections of young objects since the last one of all: some hundred megabytes of garbage may have come together."""

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


@pytest.fixture(autouse=True)
def little_garbage() -> Iterator[None]:
    """Collects what tests leave behind: commands let the collector look at all objects hardly ever, which is for processes that end."""
    yield
    if gc.get_count()[2] > MANY_COLLECTIONS:
        gc.collect()
