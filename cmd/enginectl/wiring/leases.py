"""Leases: the lease that every writer holds, under which name and for what, and where it is renewed."""

import os
import socket
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from engine.focus import EVERYTHING, Focus
from engine.runtime.lease import Durations, Lease
from engine.runtime.lease_holder import identify
from engine.runtime.logs import Log
from engine.runtime.provider import Client
from engine.runtime.renewal import IN_THE_SAME_LOOP, Renewal
from enginectl.base.exit_codes import Exit, UsageError
from enginectl.wiring.configuration import Wiring, pod_namespace
from enginectl.wiring.connection import connect
from enginectl.wiring.scope import Selection
from providers.kubernetes.request_observer import RequestObserver
from resources import settings
from resources.install.publication import place_of

MAX_NAMES = 3
"""Files and namespaces that the purpose of a lease names; of others the number is given."""


def lease_of(wiring: Wiring, client: Client, purpose: str, renewal: Renewal = IN_THE_SAME_LOOP) -> Lease | None:
    """The lease that every writer holds; None if the configuration disables leader election.

    Its place depends on the configuration only, never on who runs the command or where. `purpose` tells others what it is held for;
    it is renewed by `renewal`.
    """
    election = wiring.settings.leader_election
    if (place := place_of(election)) is None:
        return None
    durations = Durations(*map(settings.seconds, (election.lease_duration, election.renew_deadline, election.retry_period)))
    return Lease(client, wiring.clock, place.namespace, place.name, identify(own_pod()), durations, purpose, renewal=renewal)


def shard_count(wiring: Wiring, given: int | None) -> int:
    """Into how many shards `run` divides the namespaces. `given`: by the option of the command line; None: as the configuration says.

    Raises `UsageError` for several shards without leader election.
    """
    election = wiring.settings.leader_election
    count = given or election.shards
    if count > 1 and not election.enabled:
        raise UsageError(f"{count} shards need leader election: leaderElection.enabled is false")
    return count


def own_pod() -> str:
    """`namespace/name` of the pod that this process runs in; empty outside a pod."""
    namespace = pod_namespace()
    return f"{namespace}/{os.environ.get('POD_NAME') or socket.gethostname()}" if namespace else ""


def purpose_of(command: str, files: Sequence[Path], selection: Selection, focus: Focus = EVERYTHING) -> str:
    """What a command holds the lease for, e.g. `sync -f racks.yaml in namespace x`. Files are named without their folders."""
    names = [f"-f {file.name or file}" for file in files]
    names += [f"--target {target}" for target in focus.targets] + [f"-l {selector.text}" for selector in focus.selectors]
    names += [f"--exclude {target}" for target in focus.excluded]
    namespaces = selection.namespaces
    place = f"in namespace{'s' if len(namespaces) > 1 else ''} {_first(namespaces, ', ')}" if namespaces else "in all namespaces"
    return " ".join(part for part in (command, _first(names, " "), place) if part)


def _first(words: Sequence[str], separator: str) -> str:
    """At most `MAX_NAMES` of the words, and how many more there are."""
    more = f" and {len(words) - MAX_NAMES} more" if len(words) > MAX_NAMES else ""
    return f"{separator.join(words[:MAX_NAMES])}{more}"


LOGGING_TIME = 2.0
"""Seconds for which a process that ends because it hangs tries to log it: what reads its log may be what hangs."""


@asynccontextmanager
async def renewing(wiring: Wiring, log: Log, *, requests: RequestObserver | None = None) -> AsyncGenerator[Renewal]:
    """A thread with a connection of its own, while the block runs. With a connection that the wiring has: the event loop of the block.

    If work hangs, the process ends with the exit code of a lost lease, once its Lease has been released. `requests` is told of every
    request.
    """
    if wiring.client is not None:
        yield IN_THE_SAME_LOOP
        return
    from engine.runtime.renewal_thread import renewal_thread

    @asynccontextmanager
    async def connected() -> AsyncGenerator[Client]:
        async with connect(wiring, log, requests=requests) as (client, _):
            yield client

    def end_process(message: str) -> None:
        logging = threading.Thread(target=log.error, args=("the work hangs: this process ends",), kwargs={"error": message}, daemon=True)
        logging.start()
        logging.join(LOGGING_TIME)
        os._exit(Exit.NOT_LEADER)  # What hangs cannot be asked to end in order.

    async with renewal_thread(connected, end_process) as thread:
        yield thread
