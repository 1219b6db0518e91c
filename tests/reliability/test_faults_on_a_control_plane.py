"""`engine run` in a process of its own survives the faults of a real control plane, with nothing made twice and nothing lost."""

import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from engine.runtime.lease import LEASE
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.controlplane.cluster import SYSTEM, ControlPlane, has_ended, kill, start_again, wait_until_ready, write_secret
from tests.controlplane.fixtures import started
from tests.reliability.installation import engine_run, installed
from tests.reliability.proxy import FaultyProxy
from tests.reliability.trial import trial
from tests.reliability.workload import PODS_OF_A_SET
from tests.stories.engine_processes import EngineProcess
from tests.stories.test_control_plane import connection, define
from tests.waiting import eventually, until

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

CONCURRENCY = 24
"""How many calls the engine makes at once."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that these tests may break."""
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as plane:
        yield plane


@asynccontextmanager
async def administration(plane: ControlPlane, namespace: str) -> AsyncIterator[KubernetesClient]:
    """The administrator of a new namespace."""
    async with connection(plane, "admin") as admin:
        await define(admin, namespace)
        yield admin


def refusing_once(verb: str, code: int) -> Callable[[str], tuple[int, Mapping[str, str]] | None]:
    """Refuse the first request of that verb for each kind."""
    refused: set[str] = set()

    def refuse(request: str) -> tuple[int, Mapping[str, str]] | None:
        if not request.startswith(f"{verb} ") or request in refused:
            return None
        refused.add(request)
        return code, {}

    return refuse


@asynccontextmanager
async def scheduler_kept_running(plane: ControlPlane) -> AsyncIterator[None]:
    """Start the scheduler again whenever it ends, as its kubelet would.

    After a crash of the server it ends by itself if a pod is on another node than it believes: the answer to its binding was lost.
    """

    async def keep() -> None:
        while True:
            if has_ended(plane.folder, "kube-scheduler"):
                start_again(plane.folder, "kube-scheduler")
            await anyio.sleep(0.2)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep)
        yield
        tasks.cancel_scope.cancel()


async def until_logged(process: EngineProcess, event: str) -> None:
    """Wait until a process has logged that event."""
    await eventually(lambda: process.logged(event))


async def test_without_a_fault_nothing_is_listed_again_or_refused(plane: ControlPlane, tmp_path: Path) -> None:
    async with administration(plane, "undisturbed") as admin:
        with engine_run(installation := installed(tmp_path, plane, "undisturbed")) as engine:
            async with trial(plane, admin, installation, [engine]) as disturbed:
                disturbed.end_fault()

        assert disturbed.deeds.lists == 0
        assert set(disturbed.deeds.refused) <= {404}  # Kinds that are not served are tried about once a minute.


async def test_watches_that_are_cut_again_and_again_are_resumed_without_a_list(plane: ControlPlane, tmp_path: Path) -> None:
    async with administration(plane, "watches-cut") as admin:
        with FaultyProxy(plane) as proxy, engine_run(installation := installed(tmp_path, plane, "watches-cut", server=proxy.url)) as engine:
            async with trial(plane, admin, installation, [engine]) as disturbed:
                for writes in (5, 30, 60, 90):
                    await disturbed.until_written(writes)
                    await eventually(proxy.cut_watches)
                disturbed.end_fault()

        assert disturbed.deeds.lists == 0


async def test_after_410_gone_every_kind_is_listed_once_more(plane: ControlPlane, tmp_path: Path) -> None:
    async with administration(plane, "gone") as admin:
        with FaultyProxy(plane) as proxy, engine_run(installation := installed(tmp_path, plane, "gone", server=proxy.url)) as engine:
            async with trial(plane, admin, installation, [engine]) as disturbed:
                await disturbed.until_written(10)
                proxy.refuse = refusing_once("watch", 410)
                watches = await eventually(proxy.cut_watches)
                disturbed.end_fault()

        assert 0 < disturbed.deeds.lists <= watches


async def test_a_storm_of_429_delays_everything_and_loses_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    async with administration(plane, "throttled") as admin:
        with FaultyProxy(plane) as proxy, engine_run(installation := installed(tmp_path, plane, "throttled", server=proxy.url)) as engine:
            async with trial(plane, admin, installation, [engine]) as disturbed:
                await disturbed.until_written(10)
                # Servers exempt the requests of leader election from their limits.
                proxy.refuse = lambda request: None if "leases" in request else (429, {"Retry-After": "1"})
                proxy.cut_watches()
                await anyio.sleep(5)
                await eventually(lambda: proxy.answers[429] > 20)
                proxy.refuse = lambda request: None
                disturbed.end_fault()

        assert disturbed.deeds.lists == 0
        assert len(engine.logged("leading")) == 1


