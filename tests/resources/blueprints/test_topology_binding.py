"""Bindings as roots: topologies that are kept, topologies that are held against them, and what is said of both."""

from typing import Any

import pytest

from engine import world
from engine.errors import Forbidden
from engine.failure import FailedCall
from engine.guard import Limits
from engine.memo import Memo
from engine.observed import World, live
from engine.operation import Operation
from engine.plan import Plan, Wait
from engine.result import Outcome, Result
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
from tests.maps import MAP, Mapper, binding, map_of

KUBE = {"default-scheduler": KubeScheduler()}
PLAIN = Configuration(dict(KUBE), "default-scheduler")
SETUP = Configuration({**KUBE, "mapper": Mapper()}, "default-scheduler")
ID, HALL = kinds.TOPOLOGY_BINDING.id("", "hall"), MAP.id("", "hall")
ZONE, RACK = "example.com/zone", "example.com/rack"
GONE = "One or more referenced scheduler backends are unavailable for topology management"
AGREED = "All scheduler backend topologies are in sync"
DRIFTED = "One or more scheduler backend topologies have drifted"


class Halls(Toy):
    """A toy cluster whose bindings are looked after, and whose maps are seen."""

    settings = SETUP
    failing: tuple[FailedCall, ...] = ()
    """What is remembered of the binding."""
    incomplete: dict[str, str] = {}

    def world(self) -> World:
        """All of it, as observed."""
        lives = [one for one in (live(body) for body in self.objects.values()) if one.id.kind not in self.incomplete]
        roots = [one for one in lives if one.id.kind in (kinds.PODCLIQUESET.name, kinds.TOPOLOGY_BINDING.name)]
        self.previous = world.assemble(
            BLUEPRINTS,
            roots,
            [],
            self.incomplete,
            self.previous,
            references=[one for one in lives if one.id.kind == MAP.name],
            unserved=self.unserved,
            failed_calls={ID: self.failing},
        )
        return self.previous

    def plan(self) -> Plan:
        """What a pass would do about the binding."""
        (made,) = (plan for plan in self.plans() if plan.root == ID)
        return made

    def status(self) -> dict[str, Any]:
        """What the binding says, without times."""
        status = self.objects[ID].get("status", {})
        conditions = [{key: one[key] for key in one if key != "lastTransitionTime"} for one in status.get("conditions", ())]
        return {**status, "conditions": conditions} if conditions else status


def halls(*bodies: dict[str, Any], setup: Configuration = SETUP) -> Halls:
    """A cluster with these objects."""
    toy = Halls()
    toy.settings = setup
    for body in bodies:
        toy.put(body)
    return toy


def settled(*bodies: dict[str, Any], setup: Configuration = SETUP) -> Halls:
    """The same, once all is done."""
    toy = halls(*bodies, setup=setup)
    toy.settle()
    return toy


def kept_by(toy: Halls, *rows: str) -> dict[str, Any]:
    """A map of the binding's own."""
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", "name": "hall", "uid": toy.objects[ID]["metadata"]["uid"]}
    return map_of("hall", *rows, ownerReferences=[{**owner, "controller": True, "blockOwnerDeletion": True}])


def drift(status: str, reason: str, message: str, generation: int = 1) -> dict[str, Any]:
    """The condition."""
    return {"type": "SchedulerTopologyDrift", "status": status, "reason": reason, "message": message, "observedGeneration": generation}


def entry(trouble: str = "", *, scheduler: str = "mapper", name: str = "hall", generation: int = 1) -> dict[str, Any]:
    """What is said of one scheduler."""
    told: dict[str, Any] = {"schedulerName": scheduler, "topologyReference": name, "inSync": not trouble}
    told |= {"schedulerBackendTopologyObservedGeneration": generation} if generation else {}
    return told | ({"message": trouble} if trouble else {})


def verbs(plan: Plan) -> list[tuple[Verb, str]]:
    """What is done, and to what."""
    return [(operation.verb, operation.id.kind) for operation in plan.operations]


def test_a_topology_is_made_for_a_back_end_that_the_binding_does_not_name_and_both_are_said_to_agree() -> None:
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


def test_nothing_is_said_before_what_is_about_to_be_made_is_there() -> None:
    toy = halls(binding("hall", ZONE))

    assert verbs(toy.plan()) == [(Verb.CREATE, "Map")]


