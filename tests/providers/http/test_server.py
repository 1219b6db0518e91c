"""The HTTP server: correct answers for clients that keep the rules, and refusals for those that do not."""

import socket
import threading
from contextlib import ExitStack, closing

import anyio
import pytest

from engine.runtime.clock import SystemClock
from providers.http.address import ALL_INTERFACES, Address
from providers.http.message import HttpResponse, IncomingRequest
from providers.http.server import CannotBind, serve
from providers.http.thread import Stopped, in_thread
from tests.ports import free_port
from tests.providers.http.talking import HOST, Answer, Events, elsewhere, limited, read_answer, read_answers, request, served
from tests.waiting import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("tls", [False, True])
async def test_a_request_is_answered_by_the_handler_of_its_method_and_path(tls: bool) -> None:
    async with served(tls=tls) as server:
        answer = await elsewhere(server.say, request("/echo?a=1&b=%20&a=2", "POST", b"hello"))

    assert (answer.status, answer.body) == (200, b"('POST', '/echo', {'a': '2', 'b': ' '}, b'hello')")
    assert answer.headers["content-type"] == "application/json"
    assert {"date", "content-length"} <= answer.headers.keys()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request("/nothing"), 404),
        (request("/echo", "DELETE"), 405),
        (request("/nothing", "POST", b"body"), 404),
        (b"GET /echo\r\n\r\n", 400),
        (b"\x16\x03\x01 is no HTTP\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET * HTTP/1.1\r\nHost: engine\r\n\r\n", 400),
        (b"GET //[ HTTP/1.1\r\nHost: engine\r\n\r\n", 404),
        (b"GET http://engine/echo HTTP/1.1\r\nHost: engine\r\n\r\n", 200),
        (b"GET /echo HTTP/1.1\r\n\r\n", 400),
        (request("/echo?" + "a=1&" * 200), 400),
        (request("/%ff%00"), 404),
        (request("/count", "POST", b"", "Content-Length: 1", "Content-Length: 2"), 400),
        (request("/count", "POST", b"", "Content-Length: -1"), 400),
        (request("/count", "POST", b"", f"Content-Length: {10**19}"), 413),
        (request("/count", "POST", b"", f"Content-Length: {'9' * 5000}"), 400),
        (request("/count", "POST", b"", "Transfer-Encoding: gzip"), 501),
        (request("/echo", "GET", b"", "X: " + "a" * 40_000), 431),
        (b"GET /" + b"a" * 40_000, 431),
    ],
)
async def test_a_request_that_cannot_be_answered_is_refused_with_its_status(sent: bytes, status: int) -> None:
    async with served() as server:
        assert (await elsewhere(server.say, sent)).status == status
        assert (await elsewhere(server.say, request())).status == 200


async def test_a_path_that_has_other_methods_names_them() -> None:
    async with served() as server:
        answer = await elsewhere(server.say, request("/echo", "PUT"))

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, POST")


async def test_head_is_answered_without_a_body_and_the_connection_goes_on() -> None:
    async with served() as server:

        def client() -> list[Answer]:
            with closing(server.connect()) as connection:
                connection.sendall(request("/echo", "HEAD") + request())
                return read_answers(connection, "HEAD", "GET")

        head, get = await elsewhere(client)

    assert (head.status, head.body, int(head.headers["content-length"]) > 0) == (200, b"", True)
    assert get.status == 200


async def test_requests_that_are_sent_at_once_are_answered_in_their_order() -> None:
    async with served() as server:

        def client() -> list[Answer]:
            with closing(server.connect()) as connection:
                connection.sendall(b"".join(request("/count", "POST", b"x" * size) for size in range(1, 6)))
                return read_answers(connection, *["POST"] * 5)

        answers = await elsewhere(client)

    assert [answer.body for answer in answers] == [b"1", b"2", b"3", b"4", b"5"]


async def test_a_body_in_chunks_is_joined() -> None:
    chunks = b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
    async with served() as server:
        answer = await elsewhere(server.say, request("/count", "POST", b"", "Transfer-Encoding: chunked"), chunks)

    assert answer.body == b"5"


async def test_a_client_that_waits_for_permission_to_send_its_body_gets_it() -> None:
    async with served() as server:

        def client() -> tuple[bytes, Answer]:
            with closing(server.connect()) as connection:
                connection.sendall(request("/count", "POST", b"", "Content-Length: 3", "Expect: 100-continue"))
                permission = connection.recv(1000)
                connection.sendall(b"abc")
                return permission, read_answer(connection)

        permission, answer = await elsewhere(client)

    assert permission.startswith(b"HTTP/1.1 100 ")
    assert answer.body == b"3"


async def test_a_client_that_waits_for_permission_to_send_too_much_is_refused_at_once() -> None:
    async with served() as server:
        answer = await elsewhere(server.say, request("/count", "POST", b"", "Content-Length: 70000", "Expect: 100-continue"))

    assert answer.status == 413


