"""What a preview tells of a real control plane before anything is refused: quotas, policies of others, missing namespaces."""

from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.enforcement import SERVICE, Policy, forbid_privileged_pods, limit_pods
from tests.enginectl.calling import finished
from tests.enginectl.test_deployment_room import graph
from tests.stories.test_control_plane import connection, define

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

NAMESPACE = "previewed"
PLAIN = {"containers": [{"name": "main", "image": "a"}]}
NO_SERVICES = Policy("no-services", NAMESPACE, kinds.SERVICE, "false", "no Services here", SERVICE)


async def diff(plane: ControlPlane, file: Path, *options: str) -> dict[str, str]:
    """What `engine diff` shows as blocked: object -> why."""
    words: tuple[str | Path, ...] = ("diff", "-f", file, "-o", "json", "--kubeconfig", plane.kubeconfig("admin"), *options)
    answer = await anyio.to_thread.run_sync(partial(finished, *words))
    waits = [wait for root in answer.document["roots"] for wait in root["blocked"]]
    return {f"{wait['object']['kind']}/{wait['object']['name']}": wait["why"] for wait in waits}


async def test_a_preview_tells_what_a_real_server_would_refuse_and_stores_nothing(control_plane: ControlPlane, tmp_path: Path) -> None:
    file = tmp_path / "sets.yaml"
    sets = [podcliqueset("web", clique("worker", 3), namespace=NAMESPACE), podcliqueset("lost", clique("worker"), namespace="nowhere")]
    file.write_text(yaml.safe_dump_all(sets))

    async with connection(control_plane, "admin") as admin:
        await define(admin, NAMESPACE)
        await limit_pods(admin, NAMESPACE, "few", 2)
        await NO_SERVICES.enforce(admin)

        blocked = await diff(control_plane, file)
        assert blocked.keys() == {"Namespace/nowhere", "ResourceQuota/few"}
        assert blocked["ResourceQuota/few"].startswith("it allows 2 more pods, and 3 are needed")

        blocked = await diff(control_plane, file, "--server-dry-run")
        assert "no Services here" in blocked["Service/web-0"]
        for kind in (kinds.PODCLIQUESET, kinds.PODCLIQUE, kinds.SERVICE, kinds.POD, kinds.SECRET):
            assert not (await admin.list(kind, NAMESPACE)).items


async def ends(plane: ControlPlane, file: Path, namespace: str) -> tuple[tuple[int, int], str]:
    """The exit codes of a diff of this manifest and of a sync that does not wait for long, and what the diff shows."""
    rest: tuple[str | Path, ...] = ("-f", file, "-n", namespace, "--kubeconfig", plane.kubeconfig("admin"))
    shown = await anyio.to_thread.run_sync(partial(finished, "diff", *rest))
    synced = await anyio.to_thread.run_sync(partial(finished, "sync", "--yes", "--timeout", "20s", *rest))
    return (shown.code, synced.code), shown.out


async def test_a_quota_has_to_allow_the_pod_that_an_update_of_a_deployment_begins_with(control_plane: ControlPlane, tmp_path: Path) -> None:
    def written(version: int) -> Path:
        file = graph(tmp_path, 2, version, gpus=0)
        file.write_text(file.read_text().replace("namespace: default", "namespace: exchanging"))
        return file

    async with connection(control_plane, "admin") as admin:
        await define(admin, "exchanging")
        words = ("-f", written(1), "-n", "exchanging", "--kubeconfig", control_plane.kubeconfig("admin"))
        assert (await anyio.to_thread.run_sync(partial(finished, "sync", "--yes", *words))).code == Exit.DONE
        await limit_pods(admin, "exchanging", "few", 2, used=2)

        codes, shown = await ends(control_plane, written(2), "exchanging")

        assert codes == (Exit.STUCK, Exit.STUCK)
        assert "ResourceQuota/few  it allows 0 more pods, and 1 is needed: the API server will refuse the rest" in shown


async def test_a_quota_of_some_pods_is_compared_with_these(control_plane: ControlPlane, tmp_path: Path) -> None:
    file, hard = tmp_path / "set.yaml", {"pods": "2"}
    file.write_text(yaml.safe_dump(podcliqueset("web", clique("worker", 3), namespace="scoped")))

    async with connection(control_plane, "admin") as admin:
        await define(admin, "scoped")
        await admin.create(kinds.RESOURCE_QUOTA, "scoped", {"metadata": {"name": "few"}, "spec": {"hard": hard, "scopes": ["BestEffort"]}})
        await admin.patch(kinds.RESOURCE_QUOTA, "scoped", "few", {"status": {"hard": hard, "used": {"pods": "0"}}}, subresource="status")

        codes, shown = await ends(control_plane, file, "scoped")

        assert codes == (Exit.STUCK, Exit.STUCK)
        assert "ResourceQuota/few  it allows 2 more pods, and 3 are needed" in shown


@pytest.mark.parametrize(
    ("range", "shown"),
    [
        ({"default": {"cpu": "1"}}, "ResourceQuota/few  it allows 2 more requests.cpu, and 3 are needed"),
        ({"default": {"memory": "1Gi"}}, "failed quota: few: must specify requests.cpu"),
        ({"default": {"cpu": "500m"}}, ""),
    ],
    ids=["too much", "of something else", "fits"],
)
async def test_a_quota_is_compared_with_what_limit_ranges_write_into_pods(
    control_plane: ControlPlane, tmp_path: Path, range: dict[str, Any], shown: str
) -> None:
    file, namespace = tmp_path / "set.yaml", f"ranged-{len(shown)}"
    file.write_text(yaml.safe_dump(podcliqueset("web", clique("worker", 3, pod_spec=PLAIN), namespace=namespace)))

    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        limits = {"metadata": {"name": "usual"}, "spec": {"limits": [{"type": "Container", **range}]}}
        await admin.create(kinds.LIMIT_RANGE, namespace, limits)
        await limit_pods(admin, namespace, "few", 9, cpu=2)

        codes, out = await ends(control_plane, file, namespace)

        assert shown in out
        assert ("! blocked" in out) is bool(shown), out
        assert (codes[1] == Exit.STUCK) is bool(shown), codes
        assert (codes[0] == Exit.STUCK) is bool(shown), codes


async def test_pod_security_of_the_namespace_is_known_before_a_new_set_is_created(control_plane: ControlPlane, tmp_path: Path) -> None:
    spec = {"containers": [{"name": "main", "image": "a", "securityContext": {"privileged": True}}]}
    file = tmp_path / "set.yaml"
    file.write_text(yaml.safe_dump(podcliqueset("web", clique("worker", 3, pod_spec=spec), namespace="forbidding")))

    async with connection(control_plane, "admin") as admin:
        await define(admin, "forbidding")
        await forbid_privileged_pods(admin, "forbidding")

        for words in (("diff",), ("sync", "--dry-run"), ("sync", "--timeout", "60s")):
            answer = await anyio.to_thread.run_sync(
                partial(finished, *words, "-f", file, "--kubeconfig", control_plane.kubeconfig("admin"))
            )
            assert (answer.code, 'violates PodSecurity "baseline:latest"' in answer.out) == (Exit.STUCK, True), answer.out + answer.err
        assert not (await admin.list(kinds.POD, "forbidding")).items
