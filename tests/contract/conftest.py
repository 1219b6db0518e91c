"""The contract: what a test here says of an API server holds on the sandbox, always, and on the real one, where there is one."""

from collections.abc import Iterator

import pytest

from tests.contract.server import Server, described, sandbox


@pytest.fixture(scope="session")
def sandbox_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The sandbox, in a process of its own."""
    with sandbox(tmp_path_factory.mktemp("sandbox")) as server:
        yield server


@pytest.fixture(scope="session", params=["sandbox", pytest.param("real", marks=pytest.mark.e2e)])
def server(request: pytest.FixtureRequest) -> Server:
    """Each of the two in turn; make a namespace of your own in it, for it lasts the whole session."""
    if request.param == "real":
        return described("real", request.getfixturevalue("api_server").kubeconfig())
    ours: Server = request.getfixturevalue("sandbox_server")
    return ours
