"""Forecasts beside the audit log of a real API server: for each edit, what `diff` says is written is what `sync` writes."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import anyio
import pytest
from msgspec.structs import replace

from engine.forecast.forecast import Forecast
from engine.ids import ResourceId
from engine.intent import Intent, Removal
from engine.operation import Operation, Outcome, Result
from engine.plan import Plan
from engine.runtime import session
from engine.runtime.clock import SystemClock
from engine.runtime.progress import NoProgress
from engine.runtime.sync_report import Ending, SyncReport
from engine.verb import Verb
from enginectl.actions.diff import exit_code
from enginectl.actions.planning import first_pass
from enginectl.actions.preview import shown_and_facts
from enginectl.base.exit_codes import Exit
from enginectl.base.options import Options
from enginectl.input.applysets import members_and_removals
from enginectl.input.roots import Roots
from enginectl.wiring.cluster import engine_of, with_events
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import ROOTS, Selection, scope_of
from grove_sandbox.actors.options import PARTS, ActorOptions, DriverOptions
from grove_sandbox.installation.installation import definitions, installation, slice_of
from grove_sandbox.registry import run_actors
from providers.kubernetes.client import KubernetesClient
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from providers.watching import WatchingCluster
from resources import settings
from resources.base import applyset, kinds
from resources.base.kinds import RESOURCE_SLICE, SERVICE_ACCOUNT
from resources.install.modes import Use
from sandbox.tests.actors.test_on_a_real_server import until
from tests.builders import applying
from tests.controlplane.accounts import user_of
from tests.controlplane.audit import AuditLog
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import started
from tests.stories.edit_series import ALL_SERIES
from tests.stories.edits import Edit, EditSeries, User
from tests.stories.forecasts import stable_name
from tests.stories.test_control_plane import SETUP, connection, define
from tests.takeover import epochs
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

HOPELESS = 20.0
"""Seconds that a sync may last which is to time out."""
CODES = {Ending.DONE: Exit.DONE, Ending.STUCK: Exit.STUCK, Ending.TIMED_OUT: Exit.STUCK, Ending.DENIED: Exit.DENIED}
"""How a sync ends -> the exit code of the preview before it."""
DEVICE_CLASS = "gpu.example.com"
DRIVER = DriverOptions(parts=PARTS - {"daemonSets"}, imex_start=0.5)


@dataclass(frozen=True)
class AheadClock(SystemClock):
    """The clock of a machine whose wall clock is ahead."""

    by: timedelta

    def now(self) -> datetime:
        """What that wall clock shows."""
        return super().now() + self.by


class Write(NamedTuple):
    """What is compared: a request, with the name of a pod without its suffix, which depends on uids."""

    verb: str
    kind: str
    name: str
    subresource: str = ""


@dataclass
class Passes(NoProgress):
    """What each pass of a session has written."""

    passes: list[list[Operation]] = field(default_factory=list)

    def planned(self, plans: Sequence[Plan], operations: int) -> None:
        """Another pass begins."""
        self.passes.append([])

    def applied(self, result: Result) -> None:
        """Keep what was done."""
        if result.outcome is Outcome.DONE and result.operation.verb is not Verb.STATUS:
            self.passes[-1].append(result.operation)


def writes(operations: Iterable[Operation]) -> Counter[Write]:
    """The requests of operations, statuses apart: how often they are written depends on when pods become ready."""
    requests: Counter[Write] = Counter()
    for each in operations:
        name = stable_name(each)
        match each.verb:
            case Verb.STATUS:
                continue
            case Verb.REPLACE:
                requests.update((Write("delete", each.id.kind, name), Write("create", each.id.kind, name)))
            case Verb.SCALE:
                requests[Write("patch", each.id.kind, name, "scale")] += 1
            case Verb.RELEASE:
                requests[Write("patch", each.id.kind, name)] += 1
            case _:
                requests[Write(str(each.verb), each.id.kind, name)] += 1
    return requests


class AuditedWrites:
    """The successful writes of an account, from the audit log, by namespace."""

    def __init__(self, plane: ControlPlane, user: str) -> None:
        self._log, self._user = AuditLog(plane), user
        self._found: dict[str, Counter[Write]] = {}
        written = (*scope_of(SETUP).roots, *scope_of(SETUP).children, *applyset.PARENTS)
        self._kinds = {(kind.group, kind.plural): kind.name for kind in written}

    def take(self, namespace: str) -> Counter[Write]:
        """What was written in a namespace since it was taken last."""
        for entry in self._log.entries():
            self._note(entry)
        return self._found.pop(namespace, Counter())

    def _note(self, entry: dict[str, Any]) -> None:
        reference = entry["objectRef"]
        if entry["verb"] in ("get", "list", "watch") or "dryRun=All" in entry["requestURI"]:
            return
        kind = self._kinds.get((reference.get("apiGroup", ""), reference["resource"]))
        code = entry.get("responseStatus", {}).get("code", 0)
        if kind is None or code >= 300 or reference.get("subresource") == "status" or self._user not in entry["user"]["username"]:
            return
        name = reference.get("name", "")
        stable = name.rpartition("-")[0] if kind == "Pod" else name
        write = Write(str(entry["verb"]), kind, stable, reference.get("subresource", ""))
        self._found.setdefault(reference.get("namespace", ""), Counter())[write] += 1


@dataclass
class Player:
    """Makes the edits of series, forecasts, syncs and compares."""

    plane: ControlPlane
    admin: KubernetesClient
    client: KubernetesClient
    reader: KubernetesClient
    operator: KubernetesClient
    audit: AuditedWrites
    differences: list[str] = field(default_factory=list)

    async def play_all(self, every: Iterable[EditSeries]) -> None:
        """Several series at the same time."""
        async with anyio.create_task_group() as tasks:
            for series in every:
                tasks.start_soon(self.play, series)

    async def play(self, series: EditSeries) -> None:
        """All edits of a series."""
        user = User(self.admin, series.namespace, self.operator)
        await self.admin.create(kinds.NAMESPACE, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": series.namespace}})
        await until(self.admin, SERVICE_ACCOUNT, lambda there: "default" in there, series.namespace)
        await series.before(user)
        await user.apply(*series.workloads)
        assert (await self.sync(series, applying([])))[0].ending is Ending.DONE, series.namespace
        for edit in series.edits:
            await self.compare(series, user, edit)
            if edit.goes_wrong:
                await edit.undo(user)
                await self.sync(series, applying([]))

    async def compare(self, series: EditSeries, user: User, edit: Edit) -> None:
        """Make the edit, and note how what was forecast differs from what is written."""
        await edit.do(user)
        intent = await self.intent(series, user, edit)
        self.audit.take(series.namespace)
        code, forecast = await self.forecast(series, intent, self.reader if edit.seen_by_reader else self.client)
        patience = HOPELESS if edit.hopeless or edit.ending is Ending.TIMED_OUT else PATIENCE
        report, passes = await self.sync(series, intent, patience, self.reader if edit.done_by_reader else self.client)
        done = self.audit.take(series.namespace)
        about = f"{series.namespace}: {edit.name}"
        self.differences.extend(f"{about}: {text}" for text in differences(edit, code, forecast, report, passes.passes, done))

    async def intent(self, series: EditSeries, user: User, edit: Edit) -> Intent:
        """What the command of an edit asks for."""
        bodies = tuple(user.located(body) for body in edit.manifests)
        if not edit.applyset:
            return applying(bodies, await removals(user, edit))
        wiring, provider, selection = self._wired(series, self.client)
        members, removing = members_and_removals(wiring, edit.applyset, Roots(bodies), allow_empty=True)
        scope = await removing.find(wiring, provider, selection)
        return applying(members.bodies, scope.removals.roots, scope.record)

    async def forecast(self, series: EditSeries, intent: Intent, client: KubernetesClient) -> tuple[Exit, Forecast | None]:
        """What `engine diff` says: its exit code and forecast."""
        wiring, provider, selection = self._wired(series, client)
        engine = engine_of(wiring, provider, selection, tries_new=True)
        current, first = await first_pass(engine, intent)
        seen, _ = await shown_and_facts(wiring, engine, first)
        return exit_code(seen.report, detailed=False), seen.forecast

    async def sync(
        self, series: EditSeries, intent: Intent, patience: float = PATIENCE, client: KubernetesClient | None = None
    ) -> tuple[SyncReport[object], Passes]:
        """What `engine sync` does, without a lease: the series are played at the same time."""
        wiring, provider, selection = self._wired(series, client or self.client)
        passes = Passes()
        report = await session.sync(with_events(engine_of(wiring, provider, selection)), None, intent, patience=patience, progress=passes)
        return report, passes

    def _wired(self, series: EditSeries, client: KubernetesClient) -> tuple[Wiring, WatchingCluster, Selection]:
        clock = AheadClock(series.ahead)
        configuration = replace(SETUP, take_over=series.take_over)
        wiring = Wiring(Options(namespace=series.namespace), settings.Settings(), configuration, clock)
        return wiring, WatchingCluster(client, clock), Selection((series.namespace,), ROOTS)


async def removals(user: User, edit: Edit) -> dict[ResourceId, Removal]:
    """What a command removes itself, as it is now."""
    bodies = {kind.id(user.namespace, name): await user.client.get(kind, user.namespace, name) for kind, name in edit.removes}
    return {id: Removal(body["metadata"]["uid"], "it has no manifest any more", bool(edit.manifests)) for id, body in bodies.items()}


def differences(
    edit: Edit,
    code: Exit,
    forecast: Forecast | None,
    report: SyncReport[object],
    passes: Iterable[Iterable[Operation]],
    done: Counter[Write],
) -> Iterator[str]:
    """How what was written differs from what was forecast, and the end of the sync from that of the preview.

    How often and when a PodGang is patched depends on whether a pass sees that a pod is terminating: what is compared is that none is that
    was not to be.
    """
    if report.ending is not edit.ending:
        yield f"ended {report.ending}, not {edit.ending}: {report.error or report.failures[:1]}"
    expected = writes(forecast.operations()) if forecast is not None else Counter[Write]()
    patched_gangs = {write for write in expected if write[:2] == ("patch", kinds.PODGANG.name)}
    expected, done = without(expected, patched_gangs), without(done, patched_gangs)
    if edit.unknown:
        if more := done - expected:
            yield f"written and not forecast: {listed(more)}"
        return
    if expected != done:
        yield f"forecast only {listed(expected - done)}; written only {listed(done - expected)}"
    forecast_passes = [[op for of_root in each.operations.values() for op in of_root] for each in forecast.passes] if forecast else []
    now, begun = first_writes(forecast_passes, patched_gangs), first_writes(passes, patched_gangs)
    if now != begun:
        yield f"first pass: forecast only {listed(now - begun)}; written only {listed(begun - now)}"
    if code is not CODES.get(report.ending):
        yield f"diff ends with {code}, sync {report.ending}"


def first_writes(passes: Iterable[Iterable[Operation]], ignored: Set[Write]) -> Counter[Write]:
    """What the first pass that writes more than that and statuses writes besides."""
    return next(filter(None, (without(writes(each), ignored) for each in passes)), Counter[Write]())


def without(requests: Counter[Write], ignored: Set[Write]) -> Counter[Write]:
    """The other requests."""
    return Counter({write: number for write, number in requests.items() if write not in ignored})


def listed(requests: Counter[Write]) -> str:
    """The requests, each with how often it is."""
    return ", ".join(f"{count} {' '.join(filter(None, write))}" for write, count in sorted(requests.items())) or "nothing"


async def with_devices(admin: KubernetesClient) -> None:
    """Two devices on each node, as pods claim them, and the classes of the driver's devices."""
    for kind, of_driver in installation():
        if kind == kinds.DEVICE_CLASS:
            await admin.create(kind, "", of_driver)
    selector = {"cel": {"expression": f'device.driver == "{DEVICE_CLASS}"'}}
    metadata = {"name": DEVICE_CLASS}
    body = {"apiVersion": kinds.DEVICE_CLASS.api_version, "kind": "DeviceClass", "metadata": metadata, "spec": {"selectors": [selector]}}
    await admin.patch(kinds.DEVICE_CLASS, "", DEVICE_CLASS, body, how="apply", force=True)
    for node in (await admin.list(kinds.NODE)).items:
        channels = slice_of(node["metadata"]["name"])
        await admin.patch(RESOURCE_SLICE, "", channels["metadata"]["name"], channels, how="apply", force=True)
        name = f"{node['metadata']['name']}-devices"
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DEVICE_CLASS, "nodeName": node["metadata"]["name"], "pool": pool, "devices": [{"name": "a"}, {"name": "b"}]}
        slice = {"apiVersion": RESOURCE_SLICE.api_version, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}
        await admin.patch(RESOURCE_SLICE, "", name, slice, how="apply", force=True)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of its own: quotas, policies and the driver's kinds would be in the way of others."""
    with started(tmp_path_factory, ["kcm", "scheduler", "kwok"], nodes=10, audit=True) as made:
        yield made


