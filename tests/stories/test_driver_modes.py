"""The driver in its other forms: a newer version of its kind, and hosts that run IMEX themselves."""

from typing import Any

import pytest

from grove_sandbox.actors.options import DriverOptions
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from resources.base.kinds import CRD, DAEMON_SET, POD
from resources.domains.status import State, domain_statuses
from tests.mnnvl.sets import auto, gpu
from tests.stories.domains import assert_invariants
from tests.stories.fabric import domains, rack
from tests.stories.pods import is_ready
from tests.stories.stage import Stage

pytestmark = pytest.mark.anyio

NEWER = kinds.newer(COMPUTE_DOMAIN)[0]


async def serve_only_newer(cluster: Stage) -> None:
    """The cluster serves ComputeDomains in v1beta2 only, which has no numNodes."""
    name = f"{COMPUTE_DOMAIN.plural}.{COMPUTE_DOMAIN.group}"
    crd: Any = await cluster.kubectl.get(CRD, "", name)
    (version,) = crd["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["numNodes"]
    await cluster.kubectl.delete(CRD, "", name)
    await cluster.clock.advance(5)
    spec = {**crd["spec"], "versions": [{**version, "name": NEWER.version}]}
    await cluster.kubectl.create(CRD, "", {**crd, "metadata": {"name": name}, "spec": spec})
    await cluster.clock.advance(5)


async def test_domains_are_written_in_the_version_that_is_served() -> None:
    async with rack(without=("driver",)) as cluster:
        await serve_only_newer(cluster)
        await cluster.apply(auto(1, gpu(replicas=2)))

        await cluster.sync()
        stored = dict(cluster.there(NEWER))["demo-0"]
        again = await cluster.sync()

        assert stored["apiVersion"] == "resource.nvidia.com/v1beta2"
        assert "numNodes" not in stored["spec"] and stored["spec"]["channel"]["resourceClaimTemplate"] == {"name": "demo-0"}
        assert not [result for result in again.results if result.operation.id.kind == COMPUTE_DOMAIN.name]

        await cluster.kubectl.patch(NEWER, "default", "demo-0", {"metadata": {"labels": {"app.kubernetes.io/part-of": None}}})
        await cluster.sync()
        assert dict(cluster.there(NEWER))["demo-0"]["metadata"]["labels"]["app.kubernetes.io/part-of"] == "demo"

        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await cluster.sync()
        assert not cluster.there(NEWER)


async def test_where_hosts_manage_imex_a_domain_is_in_use_and_nothing_is_said_of_its_reach() -> None:
    async with rack(driver=DriverOptions(host_managed=True)) as cluster, cluster.running():
        await cluster.apply(auto(1, gpu(replicas=2)))
        await cluster.settle()
        look = await cluster.look()
        (plan,), (observed,) = look.planned.plans, look.world.roots
        (status,) = domain_statuses(observed, plan, cluster.setup)

        assert all(map(is_ready, cluster.there(POD).values())) and len(cluster.there(POD)) == 2
        assert not cluster.there(DAEMON_SET)
        assert (status.state, status.joined, status.split) == (State.USED, (), None)
        assert status.why.startswith("the driver reports none of its nodes: it leaves IMEX to the hosts, or the domain's daemons are gone")

        await cluster.delete(kinds.PODCLIQUESET, "demo")
        await cluster.settle()
        assert not domains(cluster) and not cluster.there(kinds.RESOURCE_CLAIM_TEMPLATE)
        await assert_invariants(cluster.kubectl)
