"""The contract: tests of an API server that run on the sandbox and, as `e2e`, on a real one."""

from collections.abc import Iterator

import pytest

from tests.contract import server as servers
from tests.contract.server import Server, described


@pytest.fixture(scope="session")
def sandbox_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The sandbox, in a process of its own."""
    with servers.sandbox(tmp_path_factory.mktemp("sandbox")) as server:
        yield server


@pytest.fixture(scope="session", params=["sandbox", pytest.param("real", marks=pytest.mark.e2e)])
def server(request: pytest.FixtureRequest) -> Server:
    """The sandbox, and the real server. Both exist for the whole session: a test creates its own namespace."""
    if request.param == "real":
        return described("real", request.getfixturevalue("api_server").kubeconfig())
    sandbox: Server = request.getfixturevalue("sandbox_server")
    return sandbox