async def test_a_body_that_turns_out_too_large_is_refused_and_the_client_can_read_why() -> None:
    size = 100_000
    async with served() as server:
        with_length = await elsewhere(server.say, request("/count", "POST", b"x" * size))
        chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (size, b"x" * size)
        in_chunks = await elsewhere(server.say, request("/count", "POST", b"", "Transfer-Encoding: chunked"), chunk)

    assert (with_length.status, in_chunks.status) == (413, 413)
    assert with_length.headers["connection"] == "close"


async def test_a_defect_of_a_handler_is_a_500_without_details_and_is_logged() -> None:
    async with served() as server:
        answer = await elsewhere(server.say, request("/fail"))

    assert (answer.status, answer.body) == (500, b"internal error\n")
    [logged] = server.log.of("request failed")
    assert logged["path"] == "/fail"
    assert "a secret detail" in str(logged["error"])


async def test_slow_clients_are_cut_off() -> None:
    async with served(limited(header=0.2, body=0.2)) as server:
        header = await elsewhere(server.say, b"GET /echo HT")
        nothing = await elsewhere(server.say, b"")
        body = await elsewhere(server.say, request("/count", "POST", b"", "Content-Length: 3") + b"ab")

    assert (header.status, nothing.status, body.status) == (408, 0, 408)


async def test_a_client_that_speaks_no_tls_or_stalls_in_the_handshake_disturbs_nobody() -> None:
    async with served(limited(handshake=2.0), tls=True) as server:

        def client(data: bytes) -> bytes:
            with socket.create_connection((HOST, server.address.port), timeout=PATIENCE) as connection:
                connection.sendall(data)
                read = b"".join(iter(lambda: connection.recv(1000), b""))
                return read

        await elsewhere(client, b"GET / HTTP/1.1\r\n\r\n")
        await elsewhere(client, b"\x16\x03\x01\x40\x00\x01")
        assert (await elsewhere(server.say, request())).status == 200

    assert server.log.of("TLS handshake failed")
    assert not server.log.of("connection failed")


async def test_http_2_is_not_offered() -> None:
    async with served(tls=True) as server:

        def client() -> str | None:
            context = server.client_context()
            context.set_alpn_protocols(["h2", "http/1.1"])
            with context.wrap_socket(socket.create_connection((HOST, server.address.port)), server_hostname=HOST) as connection:
                return connection.selected_alpn_protocol()

        assert await elsewhere(client) == "http/1.1"


async def test_a_certificate_that_is_replaced_is_used_from_then_on_and_open_connections_stay() -> None:
    async with served(tls=True) as server:

        def client() -> tuple[bytes | None, bytes | None, int]:
            with closing(server.connect()) as early:
                before = early.getpeercert(binary_form=True)  # type: ignore[attr-defined]
                assert server.address.tls is not None
                server.authority.issue_cert(HOST).configure_cert(server.address.tls)
                with closing(server.connect()) as late:
                    after = late.getpeercert(binary_form=True)  # type: ignore[attr-defined]
                early.sendall(request())
                return before, after, read_answer(early).status

        before, after, status = await elsewhere(client)

    assert before != after
    assert status == 200


async def test_clients_that_go_away_at_any_point_disturb_nobody() -> None:
    sent = request("/count", "POST", b"hello")
    async with served() as server:

        def clients() -> None:
            for length in range(0, len(sent) + 1, 7):
                with closing(server.connect()) as connection:
                    connection.sendall(sent[:length])
            with closing(server.connect()) as half_closed:
                half_closed.sendall(sent)
                half_closed.shutdown(socket.SHUT_WR)
                assert read_answer(half_closed).body == b"5"

        await elsewhere(clients)
        assert (await elsewhere(server.say, request())).status == 200

    assert server.log.lines == []


async def test_a_thousand_connections_that_send_nothing_keep_nobody_out() -> None:
    async with served(limited(connections=50)) as server:

        def client() -> int:
            with ExitStack() as opened:
                for number in range(500):
                    idle = opened.enter_context(closing(server.connect()))
                    if number % 2:
                        idle.sendall(b"POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx")
                return server.say(request()).status

        assert await elsewhere(client) == 200


async def test_requests_beyond_the_limit_wait_for_their_turn_and_are_refused_when_it_takes_too_long() -> None:
    held, release = threading.Event(), anyio.Event()

    async def hold(_: IncomingRequest) -> HttpResponse:
        held.set()
        await release.wait()
        return HttpResponse(body=b"held")

    async def let_go(_: IncomingRequest) -> HttpResponse:
        release.set()
        return HttpResponse()

    async with served(limited(requests=1, turn=0.2), {("GET", "/hold"): hold, ("GET", "/go"): let_go}) as server:

        def client() -> tuple[Answer, Answer]:
            with closing(server.connect()) as first:
                first.sendall(request("/hold"))
                held.wait(PATIENCE)
                second = server.say(request("/go"))
                return second, second

        second, _ = await elsewhere(client)

    assert (second.status, second.headers["retry-after"]) == (503, "1")