@asynccontextmanager
async def player_of(plane: ControlPlane) -> AsyncIterator[Player]:
    """A player with an account for `sync`, one for readers, and one of Grove's operator. Fails at the end if anything differs."""
    user, reader = user_of(plane, SETUP, Use.SYNC), user_of(plane, SETUP, Use.READ)
    async with (
        connection(plane, "admin") as admin,
        connection(plane, user) as client,
        connection(plane, reader) as reading,
        connected(Source(str(plane.kubeconfig())), SystemClock(), field_manager="grove-operator") as operator,
    ):
        player = Player(plane, admin, client, reading, operator, AuditedWrites(plane, user))
        yield player
    assert not player.differences, "\n".join(player.differences)


async def test_what_diff_says_of_each_edit_is_what_the_audit_log_has_of_its_sync(plane: ControlPlane) -> None:
    async with player_of(plane) as player, connection(plane, "admin") as driver:
        await define(player.admin, "edits", *map(dict, definitions()), epochs.definition())
        await with_devices(player.admin)
        async with anyio.create_task_group() as actors:
            actors.start_soon(run_actors, driver, SystemClock(), ("driver",), ActorOptions(driver=DRIVER))
            await player.play_all(ALL_SERIES)
            actors.cancel_scope.cancel()


def test_there_are_sixty_edits_of_which_ten_go_wrong() -> None:
    edits = [edit for series in ALL_SERIES for edit in series.edits]

    assert len(edits) >= 60
    assert sum(edit.goes_wrong for edit in edits) >= 10
