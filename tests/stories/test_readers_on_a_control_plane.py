"""People who only read, on a real control plane: their role is enough for every command that writes nothing, and none of them writes."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from engine.runtime.sync_report import Ending
from enginectl.base.exit_codes import Exit
from enginectl.wiring.configuration import configuration_of
from resources.base import kinds
from resources.install.modes import Use
from resources.settings import Settings
from tests.builders import clique, podcliqueset
from tests.controlplane.accounts import user_of
from tests.controlplane.audit import AuditLog
from tests.controlplane.cluster import SYSTEM, ControlPlane
from tests.enginectl.calling import finished
from tests.stories.test_control_plane import connection, define, synced

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "readers"
COMMANDS = (
    ("diff", "--detailed-exitcode"),
    ("status", "--exit-code"),
    ("top",),
    ("why", "podclique/web-0-worker"),
    ("snapshot", "--out", "snapshot.yaml"),
    ("preflight",),
)


def requests_of(plane: ControlPlane, user: str) -> list[dict[str, Any]]:
    """The audited requests of an account."""
    return [entry for entry in AuditLog(plane).entries() if entry["user"]["username"] == f"system:serviceaccount:{SYSTEM}:{user}"]


async def test_every_command_that_writes_nothing_works_with_the_role_of_readers(control_plane: ControlPlane, tmp_path: Path) -> None:
    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, podcliqueset("web", clique("worker", 2), namespace=NAMESPACE))
        assert (await synced(control_plane, NAMESPACE)).ending is Ending.DONE
        user = user_of(control_plane, configuration_of(Settings()), Use.READ)
        earlier = len(requests_of(control_plane, user))  # Other tests use the account as well.

        options = ("--kubeconfig", control_plane.kubeconfig(user), "-n", NAMESPACE)
        for command in COMMANDS:
            words = [str(tmp_path / word) if word.endswith(".yaml") else word for word in command]
            result = await anyio.to_thread.run_sync(partial(finished, *words, *options))
            assert (command[0], result.code) == (command[0], Exit.DONE), result.out + result.err

        await admin.delete(kinds.PODCLIQUESET, NAMESPACE, "web", propagation="Background")
        await synced(control_plane, NAMESPACE)

    requests = requests_of(control_plane, user)[earlier:]
    verbs = {(entry["verb"], entry["objectRef"]["resource"]) for entry in requests if entry["verb"] not in ("get", "list")}
    refused = {(entry["verb"], entry["objectRef"]["resource"]) for entry in requests if entry["responseStatus"]["code"] == 403}
    assert verbs == {("create", "selfsubjectaccessreviews")}
    assert refused == {("list", "secrets")}
