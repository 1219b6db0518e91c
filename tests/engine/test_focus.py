"""Which roots a focus includes, and whose deletes count against the budget."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from engine.errors import InputError
from engine.focus import EVERYTHING, Focus, RootTarget, concerned, parse_selector, within
from engine.guard import Limits
from engine.ids import ResourceId
from engine.memo import Memo
from engine.observed import World, live
from engine.operation import Cause, Patch
from engine.plan import Plan
from engine.tick import plan_all
from resources.base import kinds
from resources.registry import BLUEPRINTS
from tests.builders import clique, podcliqueset
from tests.laws.toy import CONFIGURATION, START, Toy

WEB = kinds.PODCLIQUESET.id("prod", "web")
CHANGE = Patch(WEB, "", Cause.INTENT, patch={})
LABELS = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("target", "matches"),
    [
        (RootTarget(), True),
        (RootTarget(name="web"), True),
        (RootTarget(name="w*"), True),
        (RootTarget(name="we"), False),
        (RootTarget(kind="PodCliqueSet", namespace="prod", name="web"), True),
        (RootTarget(kind="DynamoGraphDeployment", name="web"), False),
        (RootTarget(namespace="p*", name="*b"), True),
        (RootTarget(namespace="test", name="web"), False),
    ],
)
def test_a_target_names_roots_by_kind_namespace_and_name(target: RootTarget, matches: bool) -> None:
    assert target.matches(WEB) is matches


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("app=web", True),
        ("app==web,tier=front", True),
        ("app=web,tier=back", False),
        ("app!=web", False),
        ("other!=x", True),
        ("app in (api, web)", True),
        ("app in (api),tier", False),
        ("app notin (api,job)", True),
        ("other notin (x)", True),
        ("tier", True),
        ("!tier", False),
        ("! other", True),
        ("other=", False),
        ("example.com/team!=a", True),
    ],
)
def test_a_selector_means_what_it_means_to_kubectl(text: str, matches: bool) -> None:
    assert parse_selector(text).matches(LABELS) is matches


@pytest.mark.parametrize("text", ["", "a=b,", "a in b", "a in (b", "=b", "a=b=c", "a>1", "a b", "a in (b c)", "-a=b", "a\x1b=b"])
def test_what_is_no_selector_is_an_error(text: str) -> None:
    with pytest.raises(InputError):
        parse_selector(text)


def test_every_restriction_applies() -> None:
    focus = Focus(frozenset({WEB}), (RootTarget(name="web"),), (parse_selector("app=web"),))

    assert EVERYTHING.includes(WEB, {}) and focus.includes(WEB, LABELS)
    assert not focus.includes(WEB, {})
    assert not focus.includes(replace_name(WEB, "api"), LABELS)
    assert not replace(focus, excluded=(RootTarget(namespace="prod", name="*"),)).includes(WEB, LABELS)


def replace_name(id: ResourceId, name: str) -> ResourceId:
    """The identity of another object of that kind and namespace."""
    return id._replace(name=name)


def test_a_root_that_another_one_controls_belongs_to_it_even_if_two_control_each_other() -> None:
    def owned(name: str, by: str) -> dict[str, object]:
        body = podcliqueset(name, clique("a"))
        reference = {"kind": "PodCliqueSet", "name": by, "uid": f"uid-{by}", "controller": True}
        return {**body, "metadata": {**body["metadata"], "uid": f"uid-{name}", "ownerReferences": [reference] if by else []}}

    toy = Toy()
    toy.put(podcliqueset("a", clique("x")))
    (observed,) = toy.world().roots
    world = World(tuple(replace(observed, root=live(owned(*pair))) for pair in (("a", ""), ("b", "a"), ("c", "d"), ("d", "c"))))

    assert {id.name for id in concerned(world, Focus(targets=(RootTarget(name="a"),)))} == {"a", "b"}
    assert {id.name for id in concerned(world, Focus(targets=(RootTarget(name="b"),)))} == set()
    assert {id.name for id in concerned(world, Focus(frozenset({live(owned("b", "")).id})))} == {"b"}


def test_orphans_of_a_lost_root_are_left_alone_if_the_focus_does_not_name_it() -> None:
    lost = (Plan(WEB, (CHANGE,)),)

    assert within(lost, World(()), Focus(excluded=(RootTarget(name="api"),))).plans == lost
    assert within(lost, World(()), Focus(frozenset())).others.roots == (WEB,)
    assert within(lost, World(()), Focus(selectors=(parse_selector("app!=x"),))).plans == ()


def test_the_budget_is_that_of_the_roots_in_focus() -> None:
    toy = Toy()
    for name in ("small", "large"):
        root = toy.put(podcliqueset(name, clique("a")))
        toy.settle()
        if name == "large":
            toy.put(undesired(root))
    world, small = toy.world(), Focus(targets=(RootTarget(name="small"),))

    whole = plan_all(BLUEPRINTS, world, START, CONFIGURATION, Memo(), Limits(max_deletes=0))
    part = plan_all(BLUEPRINTS, world, START, CONFIGURATION, Memo(), Limits(max_deletes=0), focus=small)

    assert [plan.root.name for plan in whole.plans if plan.objections] == ["large"]
    assert [(plan.root.name, plan.objections) for plan in part.plans] == [("small", ())]
    assert [root.name for root in part.others.roots] == ["large"]
    assert [observed.root.id.name for observed in within(whole.plans, world, small).roots] == ["small"]


def undesired(root: Mapping[str, Any]) -> dict[str, Any]:
    """A Service that a set owns and does not desire."""
    name, uid = root["metadata"]["name"], root["metadata"]["uid"]
    owner = {"apiVersion": root["apiVersion"], "kind": root["kind"], "name": name, "uid": uid, "controller": True}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": name}
    metadata = {"name": f"{name}-0-x", "namespace": "default", "labels": labels, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None"}}
