"""Accounts and finalizers of others on a real API server: no token is made for such an account, and what a finalizer keeps is named."""

from functools import partial

import anyio
import pytest

from engine.reason import Reason
from engine.runtime.sync_report import Ending
from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.enginectl.calling import CommandResult, finished
from tests.stories.test_control_plane import connection, define, synced

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

IN_ORDER = "CliqueStartupTypeInOrder"
HOLD = "example.com/hold"


async def engine(plane: ControlPlane, *words: str) -> CommandResult:
    """A command of ours, in a process of its own."""
    return await anyio.to_thread.run_sync(partial(finished, *words, "--kubeconfig", plane.kubeconfig("admin")))


async def test_no_token_is_made_for_an_account_of_others_until_the_set_has_its_own(control_plane: ControlPlane) -> None:
    namespace = "accounts"
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        await admin.create(kinds.SERVICE_ACCOUNT, namespace, {"metadata": {"name": "web"}})
        manifest = podcliqueset("web", clique("leader"), clique("worker"), cliqueStartupType=IN_ORDER, namespace=namespace)
        await admin.create(kinds.PODCLIQUESET, namespace, manifest)

        report = await synced(control_plane, namespace)

        assert report.ending is Ending.STUCK
        assert (await admin.list(kinds.SECRET, namespace)).items == []
        assert (await admin.list(kinds.ROLE_BINDING, namespace)).items == []
        (event,) = [each for each in (await admin.list(kinds.EVENT, namespace)).items if each["reason"] == "ServiceAccountConflict"]
        shown, status = await engine(control_plane, "diff", "-n", namespace), await engine(control_plane, "status", "-n", namespace)
        assert (shown.code, "ServiceAccount web is not controlled by PodCliqueSet web" in shown.out) == (Exit.STUCK, True), shown
        assert "create the set under another name" in event["message"] and "ServiceAccount web" in status.out

        await admin.delete(kinds.SERVICE_ACCOUNT, namespace, "web")
        assert (await synced(control_plane, namespace)).ending is Ending.DONE

        account, secret = await admin.get(kinds.SERVICE_ACCOUNT, namespace, "web"), await admin.get(kinds.SECRET, namespace, "web-ic-sat")
        assert secret["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]


async def test_what_is_scaled_in_and_kept_by_a_finalizer_of_others_is_named_with_it(control_plane: ControlPlane) -> None:
    namespace = "kept"
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        await admin.create(kinds.PODCLIQUESET, namespace, podcliqueset("web", clique("front"), replicas=2, namespace=namespace))
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        await admin.patch(kinds.SERVICE, namespace, "web-1", {"metadata": {"finalizers": [HOLD]}})
        await admin.patch(kinds.PODCLIQUESET, namespace, "web", {"spec": {"replicas": 1}}, subresource="scale")
        await engine(control_plane, "sync", "-n", namespace, "--no-wait")
        await engine(control_plane, "sync", "-n", namespace, "--no-wait")

        for words in (("diff",), ("status",), ("why", "pcs/web")):
            shown = await engine(control_plane, *words, "-n", namespace)
            assert f"finalizer {HOLD} keeps it" in shown.out, shown
        document = (await engine(control_plane, "diff", "-n", namespace, "-o", "json")).document
        assert {each["reason"] for root in document["roots"] for each in root["blocked"]} == {Reason.KEPT}

        await admin.patch(kinds.SERVICE, namespace, "web-1", {"metadata": {"finalizers": None}})
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
