"""What GitOps tools do to a set that runs, and see of it: Argo CD's actions, and a deletion that is watched."""

from typing import Any

import pytest

from resources.base import kinds
from tests.builders import clique, group, podcliqueset
from tests.gitops_tools import acted, argo_cd
from tests.kstatus import kstatus
from tests.stories.process import Process
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

SET = kinds.PODCLIQUESET


def workload() -> dict[str, Any]:
    """A clique that stands alone, and a group of two."""
    cliques = (clique("router"), clique("prefill"), clique("decode", 2))
    return podcliqueset("llm", *cliques, groups=(group("pool", "prefill", "decode"),), replicas=2)


def seen_of_sets(ours: Process) -> list[str]:
    """What Argo CD says after each status of a set from now on."""
    said: list[str] = []

    def note(body: dict[str, Any]) -> None:
        if body["kind"] == SET.name:
            said.append(argo_cd(body))

    ours.on_status = note
    return said


async def act(cluster: Stage, action: str, **parameters: str) -> None:
    """Argo CD runs an action on the set: it writes the difference to what the object is now."""
    spec = acted(cluster.there(SET)["llm"], action, **parameters)["spec"]
    template = cluster.there(SET)["llm"]["spec"]["template"]
    cliques = [
        {**each, "annotations": new.get("annotations", {})}
        for each, new in zip(template["cliques"], spec["template"]["cliques"], strict=True)
    ]
    change = {"replicas": spec["replicas"], "template": {**template, "cliques": cliques}}
    await cluster.kubectl.patch(SET, "default", "llm", {"spec": change}, how="merge")


def uids(cluster: Stage) -> set[str]:
    """The pods that are there."""
    return {pod["metadata"]["uid"] for pod in cluster.there(kinds.POD).values()}


async def test_the_action_restart_replaces_every_pod_once_and_argo_cd_sees_progress_and_no_failure() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(workload())
        await cluster.settle()
        before, said = uids(cluster), seen_of_sets(ours)
        created = ours.writes["create Pod"]

        await act(cluster, "restart")
        await cluster.settle()

        assert len(uids(cluster)) == len(before) == 8 and not uids(cluster) & before
        assert ours.writes["create Pod"] - created == 8
        assert said[0] == "Progressing" and said[-1] == "Healthy" and set(said) == {"Progressing", "Healthy"}


async def test_the_action_scale_makes_replicas_and_restarts_nothing() -> None:
    async with stage() as cluster, cluster.running() as ours:
        await cluster.apply(workload())
        await cluster.settle()
        before, said = uids(cluster), seen_of_sets(ours)

        await act(cluster, "scale", replicas="3")
        assert argo_cd(cluster.there(SET)["llm"]) == "Progressing"
        await cluster.settle()

        assert before < uids(cluster) and len(uids(cluster)) == 12
        assert said[-1] == "Healthy" and set(said) <= {"Progressing", "Healthy"}


@pytest.mark.parametrize("manner", ["Background", "Foreground"])
async def test_a_deleted_set_is_terminating_until_all_that_it_had_is_gone(manner: str) -> None:
    parts = (kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.POD, kinds.PODGANG, kinds.SERVICE)
    seen: list[str] = []
    async with stage() as cluster, cluster.running():
        await cluster.apply(workload())
        await cluster.settle()

        await cluster.delete(SET, "llm", manner)
        while (body := cluster.there(SET).get("llm")) is not None:
            seen.append(kstatus(body))
            await cluster.clock.advance(0.5)

        assert len(seen) > 1 and set(seen) == {"Terminating"}
        assert [kind.name for kind in parts if cluster.there(kind)] == []
