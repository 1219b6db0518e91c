"""A fleet that gets another scheduler by its default profile: a real kube-scheduler and a real KAI place the pods of one gang in turn."""

from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from resources.base import kinds
from resources.base.labels import KAI_QUEUE
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.stories.gang_cluster import NAMESPACE, commands, pods_of, prepare, written
from tests.stories.test_control_plane import connection

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


def default(profile: str) -> str:
    """A configuration with both schedulers, one of them the default."""
    profiles = "[{name: default-scheduler}, {name: kai-scheduler}]"
    return (
        "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"
        f"scheduler: {{defaultProfileName: {profile}, profiles: {profiles}}}\n"
    )


def gang(image: str) -> dict[str, Any]:
    """A set of one gang: a leader and two workers."""
    spec = {"containers": [{"name": "main", "image": image}]}
    body = podcliqueset("moved", clique("l", pod_spec=spec), clique("w", 2, pod_spec=spec, minAvailable=2), namespace=NAMESPACE)
    body["metadata"]["labels"] = {KAI_QUEUE: "dynamo"}
    return body


async def test_a_gang_moves_to_kai_and_back_one_pod_at_a_time_as_forecast(scheduling_plane: ControlPlane, tmp_path: Path) -> None:
    by_kube, by_kai = (commands(scheduling_plane, tmp_path, default(f"{name}-scheduler")) for name in ("default", "kai"))
    async with connection(scheduling_plane, "admin") as admin:

        async def schedulers() -> set[str]:
            return {pod["spec"]["schedulerName"] for pod in (await pods_of(admin, "moved")).values() if pod["spec"].get("nodeName")}

        await prepare(admin)
        assert (await by_kube("sync", "-f", written(tmp_path, gang("x:1")), "--yes", "--timeout", "60s")).code == Exit.DONE

        assert (await by_kai("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        shown = await by_kai("diff")
        note = f"the pods of {NAMESPACE}/moved-0 were placed by default-scheduler and stay; kai-scheduler places those that replace them"
        assert shown.out.startswith("No changes.") and (shown.out + shown.err).count(note) == 1, shown
        assert " settled " in (await by_kai("status")).out and await schedulers() == {"default-scheduler"}

        file = written(tmp_path, gang("x:2"))
        assert "; settled, " in (await by_kai("diff", "-f", file)).out
        assert (await by_kai("sync", "-f", file, "--yes", "--timeout", "120s")).code == Exit.DONE
        (group,) = (await admin.list(kinds.KAI_POD_GROUP, NAMESPACE)).items
        assert await schedulers() == {"kai-scheduler"} and group["spec"]["minMember"] == 3
        assert {each["name"]: each["minMember"] for each in group["spec"]["subGroups"]} == {"moved-0-l": 1, "moved-0-w": 2}

        # What KAI has placed keeps what KAI knows it by.
        marks = {name: pod["metadata"]["annotations"] for name, pod in (await pods_of(admin, "moved")).items()}
        assert (await by_kube("sync", "--yes", "--timeout", "60s")).code == Exit.DONE
        assert {name: pod["metadata"]["annotations"] for name, pod in (await pods_of(admin, "moved")).items()} == marks
        assert (await by_kube("sync", "-f", written(tmp_path, gang("x:3")), "--yes", "--timeout", "120s")).code == Exit.DONE
        assert await schedulers() == {"default-scheduler"} and not (await admin.list(kinds.KAI_POD_GROUP, NAMESPACE)).items

        assert (await by_kube("delete", "moved", "--yes", "--timeout", "60s")).code == Exit.DONE
