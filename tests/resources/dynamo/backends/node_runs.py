"""The nodes of a replica, each started as a kubelet would, for graphs of the current form of pods."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources.dynamo.model.form import PodForm
from resources.dynamo.model.graph import Orchestrator
from tests.resources.dynamo.backends.container_run import GROVE as GROVE_VARIABLES
from tests.resources.dynamo.backends.container_run import LWS as LWS_VARIABLES
from tests.resources.dynamo.backends.container_run import ContainerRun, run
from tests.resources.dynamo.pods.graphs import GROVE, LEADER, LWS, WORKER, Body, main_of

HOST = {GROVE: "g-0-decode-1-decode-ldr-0.g-0.ai.svc.cluster.local", LWS: "g-decode-1-0.g-decode-1.ai"}
"""Orchestrator -> the leader's host."""
MP = {"nvidia.com/vllm-distributed-executor-backend": "mp"}
RAY = {"nvidia.com/vllm-distributed-executor-backend": "ray"}
SHELLS = ("/bin/sh", "/bin/bash")


def variables(orchestrator: Orchestrator, rank: int) -> Mapping[str, str]:
    """What the orchestrator gives to the pod of that rank."""
    if orchestrator is LWS:
        return {**LWS_VARIABLES, "LWS_WORKER_INDEX": str(rank)}
    return {**GROVE_VARIABLES, "GROVE_PCLQ_POD_INDEX": str(max(rank - 1, 0)), "GROVE_PCSG_POD_INDEX": str(rank)}


def node(service: Body, orchestrator: Orchestrator, rank: int, folder: Path, shell: str = "", **graph: Any) -> ContainerRun:
    """The run of the pod of that rank, 0 being the leader."""
    home = folder / "home of user"
    home.mkdir(exist_ok=True)
    # A login shell reads the system's profile, which sets its own PATH, and then this one.
    (home / ".bash_profile").write_text(f"PATH='{folder}/bin':$PATH\n")
    container = main_of(service, WORKER if rank else LEADER, orchestrator, form=PodForm.CURRENT, **graph)
    return run(container, folder, variables(orchestrator, rank), shell=shell)


def added(written: list[str], received: tuple[str, ...]) -> list[str]:
    """The words that a program received in one piece besides those that its user wrote. The written ones have kept their order."""
    extra = len(received) - len(written)
    for start in range(len(written) + 1):
        if list(received[:start]) + list(received[start + extra :]) == written:
            return list(received[start : start + extra])
    raise AssertionError(f"{received} has other words than {written}, or in another order")
