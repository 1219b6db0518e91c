"""New templates on a real control plane: PodSecurity, policies and the server's own validation delete no running pod, and updates go on."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import pytest

from engine.errors import Invalid
from engine.runtime.sync_report import Ending
from enginectl.base.exit_codes import Exit
from enginectl.wiring.configuration import configuration_of
from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from resources.install.modes import Use
from resources.settings import Settings
from tests.builders import clique, podcliqueset
from tests.controlplane.accounts import user_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.enforcement import POD, Policy, forbid_privileged_pods
from tests.enginectl.calling import finished
from tests.stories.test_control_plane import Audit, connection, define, synced

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

OLD, NEW = "example/worker:1", "example/worker:2"
CONDITION = "PodTemplateRefused"


def web(namespace: str, image: str = OLD, **container: Any) -> dict[str, Any]:
    """A set of three pods."""
    spec = {"containers": [{"name": "main", "image": image, **container}]}
    return podcliqueset("web", clique("worker", 3, pod_spec=spec), namespace=namespace)


def template(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What an edit by `kubectl` changes."""
    return {"spec": {"template": manifest["spec"]["template"]}}


async def up(plane: ControlPlane, admin: KubernetesClient, namespace: str) -> frozenset[str]:
    """Brings the old version up; returns the uids of its pods."""
    await admin.create(kinds.PODCLIQUESET, namespace, web(namespace))
    assert (await synced(plane, namespace)).ending is Ending.DONE
    return await uids(admin, namespace)


async def uids(admin: KubernetesClient, namespace: str) -> frozenset[str]:
    """The uids of the pods that are not being deleted."""
    pods = (await admin.list(kinds.POD, namespace)).items
    return frozenset(pod["metadata"]["uid"] for pod in pods if not pod["metadata"].get("deletionTimestamp"))


async def images(admin: KubernetesClient, namespace: str) -> set[str]:
    """The images of all pods."""
    return {pod["spec"]["containers"][0]["image"] for pod in (await admin.list(kinds.POD, namespace)).items}


async def condition(admin: KubernetesClient, namespace: str) -> Mapping[str, Any]:
    """The condition of the set; empty if it has none."""
    conditions = (await admin.get(kinds.PODCLIQUESET, namespace, "web"))["status"].get("conditions") or ()
    return next((each for each in conditions if each["type"] == CONDITION), {})


async def engine(plane: ControlPlane, user: str, *words: str) -> Any:
    """The command line, as this user."""
    return await anyio.to_thread.run_sync(partial(finished, *words, "--kubeconfig", plane.kubeconfig(user)))


async def refused(plane: ControlPlane, admin: KubernetesClient, namespace: str, before: frozenset[str], words: str) -> None:
    """The update is held back with these words of the server, wherever they are looked for, and no pod is deleted."""
    report = await synced(plane, namespace)

    assert report.ending is Ending.STUCK
    assert await uids(admin, namespace) == before
    assert words in (await condition(admin, namespace))["message"]
    events = [event for event in (await admin.list(kinds.EVENT, namespace)).items if event["reason"] == CONDITION]
    assert [(event["type"], words in event["message"]) for event in events] == [("Warning", True)]
    shown = await engine(plane, "admin", "diff", "-n", namespace)
    assert (shown.code, words in shown.out) == (Exit.STUCK, True), shown.out + shown.err
    assert words in (await engine(plane, "admin", "status", "-n", namespace)).out


async def test_pod_security_deletes_no_pod_and_the_next_template_goes_on(control_plane: ControlPlane) -> None:
    namespace = "secured"
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        before = await up(control_plane, admin, namespace)
        await forbid_privileged_pods(admin, namespace)
        await admin.patch(kinds.PODCLIQUESET, namespace, "web", template(web(namespace, NEW, securityContext={"privileged": True})))
        await refused(control_plane, admin, namespace, before, 'violates PodSecurity "baseline:latest": privileged')

        await admin.patch(kinds.PODCLIQUESET, namespace, "web", template(web(namespace, NEW)))
        assert (await synced(control_plane, namespace)).ending is Ending.DONE

        assert await images(admin, namespace) == {NEW}
        assert await condition(admin, namespace) == {}


