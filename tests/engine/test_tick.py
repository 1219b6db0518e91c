"""A tick is a function of its arguments, and the failure of one root is its own."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import World
from engine.operation import Operation, body_of
from engine.plan import Plan
from engine.tick import executable, plan_all
from engine.verb import Verb
from resources.base import kinds
from resources.blueprints.podcliqueset import PodCliqueSetBlueprint
from resources.registry import BLUEPRINTS
from tests.builders import clique, podcliqueset
from tests.laws.rack import Rack
from tests.laws.toy import CONFIGURATION, START, Toy
from tests.mnnvl.sets import named


class Broken(PodCliqueSetBlueprint):
    """A blueprint with a defect that shows in sets of one name."""

    def desire(self, observed: Any, *arguments: Any) -> Any:
        """Raise for a set called `broken`."""
        if observed.root.id.name == "broken":
            raise KeyError("spec")
        return super().desire(observed, *arguments)


def test_an_exception_of_our_own_is_an_error_of_that_root_and_no_problem_of_its_user() -> None:
    toy = Toy()
    toy.put(podcliqueset("broken"))
    toy.put(podcliqueset("sound"))

    broken, sound = plan_all((Broken(), *BLUEPRINTS[1:]), toy.world(), START, CONFIGURATION, Memo(), Limits()).plans

    assert isinstance(broken.error, KeyError)
    assert (broken.operations, broken.problems, broken.deferred) == ((), (), ())
    assert sound.error is None and sound.operations


def test_a_status_has_a_mark_instead_of_the_time_and_equal_plans_are_the_same_object() -> None:
    toy = Toy()
    toy.put(podcliqueset("demo"))
    for plan in toy.plans():
        toy.apply(plan.operations)
    memo, world = Memo(), toy.world()

    (first,) = toy.plans_of(world, memo)
    (second,) = toy.plans_of(world, memo)

    assert {operation.verb for operation in first.operations} == {Verb.STATUS}
    assert any("(time of writing)" in repr(body_of(operation)) for operation in first.operations)
    assert first is second


def test_what_others_have_done_to_all_sets_is_refused_in_each_part_of_them_that_is_planned() -> None:
    toy = Toy()
    for number in range(4):
        toy.put(podcliqueset(f"set-{number}", clique("a", 100)))
    toy.settle()
    world = toy.world()
    count = world.roots[0].count()
    for id in [observed.root.id for observed in world.roots]:
        put_unneeded(toy, id, count // 10 + 2)
    first, *others = (observed.root.id for observed in toy.world().roots)
    put_off = {root: Plan(root) for root in others}

    def refused(put_off: Mapping[ResourceId, Plan]) -> int:
        planned = plan_all(BLUEPRINTS, toy.world(), toy.now, CONFIGURATION, Memo(), Limits(), carried=put_off, put_off=put_off.keys())
        return sum(bool(plan.objections) for plan in planned.plans)

    assert (refused({}), refused(put_off)) == (4, 1)
    assert refused({root: plan for root, plan in put_off.items() if root != others[0]}) == 2


def test_the_operations_of_a_plan_that_is_being_sent_are_not_gone_through_again() -> None:
    toy = Toy()
    for name in ("large", "small"):
        toy.put(podcliqueset(name, clique("a", 10)))
    toy.settle()
    for name in ("large", "small"):
        toy.write(kinds.PODCLIQUESET.id("default", name), {"spec": {"replicas": 3}, "metadata": {"generation": 3}})
    world = toy.world()
    planned = plan_all(BLUEPRINTS, world, toy.now, CONFIGURATION, Memo(), Limits())
    large, small = sorted(plan.root for plan in planned.plans)
    asked = Counter[str]()

    def excluded(operation: Operation) -> bool:
        asked[operation.id.name.split("-")[0]] += 1
        return False

    plans = executable(world, planned, excluded, frozenset({large}))

    assert [plan.root for plan in plans] == [small] and len(plans[0].operations) == asked["small"] > 10
    assert asked["large"] == 0


def test_what_a_plan_that_is_being_sent_creates_for_several_roots_is_not_created_for_another() -> None:
    rack = Rack()
    for name in ("first", "second"):
        rack.put(named("rack", name))
    rack.apply([operation for plan in rack.plans() for operation in plan.operations if operation.id == plan.root])
    world = rack.world()
    planned = plan_all(rack.blueprints, world, rack.now, rack.configuration, Memo(), Limits())
    first, second = sorted(plan.root for plan in planned.plans)

    (plan,) = executable(world, planned, sent=frozenset({first}))

    assert all(kinds_of(each) >= {"ComputeDomain"} for each in planned.plans)
    assert plan.root == second and kinds_of(plan) and "ComputeDomain" not in kinds_of(plan)


def kinds_of(plan: Plan) -> set[str]:
    """The kinds of the objects that a plan writes."""
    return {operation.id.kind for operation in plan.operations}


def put_unneeded(toy: Toy, set: ResourceId, count: int) -> None:
    """Store accounts that a set owns and does not need."""
    owner = {"kind": "PodCliqueSet", "name": set.name, "uid": toy.objects[set]["metadata"]["uid"], "controller": True}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": set.name}
    for number in range(count):
        metadata = {"name": f"other-{set.name}-{number}", "namespace": "default", "labels": labels, "ownerReferences": [owner]}
        toy.put({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})


def plan_in_words() -> str:
    """A plan for a set with an object that is not needed in each of forty replicas, and with a kind that cannot be listed."""
    toy = Toy()
    root = toy.put(podcliqueset("demo", clique("a"), clique("b")))
    owner = {"kind": "PodCliqueSet", "name": "demo", "uid": root["metadata"]["uid"], "controller": True}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "demo"}
    for number in range(1, 41):
        metadata = {"name": f"demo-{number}", "namespace": "default", "labels": labels, "ownerReferences": [owner]}
        toy.put({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {}})
    complete = toy.world()
    plans = [*toy.plans_of(complete), *toy.plans_of(incomplete(complete))]
    return "\n".join(
        [
            *(line(operation) for plan in plans for operation in plan.operations),
            *(f"{wait.id} {wait.why} {wait.blocked}" for plan in plans for wait in (*plan.deferred, *plan.pending)),
        ]
    )


def incomplete(world: World) -> World:
    """The world if Pods could not be listed."""
    unlisted = frozenset({kinds.POD.name})
    return replace(world, roots=tuple(replace(observed, incomplete=unlisted) for observed in world.roots), incomplete={"Pod": "403"})


def line(operation: Operation) -> str:
    """An operation in words."""
    return f"{operation.key} {operation.why} {dict(body_of(operation))} {sorted(operation.after)}"


def test_a_plan_does_not_depend_on_the_hash_seed() -> None:
    code = "from tests.engine.test_tick import plan_in_words; print(plan_in_words())"
    root = Path(__file__).parents[2]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }

    (output,) = outputs
    assert str(ResourceId("", "Service", "default", "demo-40")) in output
