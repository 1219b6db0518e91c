"""Metrics: whoever reads them sees what `engine status` says, and what `engine run` has done."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from engine.errors import Forbidden
from engine.plan import Plan
from engine.runtime.lease import LEASE
from engine.tick import Plans
from providers.metrics.loop import result_of
from providers.metrics.metrics import EngineMetrics
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.mnnvl.sets import auto, gpu
from tests.stories.fabric import rack
from tests.stories.process import Process
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

LEASE_NAME = "engine"
RACKS = podcliqueset("racks", clique("worker", 2), replicas=2)


class Counted:
    """The metrics of one process beside a cluster."""

    def __init__(self, cluster: Stage) -> None:
        self.cluster = cluster
        self.metrics = EngineMetrics(cluster.clock, LEASE_NAME)
        self.process = Process(cluster.start()._client)

    def value(self, name: str, /, **labels: str) -> float | None:
        """The value of one series now; None if there is none."""
        return self.metrics.registry.get_sample_value(name, labels)

    def states(self, name: str, label: str) -> dict[str, float]:
        """The series of a metric that are not zero: value of the label -> sum."""
        sums: dict[str, float] = {}
        for family in self.metrics.registry.collect():
            for sample in family.samples:
                if sample.name == name and sample.value:
                    sums[sample.labels[label]] = sums.get(sample.labels[label], 0) + sample.value
        return sums


@asynccontextmanager
async def counted(*manifests: dict[str, object], without: tuple[str, ...] = ()) -> AsyncIterator[Counted]:
    """A cluster with these manifests, and an `engine run` in it that is counted."""
    async with stage(without=without) as cluster:
        for manifest in manifests:
            await cluster.apply(manifest)
        seen = Counted(cluster)
        async with cluster.running(seen.process, metrics=seen.metrics):
            await cluster.settle()
            yield seen


async def test_after_a_bring_up_the_figures_are_those_of_the_set() -> None:
    async with counted(RACKS) as seen:
        assert seen.states("engine_roots", "state") == {"settled": 1}
        assert seen.states("engine_gangs", "phase") == {"Running": 2}
        assert seen.value("engine_gangs_wanted") == 2
        assert seen.value("engine_gangs_below_minimum") == 0
        assert seen.states("engine_pods", "state") == {"ready": 4}
        assert seen.states("engine_waits", "state") == {}
        assert seen.value("engine_operations_total", verb="create", outcome="done") == sum(seen.process.created.values())
        assert seen.value("engine_events_total", result="written")
        assert seen.value("leader_election_master_status", name=LEASE_NAME) == 1
        assert seen.value("controller_runtime_reconcile_errors_total", controller="engine") == 0


async def test_a_pass_that_has_not_planned_all_sets_leaves_something_to_a_later_one() -> None:
    async with counted(RACKS) as seen:
        current = await seen.cluster.look()
        unplanned = tuple(Plan(plan.root, is_unplanned=True) for plan in current.planned.plans)

    assert result_of(current, ()) == "success"
    assert result_of(replace(current, planned=Plans(unplanned)), ()) == "requeue_after"


async def test_a_deleted_set_leaves_no_figure_behind() -> None:
    async with counted(RACKS) as seen:
        seen.metrics.text()
        await seen.cluster.delete(kinds.PODCLIQUESET, "racks")
        await seen.cluster.settle()

        for name, label in (("engine_roots", "state"), ("engine_gangs", "phase"), ("engine_pods", "state"), ("engine_waits", "state")):
            assert seen.states(name, label) == {}
        assert seen.value("engine_pods", state="ready") == 0
        assert seen.value("engine_operations_total", verb="delete", outcome="done")


async def test_a_set_that_cannot_be_scheduled_has_pending_gangs() -> None:
    async with counted(RACKS, without=("scheduler",)) as seen:
        assert seen.states("engine_roots", "state") == {"pending": 1}
        assert seen.states("engine_gangs", "phase") == {"Pending": 2}
        assert seen.states("engine_pods", "state") == {"pending": 4}
        assert seen.states("engine_waits", "state")["pending"]


async def test_a_name_that_is_taken_blocks_and_says_why() -> None:
    metadata = {"name": "racks-0", "namespace": "default"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 1}]}}
    async with stage() as cluster:
        await cluster.kubectl.create(kinds.SERVICE, "default", service)
        await cluster.apply(RACKS)
        seen = Counted(cluster)
        async with cluster.running(seen.process, metrics=seen.metrics):
            await cluster.settle()

            assert seen.states("engine_roots", "state") == {"blocked": 1}
            assert seen.value("engine_waits", state="blocked", reason="conflict", kind="Service") == 1


async def test_a_gang_that_loses_its_minimum_is_below_it_until_it_is_ready_again() -> None:
    async with counted(podcliqueset("racks", clique("worker", 2), terminationDelay="4h")) as seen:
        pod = min(seen.cluster.there(kinds.POD))
        seen.cluster.fail(pod, "crash")
        await seen.cluster.settle()
        below = seen.value("engine_gangs_below_minimum")
        seen.cluster.fail(pod, None)
        await seen.cluster.settle()

        assert below == 1
        assert seen.value("engine_gangs_below_minimum") == 0


async def test_refused_calls_are_errors_of_passes_and_of_operations() -> None:
    async with stage() as cluster:
        await cluster.apply(RACKS)
        seen = Counted(cluster)
        seen.process.refuses = lambda call: Forbidden("no") if (call[0], call[1].name) == ("create", "Service") else None
        async with cluster.running(seen.process, metrics=seen.metrics):
            await cluster.settle()

            assert seen.value("engine_operation_errors_total", verb="create", error="Forbidden")
            assert seen.value("controller_runtime_reconcile_errors_total", controller="engine")
            assert seen.value("controller_runtime_reconcile_total", controller="engine", result="error")


async def test_a_process_that_loses_the_lease_has_no_figures_of_the_fleet() -> None:
    async with counted(RACKS) as seen:
        lease = seen.cluster.there(LEASE)[LEASE_NAME]
        await seen.cluster.kubectl.replace(LEASE, "default", LEASE_NAME, {**lease, "spec": {**lease["spec"], "holderIdentity": "another"}})
        await seen.cluster.until(lambda: seen.value("leader_election_master_status", name=LEASE_NAME) == 0, within=10)

        assert seen.states("engine_roots", "state") == {}
        assert seen.states("engine_cache_objects", "kind") == {}


async def test_a_domain_is_counted_with_its_nodes() -> None:
    async with rack() as cluster:
        await cluster.apply(auto(1, gpu(replicas=2)))
        seen = Counted(cluster)
        async with cluster.running(seen.process, metrics=seen.metrics):
            await cluster.settle()

            assert seen.states("engine_domains", "state") == {"joined": 1}
            assert seen.states("engine_domain_nodes", "state") == {"expected": 2, "joined": 2, "ready": 2}
            assert seen.states("engine_domains_degraded", "reason") == {}


async def test_every_label_has_few_values_that_no_user_chooses() -> None:
    async with counted(RACKS) as seen:
        labels = {value for family in seen.metrics.registry.collect() for sample in family.samples for value in sample.labels.values()}

        assert not [value for value in labels if "racks" in value or value == "default"]
