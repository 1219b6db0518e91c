"""A second vendor's fabric, in one file of another package, works like ours: `examples/10-your-own-fabric`, through its entry point."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import ResourceId
from engine.observed import live
from providers.fabrics.nvidia.names import NAMED
from providers.registry import fabrics
from resources.admission.admit import admit
from resources.admission.request import Act, Request
from resources.base import kinds
from resources.model.domain import specified_in
from resources.ports.fabric import Fabric
from resources.settings import Settings
from tests.builders import clique, podcliqueset
from tests.laws.rack import Rack
from tests.laws.toy import CONFIGURATION
from tests.providers.installed import EXAMPLE, install

ANNOTATION = "mesh.example.com/harbour"
DRIVERS = "mesh.example.com/pilot"
NPUS = {"containers": [{"name": "main", "image": "example/model:1", "resources": {"limits": {"mesh.example.com/npu": 4}}}, {"name": "log"}]}
BOTH = {"containers": [{"name": "main", "resources": {"limits": {"mesh.example.com/npu": 4, "nvidia.com/gpu": 1}}}]}
Body = dict[str, Any]


@pytest.fixture(autouse=True)
def harbours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Fabric]:
    """The fabric, loaded as the plug-in of another package."""
    install(EXAMPLE, tmp_path, monkeypatch)
    (found,) = (fabric for fabric in fabrics(Settings()) if fabric.name == "meshworks")
    yield found
    sys.modules.pop("harbours", None)


class Sea(Rack):
    """A cluster with the drivers of two vendors. The driver of harbours chooses the names of templates and writes them into the status."""

    def __init__(self, *others: Fabric) -> None:
        super().__init__()
        self.configuration = replace(CONFIGURATION, fabrics=(*CONFIGURATION.fabrics, *others))

    def harbours(self) -> dict[str, Body]:
        """All of them, by name."""
        return {id.name: body for id, body in sorted(self.objects.items()) if id.kind == "Harbour"}

    def live(self) -> None:
        """The driver of harbours acts, then all others."""
        for id in [id for id in self.objects if id.kind == "Harbour" and self.driver]:
            self._pilot(id)
        super().live()

    def _pilot(self, id: ResourceId) -> None:
        metadata = self.objects[id]["metadata"]
        name = f"berths-of-{metadata['uid']}"
        if metadata.get("deletionTimestamp"):
            self.objects.pop(kinds.RESOURCE_CLAIM_TEMPLATE.id("default", name), None)
            self.write(id, {"metadata": {"finalizers": [one for one in metadata["finalizers"] if one != DRIVERS]}})
        elif DRIVERS not in metadata["finalizers"]:
            self.write(id, {"metadata": {"finalizers": [*metadata["finalizers"], DRIVERS]}, "status": {"berths": name}})
            spec = {"metadata": {"labels": {"mesh.example.com/harbour-uid": metadata["uid"]}}, "spec": {"devices": {}}}
            head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name, "namespace": "default"}}
            self.put({**head, "spec": spec})


def asking(harbour: str, name: str = "demo", replicas: int = 1, spec: Body = NPUS, also: Body | None = None) -> Body:
    """A set whose workers request a harbour."""
    said = {ANNOTATION: harbour, **(also or {})}
    manifest = podcliqueset(name, clique("worker", pod_spec=spec, annotations=said), clique("frontend"), replicas=replicas)
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {"grove.io/auto-mnnvl": "disabled"}}}


def claims(sea: Sea) -> dict[str, list[tuple[str, str]]]:
    """Clique -> the name and template of each claim of its pods."""
    found: dict[str, list[tuple[str, str]]] = {}
    for id in sea.pods():
        body = sea.objects[id]
        claimed = [(one["name"], one["resourceClaimTemplateName"]) for one in body["spec"].get("resourceClaims") or ()]
        found[body["metadata"]["labels"]["grove.io/podclique"]] = claimed
    return found


def test_pods_wait_for_the_template_that_the_driver_names_and_claim_it(harbours: Fabric) -> None:
    sea = Sea(harbours)
    sea.driver = False
    sea.put(asking("northport"))
    for plan in (plan for _ in range(3) for plan in sea.plans()):
        sea.apply(plan.operations)
    (plan,) = sea.plans()

    assert {wait.why for wait in plan.deferred} == {
        "the driver has not created ResourceClaimTemplate northport-berths of Harbour northport yet"
    }
    assert list(claims(sea)) == ["demo-0-frontend"]

    sea.driver = True
    sea.settle()
    name = f"berths-of-{sea.harbours()['northport']['metadata']['uid']}"
    assert claims(sea) == {"demo-0-frontend": [], "demo-0-worker": [("harbour-berth", name)]}
    (worker,) = (sea.objects[id] for id in sea.pods() if "worker" in id.name)
    assert [one.get("resources", {}).get("claims") for one in worker["spec"]["containers"]] == [[{"name": "harbour-berth"}], None]


def test_a_harbour_is_shared_by_name_and_deleted_with_its_last_set(harbours: Fabric) -> None:
    sea = Sea(harbours)
    sea.put(asking("northport", replicas=2))
    sea.put(asking("northport", "other"))
    sea.settle()
    assert [owner["name"] for owner in sea.harbours()["northport"]["metadata"]["ownerReferences"]] == ["demo", "other"]

    for name in ("demo", "other"):
        assert list(sea.harbours()) == ["northport"]
        sea.delete(kinds.PODCLIQUESET.id("default", name))
        sea.settle()

    assert sea.objects == {}


def test_a_star_is_a_harbour_for_each_replica_deleted_after_its_pods(harbours: Fabric) -> None:
    sea = Sea(harbours)
    sea.put(asking("*", replicas=2))
    sea.settle()
    assert list(sea.harbours()) == ["demo-0-harbour", "demo-1-harbour"]

    sea.write(kinds.PODCLIQUESET.id("default", "demo"), {"spec": {"replicas": 1}, "metadata": {"generation": 2}})
    (plan,) = sea.plans()
    assert {operation.id.kind for operation in plan.operations if operation.verb == "delete"} == {"Pod"}
    (why,) = (wait.why for wait in plan.deferred if wait.id.name == "demo-1-harbour")
    assert why.startswith("replica 1 is removed: demo is scaled to 1; waits for")
    sea.settle()
    assert list(sea.harbours()) == ["demo-0-harbour"]


def test_two_vendors_on_one_clique_are_two_claims(harbours: Fabric) -> None:
    sea = Sea(harbours)
    sea.put(asking("northport", spec=BOTH, also={NAMED: "rack-a"}))
    sea.settle()

    name = f"berths-of-{sea.harbours()['northport']['metadata']['uid']}"
    assert claims(sea)["demo-0-worker"] == [("mnnvl-claim", "rack-a"), ("harbour-berth", name)]
    assert (list(sea.domains()), list(sea.harbours())) == (["rack-a"], ["northport"])


def test_its_rules_are_part_of_admission(harbours: Fabric) -> None:
    setup = replace(CONFIGURATION, fabrics=(harbours,))
    good, bad = asking("northport"), asking("Northport!")
    id = live(good).id
    (issue,) = admit(Request(Act.CREATE, id, bad), setup).issues
    (moved,) = admit(Request(Act.UPDATE, id, asking("southport"), good), setup).issues
    misplaced = {**good, "metadata": {**good["metadata"], "annotations": {ANNOTATION: "northport"}}}

    assert str(issue).startswith(
        'spec.template.cliques[0].annotations[mesh.example.com/harbour]: Invalid value: "Northport!": a lowercase RFC 1123 subdomain'
    )
    assert str(moved) == (
        'spec.template.cliques[0].annotations[mesh.example.com/harbour]: Invalid value: "southport": annotation mesh.example.com/harbour '
        'is immutable and cannot be changed from "northport" to "southport"'
    )
    assert admit(Request(Act.CREATE, id, misplaced), setup).warnings == (
        "metadata.annotations[mesh.example.com/harbour] has no effect: it is read from spec.template.cliques[].annotations",
    )


def test_its_alarms_have_the_name_of_its_kind(harbours: Fabric) -> None:
    sea = Sea(harbours)
    sea.unserved = frozenset({"Harbour"})
    sea.put(asking("northport"))
    for plan in sea.plans():
        sea.apply(plan.operations)
    (plan,) = sea.plans()

    assert [(alarm.reason, alarm.text) for alarm in plan.alarms] == [
        ("HarbourFailed", "Failed to create Harbour northport: the cluster does not serve Harbour of mesh.example.com/v1")
    ]


@pytest.mark.parametrize("odd", ["odd", 7, None, ["odd"], [{"name": "harbour-berth"}]])
def test_malformed_pod_specs_are_judged_without_an_error(harbours: Fabric, odd: Any) -> None:
    body = asking("northport", spec={**NPUS, "resourceClaims": odd})
    messages = [issue.message for issue in harbours.creation_issues(specified_in(body))]

    assert messages == (["the claim name harbour-berth is needed for the harbour"] if isinstance(odd, list) and odd != ["odd"] else [])
