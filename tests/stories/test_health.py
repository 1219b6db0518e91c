"""The health of sets while `engine run` works on them: what is missing stalls them after a minute, and no longer than it is missing."""

from typing import Any

import pytest

from resources.base import kinds
from tests.builders import claim_template, clique, podcliqueset, share
from tests.gitops_tools import argo_cd
from tests.kstatus import kstatus
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio


def seen(cluster: Stage) -> tuple[str, str, str]:
    """The reason of `Ready`, and what kstatus and Argo CD conclude."""
    body = cluster.there(kinds.PODCLIQUESET)["web"]
    ready = next(each for each in body["status"]["conditions"] if each["type"] == "Ready")
    return ready["reason"], kstatus(body), argo_cd(body)


async def test_a_missing_template_stalls_a_set_after_a_minute_until_it_is_there() -> None:
    template: dict[str, Any] = {"apiVersion": kinds.RESOURCE_CLAIM_TEMPLATE.api_version, "kind": kinds.RESOURCE_CLAIM_TEMPLATE.name}
    template |= {"metadata": {"name": "device", "namespace": "default"}, "spec": claim_template("device")["templateSpec"]}
    async with stage() as cluster, cluster.running():
        await cluster.apply(podcliqueset("web", clique("worker", resourceSharing=[share("device", "PerReplica")])))
        await cluster.clock.advance(20)
        assert seen(cluster) == ("DependencyMissing", "InProgress", "Progressing")

        await cluster.clock.advance(60)
        assert seen(cluster) == ("DependencyMissing", "Failed", "Degraded")

        await cluster.kubectl.create(kinds.RESOURCE_CLAIM_TEMPLATE, "default", template)
        await cluster.settle()
        assert seen(cluster) == ("AllReplicasAvailable", "Current", "Healthy")
