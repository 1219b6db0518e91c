"""Answers: sends the requests of a scenario to a server over plain HTTP. A watch is read to its end."""

import secrets
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import anyio
import orjson

from tests.contract.scenario import Scenario, Send, play
from tests.contract.server import Server
from tests.waiting import PATIENCE

WATCHED: Final = {"sandbox": 1, "real": 5}
"""Seconds within which a server sends the events of a watch: a real one reads them from its store, and may be busy."""


@asynccontextmanager
async def sending(server: Server) -> AsyncIterator[Send]:
    """A function that sends requests as the administrator of the server."""
    context = ssl.create_default_context(cadata=server.ca or None)
    headers = {"Authorization": f"Bearer {server.token}", "User-Agent": "contract/1"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=context)) as session:

        async def send(method: str, path: str, body: Any, content_type: str) -> tuple[int, Any]:
            if method == "AWAIT":
                return await _await(session, server.url + path, body)
            if method == "ENSURE":
                return await _ensure(session, server.url + path, body)
            data = None if body is None else orjson.dumps(body)
            verb = "GET" if method == "WATCH" else method
            async with session.request(verb, server.url + path, data=data, headers={"Content-Type": content_type}) as answer:
                raw = await answer.read()
                if method == "WATCH" and answer.status == 200:
                    return answer.status, [orjson.loads(line) for line in raw.splitlines()]
                return answer.status, _with_warnings(orjson.loads(raw), answer.headers.getall("Warning", []))

        yield send


def _with_warnings(body: Any, warnings: list[str]) -> Any:
    return {"warnings": warnings, **body} if warnings else body


async def _ensure(session: aiohttp.ClientSession, url: str, body: Any) -> tuple[int, Any]:
    """Create the object unless it exists."""
    async with session.post(url, json=body) as answer:
        return 200 if answer.status in (201, 409) else answer.status, None


async def _await(session: aiohttp.ClientSession, url: str, expected: Any) -> tuple[int, Any]:
    """Repeat the GET until it succeeds, and its answer has the expected values (None: any will do)."""
    with anyio.fail_after(PATIENCE):
        while True:
            async with session.get(url) as answer:
                if answer.status == 200 and _has(await answer.json(content_type=None), expected):
                    return 200, None
            await anyio.sleep(0.1)


def _has(given: Any, expected: Any) -> bool:
    """Whether the value is the expected one; of an object, whether it has the expected fields, and maybe others."""
    if isinstance(expected, dict):
        return isinstance(given, dict) and all(_has(given.get(key), value) for key, value in expected.items())
    return expected is None or given == expected


async def answers_of(server: Server, scenario: Scenario) -> list[dict[str, Any]]:
    """The comparable answers of the server to a scenario, in a new namespace that is deleted afterwards."""
    async with sending(server) as send, namespaced(send) as namespace:
        return await play(scenario, send, namespace, WATCHED[server.name])


@asynccontextmanager
async def namespaced(send: Send) -> AsyncIterator[str]:
    """A new namespace, which is deleted after the block."""
    namespace = f"c{secrets.token_hex(4)}"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await send("POST", "/api/v1/namespaces", space, "application/json")
    await send("AWAIT", f"/api/v1/namespaces/{namespace}/serviceaccounts/default", None, "")
    try:
        yield namespace
    finally:
        await send("DELETE", f"/api/v1/namespaces/{namespace}", None, "application/json")
