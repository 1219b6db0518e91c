"""Soak: `engine run` on a real control plane while users, pods and nodes change without end, and what it uses at rest before and after.

    export KUBEBUILDER_ASSETS=$(tests/controlplane/build)
    python -m benchmarks.soak --seconds 600

Prints one JSON line for each rest, and exits with 1 if the process has grown, lost or kept anything that it should not have.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio

from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.controlplane.cluster import ControlPlane, running
from tests.reliability.audit import Deeds
from tests.reliability.churn import BASE, PODS_OF_A_SET, Churn
from tests.reliability.installation import engine_run, installed
from tests.reliability.trial import until_at_rest
from tests.stories.engine_processes import EngineProcess
from tests.stories.pods import is_leaving, is_ready
from tests.stories.test_control_plane import connection, define
from tests.waiting import until_objects

NAMESPACE = "soak"

MARGIN = 1.10
"""How many times as much memory as at the first rest after churn may be resident at the last one."""

IDLE_CONNECTIONS = 32
"""How many connections for requests may be open; they are closed after a minute without use."""

PATIENCE = 180.0
"""Seconds within which everything comes to rest."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What `engine run` uses, and has done, while nothing happens."""

    minutes: float
    """Since its start."""
    disturbances: int
    """How often it has been disturbed before."""
    resident_mib: float
    descriptors: int
    threads: int
    writes: int
    """During the rest, without the Lease."""
    requests: int
    """The same, reads included."""


def main() -> None:
    """Soak, print the figures, and exit with 1 if something has grown."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=600, help="how long the churn lasts")
    options.add_argument("--periods", type=int, default=5, help="into how many parts rests divide it")
    options.add_argument("--rest", type=float, default=70, help="seconds of the first and of the last rest")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as plane:
        rests = anyio.run(soak, plane, Path(folder), given.seconds, given.periods, given.rest)
    if found := growth(rests):
        sys.exit("\n".join(found))


async def soak(plane: ControlPlane, folder: Path, seconds: float, periods: int, rest: float) -> list[Rest]:
    """The rests before, between and after that many periods of churn; each is printed. `rest`: seconds of the first and the last one."""
    rests = []
    async with connection(plane, "admin") as admin:
        await define(admin, NAMESPACE)
        churn, began = Churn(admin, NAMESPACE), time.monotonic()
        with engine_run(installed(folder / "engine", plane, NAMESPACE)) as engine:
            for period in range(periods + 1):
                if period:
                    await disturb(churn, time.monotonic() + seconds / periods)
                await come_to_rest(plane, admin, churn)
                at_rest = await measured(plane, engine, churn, began, rest if period in (0, periods) else 2.0)
                rests.append(at_rest)
                print(json.dumps(asdict(at_rest)), flush=True)
            assert engine.exit_code is None
            assert [line for line in engine.logged() if "exception" in line] == []
    return rests


async def disturb(churn: Churn, until: float) -> None:
    """Disturb about twice a second until that time of the monotonic clock."""
    while time.monotonic() < until:
        await churn.disturb()
        await anyio.sleep(0.5)


async def come_to_rest(plane: ControlPlane, admin: KubernetesClient, churn: Churn) -> None:
    """Ask for the same as at every rest, and wait until it is there; what is applied to a set that is being deleted goes with it."""
    await until_objects(admin, kinds.PODCLIQUESET, NAMESPACE, lambda sets: not any(map(is_leaving, sets.values())))
    await churn.rest()
    deadline = time.monotonic() + PATIENCE
    while True:
        pods = (await admin.list(kinds.POD, NAMESPACE)).items
        if len(pods) == PODS_OF_A_SET * len(BASE) and all(map(is_ready, pods)):
            break
        if time.monotonic() > deadline:
            unready = [pod for pod in pods if not is_ready(pod)]
            sys.exit(f"after {PATIENCE:g} s there are {len(pods)} pods, and not ready are {json.dumps(unready)}")
        await anyio.sleep(0.5)
    await until_at_rest(plane, admin, NAMESPACE)


async def measured(plane: ControlPlane, engine: EngineProcess, churn: Churn, began: float, seconds: float) -> Rest:
    """A rest of that many seconds."""
    before = Deeds(plane, NAMESPACE).end
    await anyio.sleep(seconds)
    since = Deeds(plane, NAMESPACE, before)
    process = Path(f"/proc/{engine.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return Rest(
        round((time.monotonic() - began) / 60, 1),
        churn.done.total(),
        round(int(status["VmRSS"].split()[0]) / 1024, 1),
        len(os.listdir(process / "fd")),
        int(status["Threads"]),
        since.writes.total(),
        since.total,
    )


def growth(rests: list[Rest]) -> list[str]:
    """What has grown from the first rest after churn to the last one, beyond its margin, and what was written at rest; empty: nothing."""
    before, warm, last = rests[0], rests[1], rests[-1]
    checks = {
        f"resident memory grew from {warm.resident_mib} to {last.resident_mib} MiB": last.resident_mib > MARGIN * warm.resident_mib,
        f"descriptors grew from {before.descriptors} to {last.descriptors}": last.descriptors > before.descriptors + IDLE_CONNECTIONS,
        f"threads grew from {warm.threads} to {last.threads}": last.threads > warm.threads,
        f"{last.writes} writes at rest": last.writes > 0,
    }
    return [text for text, holds in checks.items() if holds]


if __name__ == "__main__":
    main()
