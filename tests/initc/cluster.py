"""A sandbox cluster over HTTP with a gang of pods in it, and a waiter at work on it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue
from urllib.parse import urlsplit

from anyio.from_thread import BlockingPortal, start_blocking_portal

from initc.place import ACCOUNT, POD_INFO, Place, find
from initc.wait import wait
from providers.sandbox.clock import VirtualClock
from providers.sandbox.http.faults import Fault
from providers.sandbox.process import Sandbox, sandbox
from resources.base.kinds import NAMESPACE, POD
from tests.providers.sandbox.actors.manifests import pod

PATIENCE = 20.0
"""Seconds after which a test gives up on a thread."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster, and the files that are mounted into the pod that waits: in namespace `ml`, in gang `x-0`."""

    sandbox: Sandbox
    portal: BlockingPortal
    root: Path

    @property
    def environ(self) -> dict[str, str]:
        """What every container is told."""
        server = urlsplit(self.sandbox.url)
        return {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}

    @property
    def place(self) -> Place:
        """The place of the pod that waits."""
        return find(self.environ, self.root)

    def mount(self, name: str, text: str) -> None:
        """Put another file where the pod's token and authority lie."""
        (self.root / ACCOUNT / name).write_text(text)

    def rotate(self, token: str) -> None:
        """Another token takes the place of the one before."""
        self.portal.call(self.sandbox.access.revoke, self.place.token)
        self.portal.call(self.sandbox.access.grant, token, "waiter")
        self.mount("token", token)

    def create(self, name: str, clique: str, *, gang: str = "x-0", ready: bool = True) -> None:
        """A pod of a clique."""
        self.portal.call(self.sandbox.client().create, POD, "ml", pod(name, gang=gang, clique=clique))
        if ready:
            self.tell_ready(name, True)

    def tell_ready(self, name: str, ready: bool) -> None:
        """Say that a pod is ready, or that it is not."""
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        client, patch = self.sandbox.client(), {"status": {"conditions": conditions}}
        self.portal.call(lambda: client.patch(POD, "ml", name, patch, how="strategic", subresource="status"))

    def delete(self, name: str) -> None:
        """A pod is gone."""
        client = self.sandbox.client()
        self.portal.call(lambda: client.delete(POD, "ml", name, grace=0))

    def inject(self, *faults: Fault) -> None:
        """Let something go wrong."""
        self.portal.call(lambda: self.sandbox.faults.inject(*faults))

    def hang_up(self) -> None:
        """End every watch, as a server that goes away."""
        self.portal.call(self.sandbox.world.hang_up)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """The cluster, for as long as the block lasts."""
    (folder / ACCOUNT).mkdir(parents=True)
    (folder / POD_INFO).mkdir(parents=True)
    (folder / POD_INFO / "namespace").write_text("ml")
    (folder / POD_INFO / "podgangname").write_text("x-0\n")
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(sandbox(VirtualClock(), folder, actors=(), definitions=())) as made:
            ours = Cluster(made, portal, folder)
            ours.mount("ca.crt", made.authority.decode())
            ours.mount("token", "first")
            portal.call(made.access.grant, "first", "waiter")
            portal.call(made.client().create, NAMESPACE, "", {"metadata": {"name": "ml"}})
            yield ours


class Enough(Exception):
    """The test has seen what it wanted to see."""


class Waiter:
    """A waiter in a thread of its own. In place of every rest, something happens."""

    def __init__(self, place: Place, needs: Mapping[str, int], *instead_of_rest: Callable[[], None]) -> None:
        self.rests: list[float] = []
        self._lines: Queue[str] = Queue()
        self._happens = iter(instead_of_rest)
        self._ended: Queue[Exception | None] = Queue()
        self._thread = threading.Thread(target=self._run, args=(replace(place), dict(needs)), daemon=True)
        self._thread.start()

    def _run(self, place: Place, needs: Mapping[str, int]) -> None:
        try:
            wait(place, needs, self._lines.put, self._rest)
        except Exception as error:
            self._ended.put(error)
        else:
            self._ended.put(None)

    def _rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        happening = next(self._happens, None)
        if happening is None:
            raise Enough
        happening()

    def line(self) -> str:
        """The next line that it tells."""
        return self._lines.get(timeout=PATIENCE)

    def lines(self) -> list[str]:
        """What it has told beyond that, once it has ended."""
        return list(self._lines.queue)

    def end(self) -> None:
        """Wait for its end; raises what it raised."""
        error = self._ended.get(timeout=PATIENCE)
        if error is not None:
            raise error


def nothing() -> None:
    """Nothing happens."""
