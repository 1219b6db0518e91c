"""Which fields of a set each field of its objects depends on."""

from typing import Any

import pytest

from engine.ids import ResourceId
from engine.observed import live
from engine.paths import spell
from resources.base import kinds
from resources.registry import BLUEPRINTS
from resources.reports.provenance import provenance
from tests.builders import clique, group, podcliqueset
from tests.laws.rack import Rack
from tests.mnnvl.sets import auto, gpu
from tests.resources.domains.test_replica_domains import rack, root

(BLUEPRINT,) = [blueprint for blueprint in BLUEPRINTS if blueprint.kind == kinds.PODCLIQUESET]
SPEC = "spec.template.cliques[0].spec"


def sources(toy: Rack, id: ResourceId, part: str = "0") -> dict[str, list[str]]:
    """The sources of its fields, as path strings."""
    found = provenance(BLUEPRINT, live(toy.objects[root()]), live(toy.objects[id]), part, toy.now, toy.configuration)
    return {spell(path): list(map(spell, of)) for path, of in found.items()}


def test_the_fields_of_a_clique_come_from_its_entry_in_the_template() -> None:
    found = sources(rack(auto(2)), kinds.PODCLIQUE.id("default", "demo-1-worker"), "1")

    assert found["spec.replicas"] == [f"{SPEC}.replicas"]
    assert found["spec.roleName"] == [f"{SPEC}.roleName"]
    assert found["spec.podSpec.containers[0].image"] == [f"{SPEC}.podSpec.containers[0].image"]
    assert f"{SPEC}.podSpec.containers[0].image" in found["metadata.labels[grove.io/pod-template-hash]"]


def test_the_fields_of_a_running_pod_come_from_its_own_clique() -> None:
    toy = rack(auto(1, gpu(), clique("other")))
    (pod,) = [id for id in toy.pods() if "worker" in id.name]
    found = sources(toy, pod)

    assert found["spec.containers[0].resources.limits[nvidia.com/gpu]"] == [
        f"{SPEC}.podSpec.containers[0].resources.limits[nvidia.com/gpu]"
    ]
    assert not any("cliques[1]" in source for of in found.values() for source in of)


def test_a_label_that_a_gang_inherits_comes_from_the_set() -> None:
    manifest = podcliqueset("demo", clique("w"), groups=(group("g", "w"),))
    manifest["metadata"]["labels"] = {"team": "blue"}
    toy = Rack()
    toy.put(manifest)
    toy.settle()

    assert sources(toy, kinds.PODGANG.id("default", "demo-0"))["metadata.labels.team"] == ["metadata.labels.team"]


def test_an_object_that_the_set_does_not_produce_has_no_sources() -> None:
    toy = rack(auto(1))
    toy.put({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "foreign", "namespace": "default"}})

    assert sources(toy, kinds.SERVICE.id("default", "foreign")) == {}


def test_a_large_set_is_only_rendered_up_to_the_replica_of_the_object() -> None:
    toy = rack(auto(1))
    body = toy.objects[root()]
    huge = live({**body, "spec": {**body["spec"], "replicas": 90_000}})
    one = live(toy.objects[kinds.PODCLIQUE.id("default", "demo-0-worker")])

    assert provenance(BLUEPRINT, huge, one, "", toy.now, toy.configuration) == {}
    assert provenance(BLUEPRINT, huge, one, "0", toy.now, toy.configuration) != {}


@pytest.mark.parametrize("spec", [{}, {"replicas": "x"}, {"template": None}, {"template": {"cliques": [None, 3]}}])
def test_a_faulty_set_has_no_sources(spec: dict[str, Any]) -> None:
    toy = rack(auto(1))
    one = live(toy.objects[kinds.PODCLIQUE.id("default", "demo-0-worker")])

    assert provenance(BLUEPRINT, live({**toy.objects[root()], "spec": spec}), one, "0", toy.now, toy.configuration) == {}
