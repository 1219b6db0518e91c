"""Subjects: whom a workload is given to: an operator, for which PodCliqueSets are written, or the bare client, which is told what to do."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from benchmarks.cluster.census import Connection
from benchmarks.cluster.usage import until_idle
from benchmarks.cluster.workloads import NAMESPACE, NEW_IMAGE, Workload
from tests.controlplane.cluster import ControlPlane

SETS = f"/apis/grove.io/v1alpha1/namespaces/{NAMESPACE}/podcliquesets"
TRIGGER = "grove.io/reconcile-trigger"
"""An annotation that changes a set and means nothing."""
ROOT = Path(__file__).parents[2]


class Subject(Protocol):
    """Whom a workload is given to. A call returns when it is asked for, not when it is done."""

    name: str

    @property
    def pid(self) -> int:
        """The process that is measured, with those that it has started."""
        ...

    @property
    def is_operator(self) -> bool:
        """Whether it reconciles PodCliqueSets; else only what it is told is done."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, which it should not by itself."""
        ...

    def up(self) -> None:
        """Ask for the whole workload."""
        ...

    def scale(self, old: int, new: int) -> None:
        """Ask for another number of replicas of each set."""
        ...

    def update(self) -> None:
        """Ask for the new image in all pods."""
        ...

    def delete(self) -> None:
        """Ask for the removal of everything."""
        ...

    def close(self) -> None:
        """End the process."""
        ...


class Operator:
    """An operator in a process of its own, e.g. `engine run`."""

    is_operator = True

    def __init__(
        self, name: str, command: Sequence[str], plane: ControlPlane, workload: Workload, *, account: str, variables: Mapping[str, str]
    ) -> None:
        """`account`: whose kubeconfig it gets."""
        self.name = name
        self._command, self._plane, self._workload = command, plane, workload
        self._environment = {**os.environ, **variables, "KUBECONFIG": str(plane.kubeconfig(account))}
        self._connection = Connection(plane)
        self._process = self._started()

    @property
    def pid(self) -> int:
        """The process that is measured."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def _started(self) -> subprocess.Popen[bytes]:
        with (self._plane.folder / f"{self.name}.log").open("ab") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=log, env=self._environment, start_new_session=True)

    def until_leading(self) -> None:
        """Wait until it has started."""
        until_idle(self.pid, 60)

    def restart(self) -> None:
        """Kill it and start it again."""
        self.close()
        self._process = self._started()

    def up(self) -> None:
        """Create the sets."""
        for manifest in self._workload.manifests():
            self._connection.call("POST", SETS, manifest)

    def scale(self, old: int, new: int) -> None:
        """Change the replicas of every set."""
        self._patch_all({"spec": {"replicas": new}})

    def update(self) -> None:
        """Change the image of every set's first clique."""
        path = "/spec/template/cliques/0/spec/podSpec/containers/0/image"
        self._patch_all([{"op": "replace", "path": path, "value": NEW_IMAGE}], "application/json-patch+json")

    def touch(self, value: str) -> None:
        """Change an annotation of every set."""
        self._patch_all({"metadata": {"annotations": {TRIGGER: value}}})

    def delete(self) -> None:
        """Delete the sets."""
        for manifest in self._workload.manifests():
            self._connection.call("DELETE", f"{SETS}/{manifest['metadata']['name']}")

    def close(self) -> None:
        """Kill it, with what it has started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _patch_all(self, patch: Any, content_type: str = "application/merge-patch+json") -> None:
        for manifest in self._workload.manifests():
            self._connection.call("PATCH", f"{SETS}/{manifest['metadata']['name']}", patch, content_type)


class Bare:
    """The bare client (`benchmarks.cluster.bare`) in a process of its own."""

    is_operator = False

    def __init__(self, name: str, plane: ControlPlane, workload: Workload, sizes: Mapping[str, int], *, most: int, account: str) -> None:
        command = [sys.executable, "-m", "benchmarks.cluster.bare", "--workload", workload.name, "--sizes", json.dumps(dict(sizes))]
        command += ["--most", str(most), "--kubeconfig", str(plane.kubeconfig(account)), *(["--gangs"] if plane.gangs else [])]
        self.name = name
        with (plane.folder / "bare.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, cwd=ROOT
            )
        self._expect("ready")
        self._has_command = False

    @property
    def pid(self) -> int:
        """The process that is measured."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def up(self) -> None:
        """Tell it to create everything."""
        self._tell("up")

    def scale(self, old: int, new: int) -> None:
        """Tell it how the number of replicas changes."""
        self._tell(f"scale {old} {new}")

    def update(self) -> None:
        """Tell it to replace all pods."""
        self._tell("update")

    def delete(self) -> None:
        """Tell it to delete everything."""
        self._tell("delete")

    def close(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()

    def _tell(self, command: str) -> None:
        """Send a command once the last one has been carried out."""
        if self._has_command:
            self._expect("done")
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        self._has_command = True

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        if answer != word:
            raise RuntimeError(f"the bare client has ended: {answer!r}; see bare.log")


def engine_command(*options: str) -> list[str]:
    """`engine run OPTIONS` of this checkout."""
    return [sys.executable, "-m", "enginectl", "run", *options]


def engine_variables() -> dict[str, str]:
    """The environment variables with which this checkout's engine is found."""
    return {"PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"}


def words(command: str) -> list[str]:
    """A command line as words."""
    return shlex.split(command)
