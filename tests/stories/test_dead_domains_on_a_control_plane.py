"""Dead domains on a real control plane: what the Event says, and an update that settles while a domain is being deleted."""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from engine.runtime.clock import SystemClock
from engine.runtime.lease import Lease
from engine.runtime.lease_holder import identify
from engine.runtime.passes import Engine
from engine.runtime.session import sync
from engine.runtime.sync_report import Ending, SyncReport
from enginectl.wiring.scope import scope_of
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from providers.watching import WatchingCluster
from resources.base import kinds
from resources.base.kinds import POD
from resources.install.modes import Use
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from resources.reports.events import event_builder
from tests.controlplane.accounts import LEASE, user_of
from tests.controlplane.cluster import SYSTEM, ControlPlane
from tests.controlplane.fixtures import started
from tests.laws.test_vacating_laws import image
from tests.mnnvl.sets import auto, gpu
from tests.stories import fabric as simulated
from tests.stories.domains import assert_invariants
from tests.stories.pods import is_ready
from tests.stories.test_control_plane import as_asked, connection, synced
from tests.stories.test_domains_on_a_control_plane import NAMESPACE, fabric

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

FABRIC = as_asked(simulated.FABRIC)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with its own scheduler, whose nodes are played by actors."""
    with started(tmp_path_factory, ["kcm", "scheduler"]) as made:
        yield made


async def passed(plane: ControlPlane) -> SyncReport[Configuration]:
    """`engine sync --no-wait` as the operator."""
    clock = SystemClock()
    async with connection(plane, user_of(plane, FABRIC, Use.SYNC)) as client:
        where = replace(scope_of(FABRIC), namespaces=(NAMESPACE,))
        engine = Engine(WatchingCluster(client, clock), clock, where, BLUEPRINTS, FABRIC, events_of=event_builder(FABRIC))
        return await sync(engine, Lease(client, clock, SYSTEM, LEASE, identify()), wait=False)


async def test_the_event_names_the_pods_of_a_deleted_domain_and_an_update_then_settles(plane: ControlPlane) -> None:
    async with fabric(plane) as (admin, _):
        await admin.create(kinds.PODCLIQUESET, NAMESPACE, auto(1, gpu(replicas=2), namespace=NAMESPACE))
        assert (await synced(plane, NAMESPACE, FABRIC)).ending is Ending.DONE
        pods = sorted(body["metadata"]["name"] for body in (await admin.list(POD, NAMESPACE)).items)
        (before,) = (await admin.list(COMPUTE_DOMAIN, NAMESPACE)).items

        await admin.delete(COMPUTE_DOMAIN, NAMESPACE, "demo-0")
        await passed(plane)
        events = (await admin.list(kinds.EVENT, NAMESPACE)).items
        (message,) = {event["message"] for event in events if event["reason"] == "ComputeDomainTerminating"}
        assert f"NVLink is cut for 2 pods ({', '.join(pods)})" in message
        assert message.endswith(f"kubectl -n {NAMESPACE} delete pod {' '.join(pods)}")

        edited = auto(1, gpu(replicas=2, pod_spec=image(2)), namespace=NAMESPACE)
        await admin.patch(kinds.PODCLIQUESET, NAMESPACE, "demo", {"spec": edited["spec"]})
        report = await synced(plane, NAMESPACE, FABRIC)
        assert (report.ending, report.failures) == (Ending.DONE, ()), [(wait.id.name, wait.why) for wait in report.pending]
        (after,) = (await admin.list(COMPUTE_DOMAIN, NAMESPACE)).items
        replaced = (await admin.list(POD, NAMESPACE)).items
        assert before["metadata"]["uid"] != after["metadata"]["uid"]
        assert [pod["spec"]["containers"][0]["image"] for pod in replaced] == ["example/model:2"] * 2
        assert all(map(is_ready, replaced))
        await assert_invariants(admin)
