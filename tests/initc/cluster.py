"""A sandbox cluster over HTTP with the pods of a gang, and a waiter in a thread."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue
from urllib.parse import urlsplit

from anyio.from_thread import BlockingPortal, start_blocking_portal

from grove_sandbox.clock import VirtualClock
from grove_sandbox.http.faults import InjectedFault
from grove_sandbox.process import Sandbox, sandbox
from initc.environment import ACCOUNT, POD_INFO, Environment, read_environment
from initc.wait import wait
from resources.base.kinds import NAMESPACE, POD
from sandbox.tests.actors.manifests import pod
from tests.waiting import PATIENCE

"""Seconds after which a test gives up on a thread."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster, and the files that are mounted into the pod that waits: in namespace `ml`, in gang `x-0`."""

    sandbox: Sandbox
    portal: BlockingPortal
    root: Path

    @property
    def environ(self) -> dict[str, str]:
        """The variables that every container has."""
        server = urlsplit(self.sandbox.url)
        return {"KUBERNETES_SERVICE_HOST": str(server.hostname), "KUBERNETES_SERVICE_PORT": str(server.port)}

    @property
    def environment(self) -> Environment:
        """The environment of the pod that waits."""
        return read_environment(self.environ, self.root)

    def mount(self, name: str, text: str) -> None:
        """Replace the pod's token or certificate authority."""
        (self.root / ACCOUNT / name).write_text(text)

    def rotate(self, token: str) -> None:
        """Revoke the pod's token and replace it."""
        self.portal.call(self.sandbox.access.revoke, self.environment.token)
        self.portal.call(self.sandbox.access.grant, token, "waiter")
        self.mount("token", token)

    def create(self, name: str, clique: str, *, gang: str = "x-0", ready: bool = True) -> None:
        """Create a pod of a clique."""
        self.portal.call(self.sandbox.client().create, POD, "ml", pod(name, gang=gang, clique=clique))
        if ready:
            self.set_ready(name, True)

    def set_ready(self, name: str, ready: bool) -> None:
        """Set the Ready condition of a pod."""
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        client, patch = self.sandbox.client(), {"status": {"conditions": conditions}}
        self.portal.call(lambda: client.patch(POD, "ml", name, patch, how="strategic", subresource="status"))

    def delete(self, name: str) -> None:
        """Delete a pod at once."""
        client = self.sandbox.client()
        self.portal.call(lambda: client.delete(POD, "ml", name, grace=0))

    def inject(self, *faults: InjectedFault) -> None:
        """Let the next matching requests fail."""
        self.portal.call(lambda: self.sandbox.faults.inject(*faults))

    def hang_up(self) -> None:
        """End every watch, as a restarting server does."""
        self.portal.call(self.sandbox.backend.close_watches)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """The cluster, for as long as the block lasts."""
    (folder / ACCOUNT).mkdir(parents=True)
    (folder / POD_INFO).mkdir(parents=True)
    (folder / POD_INFO / "namespace").write_text("ml")
    (folder / POD_INFO / "podgangname").write_text("x-0\n")
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(sandbox(VirtualClock(), folder, actors=(), definitions=())) as made:
            cluster = Cluster(made, portal, folder)
            cluster.mount("ca.crt", made.authority.decode())
            cluster.mount("token", "first")
            portal.call(made.access.grant, "first", "waiter")
            portal.call(made.client().create, NAMESPACE, "", {"metadata": {"name": "ml"}})
            yield cluster


class NoMoreActions(Exception):
    """The waiter sleeps more often than the test expects."""


class Waiter:
    """A waiter in a thread. Instead of each sleep, the next of the actions is run."""

    def __init__(self, environment: Environment, required: Mapping[str, int], *instead_of_sleep: Callable[[], None]) -> None:
        self.pauses: list[float] = []
        self._lines: Queue[str] = Queue()
        self._actions = iter(instead_of_sleep)
        self._ended: Queue[Exception | None] = Queue()
        self._thread = threading.Thread(target=self._run, args=(replace(environment), dict(required)), daemon=True)
        self._thread.start()

    def _run(self, environment: Environment, required: Mapping[str, int]) -> None:
        try:
            wait(environment, required, self._lines.put, self._sleep)
        except Exception as error:
            self._ended.put(error)
        else:
            self._ended.put(None)

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        action = next(self._actions, None)
        if action is None:
            raise NoMoreActions
        action()

    def line(self) -> str:
        """The next line that it reports."""
        return self._lines.get(timeout=PATIENCE)

    def lines(self) -> list[str]:
        """The lines that were not read yet."""
        return list(self._lines.queue)

    def end(self) -> None:
        """Wait for its end, and raise what it raised."""
        error = self._ended.get(timeout=PATIENCE)
        if error is not None:
            raise error


def nothing() -> None:
    """An action that does nothing."""