async def test_bodies_that_are_too_much_together_are_refused_and_later_ones_are_not() -> None:
    async with served(limited(buffered_bytes=1000, body_bytes=800)) as server:

        def client() -> tuple[Answer, Answer]:
            with closing(server.connect()) as first:
                first.sendall(request("/count", "POST", b"", "Content-Length: 700") + b"x" * 600)
                refused = server.say(request("/count", "POST", b"x" * 700))
                while refused.status == 200:  # The first body may not have been read yet.
                    refused = server.say(request("/count", "POST", b"x" * 700))
                first.sendall(b"x" * 100)
                assert read_answer(first).body == b"700"
            return refused, server.say(request("/count", "POST", b"x" * 700))

        refused, later = await elsewhere(client)

    assert (refused.status, later.status) == (503, 200)


async def test_a_handler_that_does_not_end_is_given_up() -> None:
    async def hang(_: IncomingRequest) -> HttpResponse:
        await anyio.sleep_forever()
        return HttpResponse()

    async with served(limited(handler=0.2), {("GET", "/hang"): hang}) as server:
        answer = await elsewhere(server.say, request("/hang"))

    assert answer.status == 503
    assert server.log.of("request timed out")


async def test_at_the_end_requests_in_progress_are_answered_and_idle_connections_closed() -> None:
    held, answers = threading.Event(), list[Answer]()

    async def hold(_: IncomingRequest) -> HttpResponse:
        held.set()
        await anyio.sleep(0.3)
        return HttpResponse(body=b"done")

    with ExitStack() as opened:
        async with served(routes={("GET", "/hold"): hold}) as server:
            idle = opened.enter_context(closing(server.connect()))

            def client() -> None:
                answers.append(server.say(request("/hold")))

            thread = threading.Thread(target=client)
            thread.start()
            await elsewhere(held.wait, PATIENCE)
        assert await elsewhere(idle.recv, 1) == b""
        thread.join(20)

    assert [(answer.status, answer.body, answer.headers["connection"]) for answer in answers] == [(200, b"done", "close")]
    with pytest.raises(ConnectionRefusedError):
        server.connect()


async def test_at_the_end_a_request_that_takes_longer_than_the_grace_is_cut_off() -> None:
    held = threading.Event()

    async def hang(_: IncomingRequest) -> HttpResponse:
        held.set()
        await anyio.sleep_forever()
        return HttpResponse()

    with ExitStack() as opened:
        async with served(routes={("GET", "/hang"): hang}, grace=0.1) as server:
            connection = opened.enter_context(closing(server.connect()))
            connection.sendall(request("/hang"))
            await elsewhere(held.wait, PATIENCE)

        assert (await elsewhere(read_answer, connection)).status == 0


async def test_an_address_that_is_taken_is_one_clear_error_and_nothing_is_served() -> None:
    free = free_port()
    with socket.create_server((HOST, 0)) as other:
        taken = other.getsockname()[1]
        addresses = (Address("metrics", HOST, free), Address("webhooks", HOST, taken))
        with pytest.raises(CannotBind) as error:
            await serve(addresses, Events(), SystemClock(), stop=anyio.Event())

    assert str(error.value) == f"cannot serve webhooks on 127.0.0.1:{taken}: Address already in use"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, free))


async def test_every_interface_is_reached_over_ipv4_and_the_client_has_its_ipv4_address() -> None:
    async def peer(caller: IncomingRequest) -> HttpResponse:
        return HttpResponse(body=caller.peer.encode())

    address = Address("probes", ALL_INTERFACES, free_port(), {("GET", "/peer"): peer})

    def client() -> Answer:
        with closing(socket.create_connection((HOST, address.port), timeout=PATIENCE)) as connection:
            connection.sendall(request("/peer"))
            return read_answer(connection)

    async with in_thread(lambda started, stop: serve((address,), Events(), SystemClock(), stop=stop, started=started)):
        answer = await elsewhere(client)

    assert answer.body == b"127.0.0.1"


async def test_a_thread_that_fails_ends_the_block_with_its_error() -> None:
    failing = threading.Event()

    async def work(started: object, stop: anyio.Event) -> None:
        started()  # type: ignore[operator]
        await elsewhere(failing.wait, 20)
        raise ValueError("broken")

    with pytest.raises(BaseExceptionGroup) as error:
        async with in_thread(work):
            failing.set()
            await anyio.sleep_forever()

    assert error.group_contains(ValueError, match="broken")


async def test_a_thread_that_ends_by_itself_ends_the_block() -> None:
    async def work(started: object, stop: anyio.Event) -> None:
        started()  # type: ignore[operator]

    with pytest.raises(BaseExceptionGroup) as error:
        async with in_thread(work):
            await anyio.sleep_forever()

    assert error.group_contains(Stopped)


async def test_a_block_that_is_cancelled_while_the_thread_starts_ends_it() -> None:
    began, ended = threading.Event(), threading.Event()

    async def work(started: object, stop: anyio.Event) -> None:
        began.set()
        await stop.wait()
        ended.set()

    async with anyio.create_task_group() as tasks:

        async def block() -> None:
            async with in_thread(work):
                pass

        tasks.start_soon(block)
        await elsewhere(began.wait, 20)
        tasks.cancel_scope.cancel()

    assert ended.is_set()
