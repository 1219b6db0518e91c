"""A log that nobody can write ends nothing: `engine run` works with a full disk, a reader that has gone, and no stderr at all."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from engine.runtime.clock import SystemClock
from enginectl.base.exit_codes import Exit
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.base import kinds
from sandbox.tests.commands.test_sandbox import up
from tests.builders import clique, podcliqueset
from tests.enginectl.calling import command, environment
from tests.stories.pods import is_ready
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.anyio

STDERR = ("a full disk", "a pipe whose reader has gone", "closed")


@contextmanager
def engine_run(kubeconfig: Path, stderr: str) -> Iterator[subprocess.Popen[bytes]]:
    """`engine run -v` with one of `STDERR`."""
    words = command("run", "-v", "--kubeconfig", kubeconfig, fresh=True)
    if stderr == "closed":
        words = ["sh", "-c", 'exec "$@" 2>&-', "sh", *words]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe, open("/dev/full", "wb") as full:
        output = {"a full disk": full, "a pipe whose reader has gone": pipe}.get(stderr)
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=output, env=environment())
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("stderr", STDERR)
async def test_a_set_comes_up_and_the_process_ends_in_order_although_no_line_can_be_written(stderr: str, tmp_path: Path) -> None:
    with up("--dir", str(tmp_path / "box")) as (_, kubeconfig), engine_run(kubeconfig, stderr) as process:
        async with connected(Source(str(kubeconfig)), SystemClock()) as client:
            await client.create(kinds.PODCLIQUESET, "default", podcliqueset("web", clique("worker", 2)))
            with anyio.fail_after(PATIENCE):
                while True:
                    pods = (await client.list(kinds.POD, "default")).items
                    if len(pods) == 2 and all(map(is_ready, pods)):
                        break
                    assert process.poll() is None
                    await anyio.sleep(0.2)

            process.send_signal(signal.SIGTERM)
            await eventually(lambda: process.poll() is not None)

            assert process.returncode == Exit.TERMINATED
            lease = await client.get(kinds.LEASE, "default", "grove-operator-leader-election")
            assert lease["spec"]["holderIdentity"] == ""
