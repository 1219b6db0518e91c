"""What tests of the command line ask for."""

import sys
from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from engine import conditions
from engine.runtime.lease import Durations
from enginectl.wiring import configuration, leases
from grove_sandbox.actors.nodes import node_names
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.api.verbs import Api
from grove_sandbox.api.webhooks import Webhooks
from grove_sandbox.clock import VirtualClock
from grove_sandbox.process import installed_api, sandbox
from grove_sandbox.registry import ACTORS
from providers import registry
from providers.kubernetes import connect
from providers.kubernetes.connection_pool import RequestLimits
from resources.base.kinds import NODE
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.quick_clock import QUICK, SPEED

FAST = ActorOptions(nodes=3, termination=0.0)
FEW_AT_A_TIME = RequestLimits(in_flight=3)


@pytest.fixture(autouse=True)
def quick_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process, and the clusters that they work on, have a clock that is quick, and leases that last as long as others.

    A lease that could not be renewed within two seconds of the machine would be lost where the machine is busy.
    """
    QUICK.restart()
    monkeypatch.setattr(configuration, "SystemClock", lambda: QUICK)
    monkeypatch.setattr(leases, "Durations", lambda lease, renew, retry: Durations(lease * SPEED, renew * SPEED, retry))


@pytest.fixture(autouse=True)
def few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process send a few requests at a time: otherwise each opens some thirty connections, whose handshakes, with a
    server in the same process, take as long as all the rest of a short command.
    """
    monkeypatch.setattr(connect, "connected", partial(connect.connected, limits=FEW_AT_A_TIME))


@pytest.fixture(autouse=True)
def known_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which packages are installed is read once for each state of `sys.path`, and not by every command in this process."""
    monkeypatch.setattr(registry, "entry_points", lambda group: _entry_points(group, tuple(sys.path)))


@cache
def _entry_points(group: str, path: tuple[str, ...]) -> EntryPoints:
    return entry_points(group=group)


@pytest.fixture
def engine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    """The command line, on a machine that knows of no cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return Engine(capsys)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A sandbox cluster on loopback that the command line finds by itself."""
    with cluster(tmp_path, ACTORS) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


@pytest.fixture
def full_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """The same without a scheduler: no pod ever finds a place."""
    with cluster(tmp_path, [actor for actor in ACTORS if actor != "scheduler"]) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


@pytest.fixture
def bare_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster that has never heard of our kinds."""
    with cluster(tmp_path, ACTORS, definitions=()) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


@contextmanager
def cluster(
    folder: Path, actors: Collection[str], options: ActorOptions = FAST, *, webhooks: Webhooks | None = None, **installed: Any
) -> Iterator[Box]:
    """A sandbox cluster in a thread of its own, whose nodes are ready, if something makes them ready; `installed` as for a sandbox."""
    api = installed_api(QUICK, options, **installed) if "definitions" in installed else _copied_api(options, **installed)
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(sandbox(QUICK, folder, actors=actors, options=options, webhooks=webhooks, api=api)) as made:
            box = Box(made, portal)
            for name in node_names(options) if "kubelet" in actors else ():
                box.wait_for(NODE, _has_a_place_for_pods, name)
            yield box


_INSTALLED: dict[Hashable, Api] = {}
"""The API of a new cluster for all that is installed in it. To install it takes longer than many a command."""


def _copied_api(options: ActorOptions, addons: Sequence[str] = (), *, grove: bool = True) -> Api:
    """The API of a new cluster with our kinds, in which that has been installed for a long time."""
    key = (repr(options), tuple(addons), grove)
    if key not in _INSTALLED:
        _INSTALLED[key] = installed_api(VirtualClock(), options, addons=addons, grove=grove)
    return _INSTALLED[key].fork(QUICK)


def _has_a_place_for_pods(node: dict[str, Any]) -> bool:
    return conditions.is_true((node.get("status") or {}).get("conditions") or (), "Ready") and not (node.get("spec") or {}).get("taints")
