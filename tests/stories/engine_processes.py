"""Processes of `engine run`, whose log lines tell which of them wrote what and when."""

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.enginectl.calling import ROOT


class EngineProcess:
    """One process, with its log in a file."""

    def __init__(self, folder: Path, name: str, kubeconfig: Path, words: Sequence[str]) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        environment = {
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}",
            "HOME": "/nonexistent",
            "KUBECONFIG": str(kubeconfig),
        }
        with self._log.open("w") as log:
            command = [sys.executable, "-m", "enginectl", "run", "--log-format", "json", *words]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, env=environment)

    def kill(self) -> None:
        """`kill -9`."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def end(self) -> None:
        """`kill`, and wait until it has ended in order."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.kill()

    def lines(self) -> Iterator[dict[str, Any]]:
        """The lines of its log so far; one that is being written is left out."""
        for line in self._log.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)

    def shards(self) -> set[int]:
        """The shards that it holds, by its log."""
        held: set[int] = set()
        for line in self.lines():
            if line["event"] == "leading":
                held.add(line["shard"])
            elif line["event"] in ("gave back", "not leading") and "shard" in line:
                held.discard(line["shard"])
        return held

    def writes(self) -> Iterator[tuple[str, str]]:
        """Time and namespace of each of its writes."""
        for line in self.lines():
            if line["event"] == "applied":
                yield line["timestamp"], line["object"].split("/")[1]


@contextmanager
def engines(folder: Path, kubeconfig: Path, number: int, *words: str) -> Iterator[list[EngineProcess]]:
    """So many processes of `engine run WORDS`, which end with the block."""
    processes = [EngineProcess(folder, f"engine-{index}", kubeconfig, words) for index in range(number)]
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
