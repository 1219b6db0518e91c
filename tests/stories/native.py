"""A stage whose kube-scheduler schedules gangs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from providers.schedulers.kube import kube_scheduler
from resources.base import kinds
from resources.ports.configuration import GangMode
from tests.stories.stage import DEFAULT, Stage, stage

RACK = "topology.kubernetes.io/rack"
HALL = {
    "apiVersion": kinds.TOPOLOGY_BINDING.api_version,
    "kind": kinds.TOPOLOGY_BINDING.name,
    "metadata": {"name": "hall"},
    "spec": {"levels": [{"domain": "rack", "key": RACK}, {"domain": "host", "key": "kubernetes.io/hostname"}]},
}


@asynccontextmanager
async def native_stage(**options: Any) -> AsyncIterator[Stage]:
    """A cluster that serves PodGroups, and processes of ours that use them where they are served. Its topology `hall` has racks."""
    async with stage(gangs=True, **options) as cluster:
        cluster.setup = replace(cluster.setup, schedulers={DEFAULT: kube_scheduler(GangMode.AUTO)}, topology=True)
        await cluster.kubectl.create(kinds.TOPOLOGY_BINDING, "", HALL)
        yield cluster