def test_what_an_earlier_process_has_made_is_known_by_its_owner_and_what_is_said_already_is_not_written_again() -> None:
    toy = settled(binding("hall", ZONE))
    toy.previous = None

    assert (toy.plan().operations, toy.plan().deferred) == ((), ())


def test_other_levels_mean_another_topology_for_it_cannot_be_changed_in_place() -> None:
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


def test_a_topology_of_somebody_else_under_that_name_is_left_alone_and_told_in_the_back_end_s_words() -> None:
    toy = halls(binding("hall", ZONE), map_of("hall", ZONE))
    plan = toy.plan()
    toy.apply(plan.operations)

    assert plan.deferred == (Wait(HALL, "Map hall is not of hall"),)
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
    assert (toy.plan().alarms, toy.plan().deferred) == ((), plan.deferred), "it is about to make room"


def test_a_topology_that_somebody_else_keeps_is_only_held_against_the_binding() -> None:
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


def test_a_topology_that_is_kept_by_somebody_else_from_now_on_stays_where_it_is() -> None:
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
def test_a_scheduler_that_is_not_there_or_knows_no_topology_comes_last_and_leaves_the_question_open(scheduler: str, why: str) -> None:
    toy = settled(binding("hall", ZONE, **{scheduler: "x"}))

    assert toy.status()["schedulerTopologyStatuses"] == [entry(), entry(why, scheduler=scheduler, name="x", generation=0)]
    assert toy.status()["conditions"] == [drift("Unknown", "TopologyNotFound", GONE)]
    assert toy.status()["observedGeneration"] == 1


def test_back_ends_are_told_by_name_and_a_scheduler_that_is_named_twice_once() -> None:
    class Second(Mapper):
        """Another of that sort."""

        topology = MAP

        def topology_for(self, levels: Any) -> dict[str, Any]:
            """Under a name of its own."""
            return map_of(f"{levels.binding}-2", *levels.keys)

    twice = binding("hall", ZONE, nobody="x")
    twice["spec"]["schedulerTopologyBindings"] *= 2
    toy = settled(twice, setup=Configuration({"mapper": Mapper(), **KUBE, "alpha": Second()}, "default-scheduler"))

    told = [(one["schedulerName"], one["topologyReference"]) for one in toy.status()["schedulerTopologyStatuses"]]
    assert told == [("alpha", "hall-2"), ("mapper", "hall"), ("nobody", "x")]


def test_where_no_back_end_has_a_topology_there_is_nothing_to_ask_and_what_was_answered_is_taken_back() -> None:
    toy = settled(binding("hall", ZONE))
    theirs = {"type": "Theirs", "status": "True", "reason": "R", "message": "", "lastTransitionTime": toy.stamp()}
    toy.objects[ID]["status"]["conditions"].append(theirs)
    toy.settings = PLAIN
    toy.settle()

    assert toy.objects[ID]["status"] == {"observedGeneration": 1, "conditions": [theirs]}
    assert settled(binding("hall", ZONE), setup=PLAIN).status() == {"observedGeneration": 1}


def test_the_onset_of_an_answer_is_kept_until_it_flips() -> None:
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


def test_what_cannot_be_made_is_told_once_it_has_been_tried_and_the_generation_is_not_dealt_with() -> None:
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


def test_where_the_kind_of_topology_is_not_served_nothing_is_tried() -> None:
    toy = halls(binding("hall", ZONE))
    toy.unserved = frozenset({"Map"})
    plan = toy.plan()
    toy.apply(plan.operations)

    why = "the cluster does not serve Map of maps.example.com/v1"
    assert plan.deferred == (Wait(HALL, why),) and plan.alarms == ()
    assert toy.status()["schedulerTopologyStatuses"] == [entry(why, generation=0)]


def test_topologies_that_could_not_be_seen_are_not_taken_for_missing() -> None:
    toy = settled(binding("hall", ZONE))
    toy.incomplete = {"Map": "403"}
    toy.write(ID, {"metadata": {"generation": 2}})

    assert toy.plan().operations == ()
    assert {held.id for held in toy.plan().deferred} == {HALL}


