"""ClusterTopologyBindings: the topology objects that the engine manages, those of others that it compares, and the status for both."""

from typing import Any

import pytest

from engine import world
from engine.answer import FailedCall
from engine.errors import Forbidden
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import Unlisted, World, live
from engine.operation import Outcome, Result
from engine.plan import Plan, Wait
from engine.proposal import propose
from engine.reason import Reason
from engine.runtime.failed_calls import failed_call
from engine.tick import plan_all
from engine.verb import Verb
from providers.schedulers.kube import KubeScheduler
from resources.base import kinds
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS
from resources.reports.events import events_of_pass
from tests.builders import podcliqueset
from tests.laws.toy import START, Toy
from tests.maps import MAP, Mapper, Maps, binding, map_of
from tests.operations import operation_of

KUBE = {"default-scheduler": KubeScheduler()}
PLAIN = Configuration(dict(KUBE), "default-scheduler")
SETUP = Configuration({**KUBE, "mapper": Mapper()}, "default-scheduler")
ID, HALL = kinds.TOPOLOGY_BINDING.id("", "hall"), MAP.id("", "hall")
ZONE, RACK = "example.com/zone", "example.com/rack"
GONE = "One or more referenced scheduler backends are unavailable for topology management"
AGREED = "All scheduler backend topologies are in sync"
DRIFTED = "One or more scheduler backend topologies have drifted"


class Halls(Toy):
    """A toy cluster with managed bindings and the maps of a scheduler back end."""

    configuration = SETUP
    failing: tuple[FailedCall, ...] = ()
    """The failed calls of earlier passes."""
    incomplete: dict[str, str] = {}

    def world(self) -> World:
        """The observed cluster."""
        lives = [one for one in (live(body) for body in self.objects.values()) if one.id.kind not in self.incomplete]
        roots = [one for one in lives if one.id.kind in (kinds.PODCLIQUESET.name, kinds.TOPOLOGY_BINDING.name)]
        self.previous = world.assemble(
            BLUEPRINTS,
            roots,
            [],
            {kind: Unlisted(why) for kind, why in self.incomplete.items()},
            self.previous,
            references=[one for one in lives if one.id.kind == MAP.name],
            unserved=self.unserved,
            failed_calls={ID: self.failing},
        )
        return self.previous

    def plan(self) -> Plan:
        """The plan for the binding."""
        (made,) = (plan for plan in self.plans() if plan.root == ID)
        return made

    def status(self) -> dict[str, Any]:
        """The status of the binding, without times."""
        status = self.objects[ID].get("status", {})
        conditions = [{key: one[key] for key in one if key != "lastTransitionTime"} for one in status.get("conditions", ())]
        return {**status, "conditions": conditions} if conditions else status


def halls(*bodies: dict[str, Any], setup: Configuration = SETUP) -> Halls:
    """A cluster with these objects."""
    toy = Halls()
    toy.configuration = setup
    for body in bodies:
        toy.put(body)
    return toy


def settled(*bodies: dict[str, Any], setup: Configuration = SETUP) -> Halls:
    """The same, after all plans are applied."""
    toy = halls(*bodies, setup=setup)
    toy.settle()
    return toy


def drift(status: str, reason: str, message: str, generation: int = 1) -> dict[str, Any]:
    """The drift condition."""
    return {"type": "SchedulerTopologyDrift", "status": status, "reason": reason, "message": message, "observedGeneration": generation}


def entry(trouble: str = "", *, scheduler: str = "mapper", name: str = "hall", generation: int = 1) -> dict[str, Any]:
    """The status entry of the scheduler."""
    body: dict[str, Any] = {"schedulerName": scheduler, "topologyReference": name, "inSync": not trouble}
    body |= {"schedulerBackendTopologyObservedGeneration": generation} if generation else {}
    return body | ({"message": trouble} if trouble else {})


def verbs(plan: Plan) -> list[tuple[Verb, str]]:
    """Verb and object of each operation."""
    return [(operation.verb, operation.id.kind) for operation in plan.operations]