@pytest.mark.parametrize("part", ["kube-apiserver", "etcd"])
async def test_a_server_that_is_killed_and_started_again_is_followed_as_before(plane: ControlPlane, tmp_path: Path, part: str) -> None:
    namespace = f"{part}-restarted"
    async with administration(plane, namespace) as admin:
        # A server that has just started refuses what roles allow until it has read them; a refused write waits for half the interval.
        with engine_run(installation := installed(tmp_path, plane, namespace), interval="20s") as engine:
            async with scheduler_kept_running(plane), trial(plane, admin, installation, [engine]) as disturbed:
                await disturbed.until_written(10)
                kill(plane.folder, part)
                start_again(plane.folder, part)
                await anyio.to_thread.run_sync(wait_until_ready, plane)
                # Unlike a kubelet, kwok does not repeat a status that the server could not take. Started again, it looks at all pods.
                kill(plane.folder, "kwok")
                start_again(plane.folder, "kwok")
                disturbed.end_fault()


async def test_a_lease_that_somebody_takes_is_acquired_again_and_nothing_is_written_meanwhile(plane: ControlPlane, tmp_path: Path) -> None:
    async with administration(plane, "lease-lost") as admin:
        with engine_run(installation := installed(tmp_path, plane, "lease-lost")) as engine:
            async with trial(plane, admin, installation, [engine]) as disturbed:
                await disturbed.until_written(10)
                spec = {"holderIdentity": "somebody-else", "leaseDurationSeconds": 4, "renewTime": "2030-01-01T00:00:00.000000Z"}
                await admin.patch(LEASE, "lease-lost", "engine", {"spec": spec})
                await until_logged(engine, "not leading")
                before = disturbed.deeds.writes.total()
                await anyio.sleep(2)
                assert disturbed.deeds.writes.total() == before
                disturbed.end_fault()

        assert len(engine.logged("leading")) == 2


async def test_a_standby_takes_over_from_a_leader_that_is_killed_while_it_writes(plane: ControlPlane, tmp_path: Path) -> None:
    async with administration(plane, "killed") as admin:
        installation = installed(tmp_path, plane, "killed")
        with engine_run(installation, "leader") as leader:
            await until_logged(leader, "leading")
            with engine_run(installation, "standby") as standby:
                await until_logged(standby, "waiting for the lease")
                async with trial(plane, admin, installation, [leader, standby], killed=1) as disturbed:
                    await disturbed.until_written(10)
                    leader.send(signal.SIGKILL)
                    disturbed.end_fault()

        assert len(standby.logged("leading")) == 1


async def test_a_leader_that_was_suspended_and_replaced_writes_nothing_when_it_continues(plane: ControlPlane, tmp_path: Path) -> None:
    async with administration(plane, "suspended") as admin:
        with FaultyProxy(plane) as proxy, engine_run(installed(tmp_path / "leader", plane, "suspended", server=proxy.url)) as leader:
            await until_logged(leader, "leading")
            with engine_run(installation := installed(tmp_path / "standby", plane, "suspended")) as standby:
                await until_logged(standby, "waiting for the lease")
                async with trial(plane, admin, installation, [leader, standby]) as disturbed:
                    await disturbed.until_written(10)
                    leader.send(signal.SIGSTOP)
                    disturbed.end_fault()
                    await until_logged(standby, "leading")
                    await disturbed.until_changed()
                    proxy.written.clear()
                    leader.send(signal.SIGCONT)
                    await until_logged(leader, "not leading")

            # Calls that were about to be sent are sent. The server refuses them, for what they change or create has been written since;
            # only a pod that replaces another has a name of its own after the other is gone: the leader has deleted the surplus one.
            done = Counter(request for request, code in proxy.written if code < 400)
            assert done.keys() <= {"POST pods"}
            assert done.total() <= PODS_OF_A_SET
            assert len(proxy.written) <= CONCURRENCY
            assert len(leader.logged("leading")) == 1


async def test_a_token_that_is_revoked_before_the_new_one_is_there_interrupts_the_work_until_it_is(
    plane: ControlPlane, tmp_path: Path
) -> None:
    namespace = "token-rotated"
    async with administration(plane, namespace) as admin:
        installation = installed(tmp_path, plane, namespace)
        old, new = await token(admin, installation.account, "old"), await token(admin, installation.account, "new")
        installation.use_token(old)

        async def revoke() -> None:
            await admin.delete(kinds.SECRET, SYSTEM, "old")
            # The server remembers for ten seconds that a token was good.
            await anyio.to_thread.run_sync(until_refused, replace(plane, token=old))

        with engine_run(installation) as engine:
            async with trial(plane, admin, installation, [engine], begin=revoke) as disturbed:
                await until_logged(engine, "not leading")
                renewed = installation.folder / "renewed"
                write_secret(renewed, new)
                renewed.rename(installation.token_file)
                disturbed.end_fault()

        assert old not in (log := (tmp_path / "engine.log").read_text()) and new not in log


async def token(admin: KubernetesClient, account: str, secret: str) -> str:
    """A token of the account that is good as long as the Secret of that name exists, which is created."""
    await admin.create(kinds.SECRET, SYSTEM, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": SYSTEM}})
    bound_to = {"apiVersion": "v1", "kind": "Secret", "name": secret}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": bound_to, "expirationSeconds": 600},
    }
    answer = await admin.create(kinds.SERVICE_ACCOUNT, SYSTEM, request, name=account, subresource="token")
    return str(answer["status"]["token"])


def until_refused(user: ControlPlane) -> None:
    """Wait until the server answers 401 to that user."""
    until(lambda: user.call("/api/v1/namespaces")[0] == 401)
