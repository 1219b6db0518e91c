"""ClusterTopologyBindings with KAI: the Topology that the engine manages, those of others, and what the status says about them."""

from typing import Any

from engine import world
from engine.observed import World, live
from engine.operation import body_of
from engine.plan import Plan
from engine.verb import Verb
from providers.schedulers.kai import KaiScheduler
from providers.schedulers.kube import KubeScheduler
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from tests.laws.toy import Toy
from tests.maps import binding

ID, TOPOLOGY = kinds.TOPOLOGY_BINDING.id("", "hall"), kinds.KAI_TOPOLOGY.id("", "hall")
ZONE, RACK = "example.com/zone", "example.com/rack"
DRIFTED = "KAI Topology levels differ from ClusterTopologyBinding levels"


class Halls(Toy):
    """A toy cluster with managed bindings and KAI's Topologies."""

    configuration = Configuration({back_end.name: back_end for back_end in (KubeScheduler(), KaiScheduler())}, "default-scheduler")

    def world(self) -> World:
        """The observed cluster."""
        lives = [live(body) for body in self.objects.values()]
        roots = [live for live in lives if live.id.kind == kinds.TOPOLOGY_BINDING.name]
        topologies = [live for live in lives if live.id.kind == kinds.KAI_TOPOLOGY.name]
        self.previous = world.assemble(BLUEPRINTS, roots, [], {}, self.previous, references=topologies, unserved=self.unserved)
        return self.previous

    def plan(self) -> Plan:
        """The plan of the binding."""
        (plan,) = self.plans()
        return plan

    def entry(self) -> tuple[str, str, bool, str]:
        """What the status says about KAI, and the reason of the drift condition."""
        status = self.objects[ID]["status"]
        (entry,), (condition,) = status["schedulerTopologyStatuses"], status["conditions"]
        return entry["schedulerName"], entry["topologyReference"], entry["inSync"], entry.get("message", condition["reason"])


def halls(*bodies: dict[str, Any]) -> Halls:
    """A cluster with these objects."""
    toy = Halls()
    for body in bodies:
        toy.put(body)
    return toy


def topology(name: str, *keys: str) -> dict[str, Any]:
    """A Topology of KAI."""
    spec = {"levels": [{"nodeLabel": key} for key in keys]}
    return {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": name}, "spec": spec}


def test_the_engine_creates_the_topology_of_a_binding_and_owns_it() -> None:
    toy = halls(binding("hall", ZONE, RACK))
    toy.settle()

    stored = toy.objects[TOPOLOGY]
    (owner,) = stored["metadata"]["ownerReferences"]
    assert (stored["spec"], owner["uid"]) == (topology("hall", ZONE, RACK)["spec"], toy.objects[ID]["metadata"]["uid"])
    assert toy.entry() == ("kai-scheduler", "hall", True, "InSync")
    assert toy.plan().operations == ()


def test_levels_cannot_be_changed_so_the_topology_is_replaced() -> None:
    toy = halls(binding("hall", ZONE))
    toy.settle()
    toy.write(ID, {"spec": binding("hall", ZONE, RACK)["spec"], "metadata": {"generation": 2}})

    (operation,) = toy.plan().operations
    assert (operation.verb, operation.id) == (Verb.REPLACE, TOPOLOGY)
    assert body_of(operation)["spec"] == topology("hall", ZONE, RACK)["spec"]


def test_a_topology_that_the_binding_names_is_compared_and_never_changed() -> None:
    toy = halls(binding("hall", ZONE, **{"kai-scheduler": "theirs"}))
    toy.settle()
    assert toy.entry() == ("kai-scheduler", "theirs", False, 'KAI Topology "theirs" not found')

    toy.put(topology("theirs", ZONE, RACK))
    toy.settle()
    assert toy.entry() == ("kai-scheduler", "theirs", False, DRIFTED)
    assert toy.objects[kinds.KAI_TOPOLOGY.id("", "theirs")]["spec"] == topology("theirs", ZONE, RACK)["spec"]

    toy.write(ID, {"spec": binding("hall", ZONE, RACK, **{"kai-scheduler": "theirs"})["spec"]})
    toy.settle()
    assert toy.entry() == ("kai-scheduler", "theirs", True, "InSync")


def test_a_foreign_topology_of_that_name_is_a_conflict() -> None:
    toy = halls(binding("hall", ZONE), topology("hall", RACK))
    plan = toy.plan()
    toy.apply(plan.operations)

    _, _, in_sync, message = toy.entry()
    assert not in_sync and message.startswith("KAI Topology hall is not owned by ClusterTopologyBinding hall. ")
    assert [alarm.text for alarm in plan.alarms] == [f"Failed to create Topology hall: {message}"]
    assert toy.objects[TOPOLOGY]["spec"] == topology("hall", RACK)["spec"]
    assert toy.plan().operations == ()


def test_where_topologies_are_not_served_only_they_are_blocked() -> None:
    toy = halls(binding("hall", ZONE))
    toy.unserved = frozenset({kinds.KAI_TOPOLOGY.key})
    plan = toy.plan()
    toy.apply(plan.operations)

    why = "the cluster does not serve Topology of kai.scheduler/v1alpha1"
    assert [(wait.id, wait.why, wait.blocked) for wait in plan.deferred] == [(TOPOLOGY, why, True)]
    assert toy.entry() == ("kai-scheduler", "hall", False, why)