def test_a_topology_is_created_for_a_back_end_that_the_binding_does_not_name() -> None:
    toy = settled(binding("hall", ZONE, RACK))

    made = toy.objects[HALL]
    assert made["spec"] == {"rows": [ZONE, RACK]}
    (owner,) = made["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "name": "hall",
        "uid": toy.objects[ID]["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert "labels" not in made["metadata"] and "finalizers" not in toy.objects[ID]["metadata"]
    assert toy.status() == {
        "observedGeneration": 1,
        "schedulerTopologyStatuses": [entry()],
        "conditions": [drift("False", "InSync", AGREED)],
    }


def test_no_status_is_written_while_a_topology_is_about_to_be_created() -> None:
    toy = halls(binding("hall", ZONE))

    assert verbs(toy.plan()) == [(Verb.CREATE, "Map")]


def test_a_topology_of_an_earlier_run_is_recognized_by_its_owner_and_an_unchanged_status_is_not_written() -> None:
    toy = settled(binding("hall", ZONE))
    toy.previous = None

    assert (toy.plan().operations, toy.plan().deferred) == ((), ())


def test_a_topology_with_other_levels_is_replaced() -> None:
    toy = settled(binding("hall", ZONE))
    toy.objects[HALL]["metadata"]["annotations"] = {"seen": "before"}
    toy.write(ID, {"spec": binding("hall", ZONE, RACK)["spec"], "metadata": {"generation": 2}})

    (operation,) = toy.plan().operations
    assert (operation.verb, operation.id, operation.intended) == (Verb.REPLACE, HALL, True)
    assert operation.expect.uid == toy.objects[HALL]["metadata"]["uid"]

    del toy.objects[HALL]
    toy.settle()
    assert toy.objects[HALL]["spec"] == {"rows": [ZONE, RACK]}
    assert toy.status()["conditions"] == [drift("False", "InSync", AGREED, 2)]
    assert toy.status()["observedGeneration"] == 2


def test_a_foreign_topology_with_the_same_name_is_left_alone_and_reported() -> None:
    toy = halls(binding("hall", ZONE), map_of("hall", ZONE))
    plan = toy.plan()
    toy.apply(plan.operations)

    assert plan.deferred == (Wait(HALL, "Map hall is not of hall", blocked=True),)
    assert [(alarm.blocking, alarm.reason, alarm.text) for alarm in plan.alarms] == [
        (True, "MapFailed", "Failed to create Map hall: Map hall is not of hall")
    ]
    assert toy.status() == {
        "schedulerTopologyStatuses": [entry("Map hall is not of hall")],
        "conditions": [drift("True", "Drift", DRIFTED)],
    }
    assert "ownerReferences" not in toy.objects[HALL]["metadata"]
    assert toy.plan().operations == ()

    toy.write(HALL, {"metadata": {"deletionTimestamp": toy.stamp(), "finalizers": ["theirs"]}})
    assert (toy.plan().alarms, toy.plan().deferred) == ((), (Wait(HALL, "Map hall is not of hall"),)), "its name becomes free"


def test_a_topology_that_the_binding_names_is_only_compared() -> None:
    toy = settled(binding("hall", ZONE, mapper="theirs"), map_of("theirs", ZONE))
    assert toy.status()["schedulerTopologyStatuses"] == [entry(name="theirs")]
    assert HALL not in toy.objects

    theirs = MAP.id("", "theirs")
    for generation, spec in ((7, {"rows": [RACK]}), (8, {"rows": None}), (9, None)):
        toy.write(theirs, {"spec": spec, "metadata": {"generation": generation}})
        toy.settle()
        assert toy.status()["schedulerTopologyStatuses"] == [entry("the rows are others", name="theirs", generation=generation)]
        assert toy.status()["conditions"] == [drift("True", "Drift", DRIFTED)]
        assert toy.objects[theirs].get("spec") == ({"rows": [RACK]} if generation == 7 else {} if generation == 8 else None)

    del toy.objects[theirs]
    toy.settle()
    assert toy.status()["schedulerTopologyStatuses"] == [entry("no Map theirs", name="theirs", generation=0)]
    assert toy.status()["observedGeneration"] == 1


def test_a_topology_that_the_binding_names_later_is_not_deleted() -> None:
    toy = settled(binding("hall", ZONE))
    toy.write(ID, {"spec": binding("hall", ZONE, RACK, mapper="hall")["spec"]})
    toy.settle()

    assert toy.objects[HALL]["spec"] == {"rows": [ZONE]}
    assert toy.status()["schedulerTopologyStatuses"] == [entry("the rows are others")]


@pytest.mark.parametrize(
    ("scheduler", "why"),
    [
        ("nobody", "scheduler backend is not enabled in Grove"),
        ("default-scheduler", "scheduler backend does not implement topology-aware scheduling"),
    ],
)
def test_a_scheduler_without_a_topology_comes_last_and_makes_the_condition_unknown(scheduler: str, why: str) -> None:
    toy = settled(binding("hall", ZONE, **{scheduler: "x"}))

    assert toy.status()["schedulerTopologyStatuses"] == [entry(), entry(why, scheduler=scheduler, name="x", generation=0)]
    assert toy.status()["conditions"] == [drift("Unknown", "TopologyNotFound", GONE)]
    assert toy.status()["observedGeneration"] == 1


def test_back_ends_are_listed_by_name_and_each_only_once() -> None:
    class Others(Maps):
        """Maps of another name."""

        def object_for(self, levels: Any) -> dict[str, Any]:
            """Under another name."""
            return map_of(f"{levels.binding}-2", *levels.keys)

    class Second(Mapper):
        """Another topology-aware scheduler."""

        topologies = Others()

    twice = binding("hall", ZONE, nobody="x")
    twice["spec"]["schedulerTopologyBindings"] *= 2
    toy = settled(twice, setup=Configuration({"mapper": Mapper(), **KUBE, "alpha": Second()}, "default-scheduler"))

    listed = [(status["schedulerName"], status["topologyReference"]) for status in toy.status()["schedulerTopologyStatuses"]]
    assert listed == [("alpha", "hall-2"), ("mapper", "hall"), ("nobody", "x")]


def test_without_any_topology_aware_back_end_the_status_is_removed() -> None:
    toy = settled(binding("hall", ZONE))
    theirs = {"type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": toy.stamp()}
    toy.objects[ID]["status"]["conditions"].append(theirs)
    toy.configuration = PLAIN
    toy.settle()

    assert toy.objects[ID]["status"] == {"observedGeneration": 1, "conditions": [theirs]}
    assert settled(binding("hall", ZONE), setup=PLAIN).status() == {"observedGeneration": 1}


def test_a_transition_time_stays_until_the_status_of_the_condition_changes() -> None:
    toy = settled(binding("hall", ZONE, mapper="theirs"), map_of("theirs", ZONE))

    def onset() -> str:
        (condition,) = toy.objects[ID]["status"]["conditions"]
        return str(condition["lastTransitionTime"])

    first = onset()
    toy.write(ID, {"metadata": {"generation": 2}})
    toy.settle()
    assert (onset(), toy.status()["conditions"][0]["observedGeneration"]) == (first, 2)

    toy.write(MAP.id("", "theirs"), {"spec": {"rows": []}})
    toy.settle()
    assert onset() > first


def test_a_failed_creation_is_reported_and_the_generation_is_not_observed() -> None:
    toy = halls(binding("hall", ZONE))
    (create,) = toy.plan().operations
    toy.failing = (failed_call(create, Forbidden("no"), START),)
    plan = toy.plan()
    toy.apply([operation for operation in plan.operations if operation.verb is Verb.STATUS])

    assert verbs(plan) == [(Verb.STATUS, "ClusterTopologyBinding"), (Verb.CREATE, "Map")]
    assert toy.status() == {
        "schedulerTopologyStatuses": [entry("no Map hall", generation=0)],
        "conditions": [drift("True", "Drift", DRIFTED)],
    }


def test_where_the_kind_of_topology_is_not_served_its_creation_is_blocked() -> None:
    toy = halls(binding("hall", ZONE))
    toy.unserved = frozenset({"Map"})
    plan = toy.plan()
    toy.apply(plan.operations)

    why = "the cluster does not serve Map of maps.example.com/v1"
    assert plan.deferred == (Wait(HALL, why, blocked=True),) and plan.alarms == ()
    assert toy.status()["schedulerTopologyStatuses"] == [entry(why, generation=0)]


def test_topologies_that_could_not_be_listed_are_not_created() -> None:
    toy = settled(binding("hall", ZONE))
    toy.incomplete = {"Map": "403"}
    toy.write(ID, {"metadata": {"generation": 2}})

    assert toy.plan().operations == ()
    assert {held.id for held in toy.plan().deferred} == {HALL}


def test_a_terminating_topology_is_created_again_once_it_is_gone() -> None:
    toy = settled(binding("hall", ZONE))
    toy.write(HALL, {"metadata": {"deletionTimestamp": toy.stamp(), "finalizers": ["theirs"]}})
    plan = toy.plan()
    toy.apply(plan.operations)

    (wait,) = plan.deferred
    assert (wait.id, wait.blocked, wait.reason) == (HALL, True, Reason.KEPT)
    assert "finalizer theirs keeps it" in wait.why
    assert toy.status()["schedulerTopologyStatuses"] == [entry("Map hall is being deleted")]


def test_a_terminating_binding_has_no_desired_objects() -> None:
    toy = settled(binding("hall", ZONE))
    del toy.objects[HALL]
    toy.write(ID, {"metadata": {"deletionTimestamp": toy.stamp(), "finalizers": ["theirs"]}})

    assert (toy.plan().operations, toy.plan().deferred) == ((), ())


@pytest.mark.parametrize("levels", [None, [], "x", [{"domain": "zone"}], [{"domain": 1, "key": ZONE}], {"a": 1}])
def test_a_binding_with_an_invalid_spec_is_a_problem(levels: Any) -> None:
    toy = halls(binding("hall", ZONE))
    toy.objects[ID]["spec"]["levels"] = levels
    plan = toy.plan()

    assert plan.operations == ()
    assert all(problem.startswith("spec.levels") for problem in plan.problems) and plan.problems


def test_a_manifest_proposes_a_binding_and_its_topology_follows() -> None:
    proposed = propose(halls().world(), [binding("hall", ZONE)])
    (plan,) = plan_all(BLUEPRINTS, proposed, START, SETUP, Memo(), Limits()).plans
    assert verbs(plan) == [(Verb.CREATE, "ClusterTopologyBinding"), (Verb.CREATE, "Map")]

    toy = settled(binding("hall", ZONE))
    edited = propose(toy.world(), [binding("hall", RACK)])
    (plan,) = plan_all(BLUEPRINTS, edited, START, SETUP, Memo(), Limits()).plans
    assert sorted(verbs(plan)) == [(Verb.PATCH, "ClusterTopologyBinding"), (Verb.REPLACE, "Map")]
    same = propose(toy.world(), [binding("hall", ZONE)])
    (plan,) = plan_all(BLUEPRINTS, same, START, SETUP, Memo(), Limits()).plans
    assert plan.operations == ()


def test_bindings_that_could_not_be_listed_defer_nothing_if_topology_is_disabled() -> None:
    toy = halls(podcliqueset("web"))
    toy.incomplete = {"ClusterTopologyBinding": "403"}

    for setup, held in ((SETUP, False), (Configuration(dict(KUBE), "default-scheduler", topology=True), True)):
        toy.configuration = setup
        (plan,) = toy.plans()
        assert ("is changed once ClusterTopologyBinding objects can be listed completely" in [one.why for one in plan.deferred]) is held
        assert (kinds.PODCLIQUESET.name in [one.id.kind for one in plan.operations]) is not held


def written(old: str | None, new: str | None) -> list[tuple[str, str, bool]]:
    """The Events of a change of the condition: reason, message, whether it is a warning."""
    toy = settled(binding("hall", ZONE, mapper="theirs"), map_of("theirs", ZONE))
    other = {"type": "Theirs", "status": "True"}

    def conditions(status: str | None) -> list[dict[str, Any]]:
        return [other, *([drift(status, "R", f"it is {status}")] if status else [])]

    toy.objects[ID]["status"]["conditions"] = conditions(old)
    (operation,) = toy.plan().operations
    (change,) = (one for one in operation.changes if one.path == ("status", "conditions"))
    changed = operation_of(
        operation.verb, ID, "", operation.cause, changes=(type(change)(change.path, change.old, conditions(new), change.cause),)
    )
    events = events_of_pass((), [Result(changed, Outcome.DONE)])
    assert events_of_pass((), [Result(changed, Outcome.FAILED)]) == ()
    return [(event.reason, event.message, event.warning) for event in events]


def test_an_event_is_published_when_the_condition_changes_and_only_then() -> None:
    assert written("False", "True") == [("TopologyDriftDetected", "it is True", True)]
    assert written("Unknown", "False") == [("TopologyInSync", "it is False", False)]
    assert written(None, "True") == [("TopologyDriftDetected", "it is True", True)]
    assert written("False", "Unknown") == written("True", "True") == written("True", None) == []
