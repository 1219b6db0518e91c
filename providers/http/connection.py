"""ClientConnection: reads the requests of one client and answers them, one after the other."""

import ipaddress
import ssl
from collections.abc import Mapping
from contextlib import suppress
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any, Final

import anyio
import h11
from anyio.abc import AnyByteStream, SocketAttribute, SocketStream
from anyio.streams.tls import TLSStream
from msgspec.structs import replace

from engine.runtime.clock import Clock
from engine.runtime.logs import Log
from providers.http.address import Address
from providers.http.gate import Buffer, Gate
from providers.http.message import BadTarget, Handler, HttpResponse, IncomingRequest, busy, handler_of, refusal, target_of

LINGER: Final = 2.0
"""Seconds in which what a client still sends is discarded, so that it can read the refusal before the connection is closed."""

GONE: Final = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ssl.SSLError, OSError)
"""The client, or the network to it, has gone."""


class Refused(Exception):
    """The request is not passed to a handler; the connection ends with this response."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status)
        self.response = response


class ClientConnection:
    """One connection of an address. `serve` never raises for what a client does."""

    def __init__(self, stream: SocketStream, address: Address, gate: Gate, log: Log, clock: Clock) -> None:
        self._stream: AnyByteStream = stream
        self._address, self._limits, self._gate = address, address.limits, gate
        self._log, self._clock = log, clock
        self._peer = peer_of(stream)
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=address.limits.header_bytes)
        self._is_first = True

    async def serve(self) -> None:
        """Answer requests until the client or the server closes the connection."""
        try:
            if await self._secure():
                await self._answer_all()
        except GONE:
            pass
        except Exception as error:
            self._log.error("connection failed", server=self._address.name, error=error, exc_info=True)
        finally:
            with suppress(*GONE):
                await anyio.aclose_forcefully(self._stream)

    async def _secure(self) -> bool:
        """The TLS handshake, if there is to be one. False if it fails or takes too long."""
        if self._address.tls is None:
            return True
        try:
            with self._gate.waiting(self._limits.handshake):
                self._stream = await TLSStream.wrap(
                    self._stream, server_side=True, ssl_context=self._address.tls, standard_compatible=False
                )
                return True
        except ssl.SSLError as error:
            self._log.debug("TLS handshake failed", server=self._address.name, peer=self._peer, reason=error.reason)
        return False

    async def _answer_all(self) -> None:
        """Answer one request after the other. What is malformed or too large is refused, and the connection ends."""
        while await self._begins():
            try:
                with self._gate.buffer() as buffer:
                    if not await self._answer_next(buffer):
                        return
            except h11.RemoteProtocolError as error:
                return await self._refuse(refusal(error.error_status_hint, "malformed request"))
            except Refused as refused:
                return await self._refuse(refused.response)
            self._http.start_next_cycle()
            self._is_first = False

    async def _begins(self) -> bool:
        """Wait for the first bytes of a request. False if none come."""
        if self._http.trailing_data[0]:
            return True
        with self._gate.waiting(self._limits.header if self._is_first else self._limits.idle, between_requests=True):
            return await self._read()
        return False

    async def _answer_next(self, buffer: Buffer) -> bool:
        """Receive and answer one request. Returns whether another one may follow on this connection."""
        begun = await self._header()
        if begun is None:
            return False
        method, headers = begun.method.decode("ascii"), headers_of(begun)
        try:
            target = target_of(begun.target.decode("ascii"))
        except BadTarget as error:
            raise Refused(refusal(400, str(error))) from error
        handler = handler_of(self._address.routes, method, target.path)
        if int(headers.get("content-length", 0)) > self._limits.body_bytes:
            raise Refused(self._too_large())
        if isinstance(handler, HttpResponse) and self._has_body(headers):
            raise Refused(handler)
        await self._receive_body(buffer)
        request = IncomingRequest(method, target.path, target.query, headers, buffer.joined(), self._peer)
        response = handler if isinstance(handler, HttpResponse) else await self._response(handler, request)
        await self._send(response, with_body=method != "HEAD")
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    async def _header(self) -> h11.Request | None:
        """The header of the next request; None if the client has closed the connection instead."""
        with self._gate.waiting(self._limits.header):
            event = await self._event()
            if not isinstance(event, h11.Request):
                return None
            # The limit of h11 is for headers that are not complete.
            if len(event.target) + sum(len(name) + len(value) for name, value in event.headers) > self._limits.header_bytes:
                raise Refused(refusal(431, f"the header has more than {self._limits.header_bytes} bytes"))
            return event
        raise Refused(refusal(408, "the header took too long"))

    def _has_body(self, headers: Mapping[str, str]) -> bool:
        return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers

    async def _receive_body(self, buffer: Buffer) -> None:
        """Receive the rest of a request into the buffer. Raises `Refused` if it is too large or too slow."""
        with self._gate.waiting(self._limits.body):
            if self._http.they_are_waiting_for_100_continue:
                await self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            while isinstance(event := await self._event(), h11.Data):
                if buffer.size + len(event.data) > self._limits.body_bytes:
                    raise Refused(self._too_large())
                if not buffer.add(bytes(event.data)):
                    raise Refused(busy())
            return
        raise Refused(refusal(408, "the body took too long"))

    def _too_large(self) -> HttpResponse:
        return refusal(413, f"the body has more than {self._limits.body_bytes} bytes")

    async def _response(self, handler: Handler, request: IncomingRequest) -> HttpResponse:
        """What the handler answers when it is its turn."""
        if not await self._gate.turn():
            return busy()
        try:
            with anyio.move_on_after(self._limits.handler):
                return await handler(request)
            self._log.error("request timed out", server=self._address.name, path=request.path, seconds=self._limits.handler)
            return refusal(503, "the request took too long")
        except Exception as error:
            self._log.error("request failed", server=self._address.name, path=request.path, error=error, exc_info=True)
            return refusal(500, "internal error")
        finally:
            self._gate.release()

    async def _refuse(self, response: HttpResponse) -> None:
        """Send a response to a request that was not read to its end, and discard the rest of it for a moment."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        await self._send(replace(response, headers={**response.headers, "Connection": "close"}))
        if isinstance(self._stream, SocketStream):
            await self._stream.send_eof()
        with self._gate.waiting(LINGER):
            while True:
                await self._stream.receive()

    async def _send(self, response: HttpResponse, *, with_body: bool = True) -> None:
        """Send a whole response at once."""
        headers = {
            "Date": format_datetime(self._clock.now(), usegmt=True),
            "Content-Type": response.content_type,
            "Content-Length": str(len(response.body)),
            **({"Connection": "close"} if self._gate.is_stopping else {}),
            **response.headers,
        }
        head = h11.Response(status_code=response.status, headers=list(headers.items()), reason=phrase(response.status))
        events: list[Any] = [head, *([h11.Data(data=response.body)] if with_body and response.body else []), h11.EndOfMessage()]
        await self._write(b"".join(self._http.send(event) or b"" for event in events))

    async def _write(self, data: bytes) -> None:
        """Send bytes. Raises `BrokenResourceError` if the client does not take them in time."""
        with anyio.move_on_after(self._limits.write):
            return await self._stream.send(data)
        raise anyio.BrokenResourceError

    async def _event(self) -> Any:
        """The next event of the protocol."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            await self._read()
        return event

    async def _read(self) -> bool:
        """Pass on what the client sends next. False if that is the end."""
        try:
            data = await self._stream.receive()
        except anyio.EndOfStream:
            data = b""
        self._http.receive_data(data)
        return bool(data)


def headers_of(request: h11.Request) -> dict[str, str]:
    """The headers with names in lower case; repeated ones are joined with commas."""
    headers: dict[str, str] = {}
    for name, value in request.headers:
        key, text = name.decode("ascii"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def phrase(status: int) -> bytes:
    """The reason phrase of a status."""
    try:
        return HTTPStatus(status).phrase.encode("ascii")
    except ValueError:
        return b""


def peer_of(stream: SocketStream) -> str:
    """The IP address of the client; that of an IPv4 client in IPv4 notation. Empty if it has gone already."""
    host = stream.extra(SocketAttribute.remote_address, ("",))[0]
    try:
        address = ipaddress.ip_address(str(host).partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
