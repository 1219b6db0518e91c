"""Both servers answer their administrator, and refuse a wrong token."""

import ssl
import urllib.error
import urllib.request

import pytest

from tests.contract.server import Server
from tests.waiting import PATIENCE


def status(server: Server, path: str, **headers: str) -> int:
    """The status code of a GET."""
    context = ssl.create_default_context(cadata=server.ca) if server.ca else None
    try:
        with urllib.request.urlopen(
            urllib.request.Request(server.url + path, headers=headers), context=context, timeout=PATIENCE
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("path", ["/api", "/apis", "/version", "/api/v1/namespaces/default"])
def test_the_administrator_is_answered(server: Server, path: str) -> None:
    assert status(server, path, Authorization=f"Bearer {server.token}") == 200


def test_a_wrong_token_is_not(server: Server) -> None:
    assert status(server, "/api/v1/namespaces/default", Authorization="Bearer wrong") == 401
