"""N24, N25 in time, with the driver: running pods stay in their domains whatever becomes of the annotations, also without a webhook."""

import pytest

from engine.runtime.sync_report import Ending
from providers.fabrics.nvidia.names import AUTO, NAMED
from resources.base import kinds
from resources.base.kinds import POD, PODCLIQUE
from tests.mnnvl.sets import auto, gpu, named
from tests.stories.domains import violations
from tests.stories.fabric import DomainRecorder, domains, event_messages, pass_time, rack, templates_of, uids
from tests.stories.graphs import graph, service
from tests.stories.pods import is_ready
from tests.stories.stage import Stage

pytestmark = pytest.mark.anyio


async def annotate(cluster: Stage, mode: str | None) -> None:
    """`kubectl annotate pcs demo`, where no webhook guards."""
    await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "demo", {"metadata": {"annotations": {AUTO: mode}}})


def pod_uids(cluster: Stage) -> dict[str, str]:
    """Pod -> its uid."""
    return {name: body["metadata"]["uid"] for name, body in cluster.there(POD).items()}


async def test_N24_a_removed_annotation_and_an_image_leave_every_pod_in_its_domain() -> None:
    async with rack() as cluster, cluster.running() as ours:
        await cluster.apply(auto(2, gpu(replicas=2)))
        await cluster.settle()
        before, recorder = uids(cluster), DomainRecorder(cluster, ours)
        await annotate(cluster, None)
        await cluster.delete(POD, next(iter(cluster.there(POD))))
        await pass_time(cluster, 30)
        await cluster.scale(kinds.PODCLIQUESET, "demo", 3)
        await pass_time(cluster, 40)

        assert recorder.fouls == [] and await violations(cluster.kubectl) == []
        assert before.items() <= uids(cluster).items() and sorted(domains(cluster)) == ["demo-0", "demo-1", "demo-2"]
        assert all(is_ready(pod) and len(templates_of(pod)) == 1 for pod in cluster.there(POD).values())


async def test_N24_a_process_that_starts_later_and_a_podclique_deleted_by_hand_change_nothing_about_it() -> None:
    async with rack() as cluster:
        await cluster.apply(auto(1, gpu("a"), gpu("b")))
        async with cluster.running():
            await cluster.settle()
        await annotate(cluster, "disabled")
        await cluster.delete(PODCLIQUE, "demo-0-a")
        async with cluster.running():
            await pass_time(cluster, 60)

        assert [templates_of(pod) for pod in cluster.there(POD).values()] == [["demo-0"], ["demo-0"]]
        assert await violations(cluster.kubectl) == []


async def test_N25_it_is_reported_once_as_an_event_and_ends_when_the_annotation_is_put_back() -> None:
    async with rack() as cluster, cluster.running():
        await cluster.apply(auto(1, gpu()))
        await cluster.settle()
        await annotate(cluster, None)
        await cluster.clock.advance(120)
        (message,) = await event_messages(cluster, "ComputeDomainAnnotationIgnored")
        assert message.endswith("it stays as recorded until the set is deleted and created again")
        (stored,) = cluster.there(kinds.PODCLIQUESET).values()
        assert "FabricAnnotationsIgnored" in {entry["type"] for entry in stored["status"]["conditions"]}
        await annotate(cluster, "enabled")
        await cluster.clock.advance(30)

        (stored,) = cluster.there(kinds.PODCLIQUESET).values()
        assert "FabricAnnotationsIgnored" not in {entry["type"] for entry in stored["status"].get("conditions", ())}


async def test_N25_a_sync_does_everything_else_and_fails() -> None:
    async with rack() as cluster:
        await cluster.apply(auto(1, gpu()))
        await cluster.sync()
        await annotate(cluster, None)
        await cluster.scale(kinds.PODCLIQUESET, "demo", 2)
        report = await cluster.sync()

        assert (report.ending, len(report.problems), len(cluster.there(POD))) == (Ending.FAILED, 1, 2)


async def test_N24_another_name_does_not_replace_running_pods() -> None:
    async with rack() as cluster, cluster.running():
        await cluster.apply(named("rack-a", replicas=2))
        await cluster.settle()
        before = pod_uids(cluster)
        (stored,) = cluster.there(kinds.PODCLIQUESET).values()
        worker, frontend = stored["spec"]["template"]["cliques"]
        cliques = [{**worker, "annotations": {NAMED: "rack-b"}}, frontend]
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "demo", {"spec": {"template": {"cliques": cliques}}})
        await pass_time(cluster, 60, step=2)

        assert (pod_uids(cluster), sorted(domains(cluster))) == (before, ["rack-a"])


async def test_N24_a_graph_whose_annotation_is_edited_is_blocked_unless_its_set_may_be_replaced() -> None:
    async with rack() as cluster:
        await cluster.sync(manifests=[graph(annotations={AUTO: "enabled"}, decode=service(nodes=2))])
        before = pod_uids(cluster)
        blocked = await cluster.sync(manifests=[graph(annotations={AUTO: "disabled"}, decode=service(nodes=2))], wait=False)

        assert any("must be replaced" in wait.why for plan in blocked.plans for wait in plan.blocked)
        assert (pod_uids(cluster), sorted(domains(cluster))) == (before, ["chat-0"])
        allowed = {AUTO: "disabled", "engine.grove.io/allow-replace": "true"}
        await cluster.sync(manifests=[graph(annotations=allowed, decode=service(nodes=2))])
        assert (domains(cluster), len(cluster.there(POD))) == ({}, 2)


async def test_N25_a_graph_puts_an_annotation_back_that_somebody_has_edited_on_its_set() -> None:
    manifest = graph(annotations={AUTO: "disabled"}, decode=service(nodes=2, annotations={NAMED: "rack"}))
    async with rack() as cluster:
        await cluster.sync(manifests=[manifest])
        before = pod_uids(cluster)
        (stored,) = cluster.there(kinds.PODCLIQUESET).values()
        cliques = [{**entry, "annotations": {NAMED: "other"}} for entry in stored["spec"]["template"]["cliques"]]
        await cluster.kubectl.patch(kinds.PODCLIQUESET, "default", "chat", {"spec": {"template": {"cliques": cliques}}})
        report = await cluster.sync()

        (stored,) = cluster.there(kinds.PODCLIQUESET).values()
        assert {entry["annotations"][NAMED] for entry in stored["spec"]["template"]["cliques"]} == {"rack"}
        assert (report.ending, pod_uids(cluster)) == (Ending.DONE, before)
