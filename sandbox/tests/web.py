"""Web: asking a sandbox over HTTP, header by header, as no client library would."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import aiohttp
import orjson

from grove_sandbox.process import Sandbox


@dataclass(frozen=True, slots=True)
class Said:
    """An answer, read."""

    code: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def body(self) -> Any:
        """The answer as JSON."""
        return orjson.loads(self.data)

    @property
    def type(self) -> str:
        """The content type."""
        return self.headers["Content-Type"]


@dataclass(frozen=True, slots=True)
class Web:
    """A session with a sandbox, in the name of whoever the token stands for."""

    session: aiohttp.ClientSession
    url: str
    token: str

    async def ask(self, method: str, path: str, body: Any = None, *, token: str | None = None, **headers: str) -> Said:
        """One request. Header names are given with underscores; a body that is not bytes is sent as JSON."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent: BytesIO | None = None
        if body is not None:
            sent = BytesIO(body if isinstance(body, bytes) else orjson.dumps(body))
            given.setdefault("Content-Type", "application/json")
        authorization = {"Authorization": f"Bearer {self.token if token is None else token}"}
        async with self.session.request(method, self.url + path, data=sent, headers={**authorization, **given}) as answer:
            return Said(answer.status, answer.headers, await answer.read())

    @asynccontextmanager
    async def stream(self, path: str, **headers: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The events of a watch, each as it comes."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        authorization = {"Authorization": f"Bearer {self.token}"}
        async with self.session.get(self.url + path, headers={**authorization, **given}) as answer:
            yield (orjson.loads(line) async for line in answer.content)


@asynccontextmanager
async def web(box: Sandbox) -> AsyncIterator[Web]:
    """A session with this sandbox."""
    context = ssl.create_default_context(cadata=box.authority.decode())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context), auto_decompress=False) as session:
        yield Web(session, box.url, box.token)