def test_a_topology_that_is_going_is_made_again_once_it_is_gone() -> None:
    toy = settled(binding("hall", ZONE))
    toy.write(HALL, {"metadata": {"deletionTimestamp": toy.stamp(), "finalizers": ["theirs"]}})
    plan = toy.plan()
    toy.apply(plan.operations)

    assert plan.deferred == (Wait(HALL, "is being deleted; it is made again once it is gone"),)
    assert toy.status()["schedulerTopologyStatuses"] == [entry("Map hall is being deleted")]


def test_a_binding_that_is_being_deleted_wants_nothing() -> None:
    toy = settled(binding("hall", ZONE))
    del toy.objects[HALL]
    toy.write(ID, {"metadata": {"deletionTimestamp": toy.stamp(), "finalizers": ["theirs"]}})

    assert (toy.plan().operations, toy.plan().deferred) == ((), ())


@pytest.mark.parametrize("levels", [None, [], "x", [{"domain": "zone"}], [{"domain": 1, "key": ZONE}], {"a": 1}])
def test_a_binding_that_cannot_be_read_is_told_and_nothing_is_done(levels: Any) -> None:
    toy = halls(binding("hall", ZONE))
    toy.objects[ID]["spec"]["levels"] = levels
    plan = toy.plan()

    assert plan.operations == ()
    assert all(problem.startswith("spec.levels") for problem in plan.problems) and plan.problems


def test_a_manifest_proposes_a_binding_and_its_topology_follows() -> None:
    proposed = world.propose(halls().world(), [binding("hall", ZONE)])
    (plan,) = plan_all(BLUEPRINTS, proposed, START, SETUP, Memo(), Limits()).plans
    assert verbs(plan) == [(Verb.CREATE, "ClusterTopologyBinding"), (Verb.CREATE, "Map")]

    toy = settled(binding("hall", ZONE))
    edited = world.propose(toy.world(), [binding("hall", RACK)])
    (plan,) = plan_all(BLUEPRINTS, edited, START, SETUP, Memo(), Limits()).plans
    assert sorted(verbs(plan)) == [(Verb.PATCH, "ClusterTopologyBinding"), (Verb.REPLACE, "Map")]
    same = world.propose(toy.world(), [binding("hall", ZONE)])
    (plan,) = plan_all(BLUEPRINTS, same, START, SETUP, Memo(), Limits()).plans
    assert plan.operations == ()


def test_bindings_that_may_not_be_seen_hold_nothing_back_where_topology_is_switched_off() -> None:
    toy = halls(podcliqueset("web"))
    toy.incomplete = {"ClusterTopologyBinding": "403"}

    for setup, held in ((SETUP, False), (Configuration(dict(KUBE), "default-scheduler", topology=True), True)):
        toy.settings = setup
        (plan,) = toy.plans()
        assert ("changes once ClusterTopologyBinding objects are seen completely" in [one.why for one in plan.deferred]) is held
        assert (kinds.PODCLIQUESET.name in [one.id.kind for one in plan.operations]) is not held


def written(old: str | None, new: str | None) -> list[tuple[str, str, bool]]:
    """What people are told when that answer follows on this one."""
    toy = settled(binding("hall", ZONE, mapper="theirs"), map_of("theirs", ZONE))
    other = {"type": "Theirs", "status": "True"}

    def conditions(status: str | None) -> list[dict[str, Any]]:
        return [other, *([drift(status, "R", f"it is {status}")] if status else [])]

    toy.objects[ID]["status"]["conditions"] = conditions(old)
    (operation,) = toy.plan().operations
    (change,) = (one for one in operation.changes if one.path == ("status", "conditions"))
    told = Operation(
        operation.verb, ID, "", operation.cause, changes=(type(change)(change.path, change.old, conditions(new), change.cause),)
    )
    events = events_of_pass((), [Result(told, Outcome.DONE)])
    assert events_of_pass((), [Result(told, Outcome.FAILED)]) == ()
    return [(event.reason, event.message, event.warning) for event in events]


def test_people_are_told_when_the_answer_flips_and_only_then() -> None:
    assert written("False", "True") == [("TopologyDriftDetected", "it is True", True)]
    assert written("Unknown", "False") == [("TopologyInSync", "it is False", False)]
    assert written(None, "True") == [("TopologyDriftDetected", "it is True", True)]
    assert written("False", "Unknown") == written("True", "True") == written("True", None) == []
