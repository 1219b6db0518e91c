"""Processes of `engine run`, whose log lines tell which of them wrote what and when."""

import json
import os
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.enginectl.calling import command, environment
from tests.waiting import PATIENCE


class EngineProcess:
    """A process of `engine run`, and what it has logged in a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log

    @property
    def name(self) -> str:
        """The name that the test has given it."""
        return self._log.stem

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; the negative number of the signal that killed it."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """`kill -9`, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """`kill`, and wait until it has ended in order; it is killed if it does not."""
        if self.exit_code is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()

    def logged(self, event: str = "") -> list[dict[str, Any]]:
        """The complete lines of its log so far, or those of one event."""
        lines = self._log.read_text().split("\n")[:-1]
        return [line for line in map(json.loads, filter(None, lines)) if event in ("", line["event"])]

    def shards(self) -> set[int]:
        """The shards that it holds, by its log."""
        held: set[int] = set()
        for line in self.logged():
            if line["event"] == "leading":
                held.add(line["shard"])
            elif line["event"] in ("gave back", "not leading") and "shard" in line:
                held.discard(line["shard"])
        return held

    def writes(self) -> Iterator[tuple[str, str]]:
        """Time and namespace of each of its writes."""
        for line in self.logged("applied"):
            yield line["timestamp"], line["object"].split("/")[1]


@contextmanager
def engine_run(log: Path, *words: str | Path, stderr: int | None = None, **variables: str) -> Iterator[EngineProcess]:
    """`engine run WORDS` while the block runs, killed at its end. It logs JSON to the end of a file, or to the descriptor `stderr`."""
    with log.open("ab") as stream:
        process = subprocess.Popen(
            command("run", "--log-format", "json", *words, fresh=True),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream if stderr is None else stderr,
            env=environment(**variables),
            cwd=os.sep,
        )
    with process:
        try:
            yield EngineProcess(process, log)
        finally:
            process.kill()


@contextmanager
def engines(folder: Path, kubeconfig: Path, number: int, *words: str) -> Iterator[list[EngineProcess]]:
    """So many processes of `engine run WORDS`, which end in order with the block."""
    with ExitStack() as running:
        logs = [folder / f"engine-{index}.log" for index in range(number)]
        processes = [running.enter_context(engine_run(log, *words, KUBECONFIG=str(kubeconfig))) for log in logs]
        try:
            yield processes
        finally:
            for process in processes:
                process.end()


def terms(processes: Sequence[EngineProcess]) -> Mapping[str, list[str]]:
    """Namespace -> the processes that wrote in it, one after the other; one that wrote before and after another is there twice."""
    writes = sorted((at, namespace, process.name) for process in processes for at, namespace in process.writes())
    by_namespace: dict[str, list[str]] = defaultdict(list)
    for _, namespace, name in writes:
        if by_namespace[namespace][-1:] != [name]:
            by_namespace[namespace].append(name)
    return by_namespace