async def test_a_policy_deletes_no_pod_and_the_update_goes_on_when_it_is_gone(control_plane: ControlPlane) -> None:
    namespace = "policed"
    refused_pod = {**POD, "spec": web(namespace, NEW)["spec"]["template"]["cliques"][0]["spec"]["podSpec"]}
    no_new_images = Policy(
        "no-new-images",
        namespace,
        kinds.POD,
        f"object.spec.containers.all(c, c.image != '{NEW}')",
        "not this image",
        refused_pod,
    )
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        before = await up(control_plane, admin, namespace)
        await no_new_images.enforce(admin)
        await admin.patch(kinds.PODCLIQUESET, namespace, "web", template(web(namespace, NEW)))
        await refused(control_plane, admin, namespace, before, "not this image")

        await no_new_images.lift(admin)
        assert (await synced(control_plane, namespace)).ending is Ending.DONE

        assert await images(admin, namespace) == {NEW}
        assert await condition(admin, namespace) == {}


async def test_a_typo_deletes_no_pod_and_its_correction_goes_on(control_plane: ControlPlane) -> None:
    namespace = "mistyped"
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        before = await up(control_plane, admin, namespace)
        typo = template(web(namespace))
        (container,) = typo["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"]
        container["imgae"] = container.pop("image")
        await admin.patch(kinds.PODCLIQUESET, namespace, "web", typo)
        await refused(control_plane, admin, namespace, before, "spec.containers[0].image: Required value")

        await admin.patch(kinds.PODCLIQUESET, namespace, "web", template(web(namespace, NEW)))
        assert (await synced(control_plane, namespace)).ending is Ending.DONE

        assert await images(admin, namespace) == {NEW}


async def test_what_no_server_can_read_is_refused_with_400_and_deletes_no_pod(control_plane: ControlPlane) -> None:
    namespace = "unreadable"
    words = "cannot be handled as a Pod"
    probe: dict[str, Any] = {"livenessProbe": {"httpGet": {"port": 99_999_999_999}}}
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        before = await up(control_plane, admin, namespace)
        body = {**POD, "metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": NEW, **probe}]}}
        for client in (admin.trying(), admin):
            with pytest.raises(Invalid, match=words) as caught:
                await client.create(kinds.POD, namespace, body)
            assert caught.value.code == 400, "A dry run is answered as the call itself."

        await admin.patch(kinds.PODCLIQUESET, namespace, "web", template(web(namespace, **probe)))
        await refused(control_plane, admin, namespace, before, words)


async def test_one_more_call_is_made_for_each_template_and_none_for_what_is_settled(control_plane: ControlPlane) -> None:
    namespace = "tried"
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        audit = Audit(control_plane)
        await up(control_plane, admin, namespace)
        assert audit.read().trials == 0
        await admin.patch(kinds.PODCLIQUESET, namespace, "web", template(web(namespace, NEW)))
        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        # One by the forecast that every `sync` of these tests is compared with, one by the session.
        assert (await images(admin, namespace), audit.read().trials) == ({NEW}, 2)

        assert (await synced(control_plane, namespace)).ending is Ending.DONE
        assert audit.read().trials == 0


async def test_a_reader_sees_the_condition_and_is_told_once_that_the_server_was_not_asked(control_plane: ControlPlane) -> None:
    namespace = "read-only"
    async with connection(control_plane, "admin") as admin:
        await define(admin, namespace)
        before = await up(control_plane, admin, namespace)
        await forbid_privileged_pods(admin, namespace)
        await admin.patch(kinds.PODCLIQUESET, namespace, "web", template(web(namespace, NEW, securityContext={"privileged": True})))
        await refused(control_plane, admin, namespace, before, "violates PodSecurity")

        user = user_of(control_plane, configuration_of(Settings()), Use.READ)
        shown = await engine(control_plane, user, "diff", "-n", namespace)

        assert (shown.code, "violates PodSecurity" in shown.out) == (Exit.STUCK, True), shown.out + shown.err
        assert shown.err.count("you may not create pods") == 1
