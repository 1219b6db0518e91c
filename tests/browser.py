"""A headless Chromium that opens a page and reports everything that it does besides showing it. Without Chromium such tests are skipped."""

import json
import os
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import F_DUPFD_CLOEXEC, fcntl
from io import FileIO
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update"
    " --disable-sync --disable-dev-shm-usage --remote-debugging-pipe"
).split()
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on PATH (Debian: apt-get install chromium)")

PATIENCE = 60
"""Seconds without a word from Chromium after which a test fails."""

DONE_TO_A_PAGE = {
    "Log.entryAdded": lambda event: f"log: {event['entry']['text']}",
    "Runtime.consoleAPICalled": lambda event: f"console: {event['args']}",
    "Runtime.exceptionThrown": lambda event: f"exception: {event['exceptionDetails']['text']}",
    "Page.javascriptDialogOpening": lambda event: f"dialog: {event['message']}",
    "Network.requestWillBeSent": lambda event: f"request: {event['request']['url']}",
    "Page.frameRequestedNavigation": lambda event: f"navigation: {event['url']}",
    "Target.targetCreated": lambda event: f"target: {event['targetInfo']['url']}",
}
"""Events of the DevTools protocol -> what they say. A page that only shows something causes the request for itself, and nothing else."""


class Browser:
    """One page in a Chromium, over the pipe of the DevTools protocol."""

    def __init__(self, send: Callable[[bytes], object], receive: Callable[[], bytes]) -> None:
        self._send, self._receive = send, receive
        self._last, self._session = 0, ""
        self.events: list[str] = []
        """What the page did since it was opened, in words."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """The result of a method of the DevTools protocol."""
        number = self._post(method, **params)
        while (answer := self._next()).get("id") != number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _post(self, method: str, **params: Any) -> int:
        self._last += 1
        message = {"id": self._last, "method": method, "params": params} | ({"sessionId": self._session} if self._session else {})
        self._send(json.dumps(message).encode() + b"\0")
        return self._last

    def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._receive())
        if describe := DONE_TO_A_PAGE.get(message.get("method", "")):
            self.events.append(describe(message["params"]))
        if message.get("method") == "Page.javascriptDialogOpening":
            self._post("Page.handleJavaScriptDialog", accept=False)  # A page waits until its dialog is closed, and so would we.
        return message

    def open(self, url: str, *, width: int = 1000, height: int = 1200) -> None:
        """Open a page in a window of that size, and wait until it has loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.events.clear()
        self.call("Page.navigate", url=url)
        while self._next().get("method") != "Page.loadEventFired":
            pass
        self.evaluate("new Promise(done => setTimeout(done, 100))")  # Whatever a hostile page would start has been started then.

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page. It is the debugger's own: the page's policy does not apply."""
        return self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)["result"].get("value")

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Store what the whole page looks like, as a PNG; or only what fits into the window."""
        path.write_bytes(b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser that ends with the block."""
    assert CHROMIUM is not None
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile, _pipe() as (calls_out, calls_in), _pipe() as (answers_out, answers_in):

        def pass_pipes() -> None:
            os.dup2(calls_out.fileno(), 3)
            os.dup2(answers_in.fileno(), 4)

        process = subprocess.Popen(
            [CHROMIUM, *ARGUMENTS, f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=pass_pipes,
        )
        answers_in.close()
        messages = _messages(answers_out)
        try:
            yield Browser(calls_in.write, lambda: next(messages))
        finally:
            process.kill()
            process.wait()


@contextmanager
def _pipe() -> Iterator[tuple[FileIO, FileIO]]:
    """A pipe whose file numbers are not those that Chromium expects its own at."""
    numbers = os.pipe()
    with FileIO(fcntl(numbers[0], F_DUPFD_CLOEXEC, 10), "rb") as end, FileIO(fcntl(numbers[1], F_DUPFD_CLOEXEC, 10), "wb") as start:
        for number in numbers:
            os.close(number)
        yield end, start


def _messages(stream: FileIO) -> Iterator[bytes]:
    """The messages of the pipe; each ends with a zero byte."""
    rest = b""
    while select([stream], [], [], PATIENCE)[0] and (received := stream.read(1 << 16)):
        *complete, rest = (rest + received).split(b"\0")
        yield from complete


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for the tests of one file."""
    with open_browser() as browser:
        yield browser
