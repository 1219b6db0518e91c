"""What a difference is, and what it is not."""

from typing import Any

import pytest

from engine.diff import Rules, compare, compare_status, covers, explain, same
from engine.ids import ResourceId
from engine.operation import Cause, Change, Operation
from engine.ownership import MANAGER
from engine.resource import PLAIN, Policy
from engine.verb import Verb

ID = ResourceId("", "Service", "default", "one")


def body(*, labels: dict[str, str] | None = None, fields: dict[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
    """An object; `fields` are those that we own in it."""
    metadata: dict[str, Any] = {"name": "one", "labels": labels or {}}
    if fields is not None:
        metadata["managedFields"] = [{"manager": MANAGER, "operation": "Update", "fieldsV1": fields}]
    return {"metadata": metadata, **rest}


def difference(wanted: dict[str, Any], live: dict[str, Any], policy: Policy = PLAIN) -> dict[str, Any]:
    """The patch from live to wanted."""
    return compare(wanted, live, Rules(policy, Cause.DRIFT)).patch


def test_what_the_server_adds_is_no_difference() -> None:
    assert difference(body(spec={"a": 1}), body(spec={"a": 1, "defaulted": True}, status={"x": 1})) == {}


def test_a_field_that_differs_is_patched_alone() -> None:
    assert difference(body(spec={"a": 1, "b": 2}), body(spec={"a": 1, "b": 3})) == {"spec": {"b": 2}}


def test_a_label_we_set_and_dropped_is_taken_away_and_nobody_elses() -> None:
    live = body(labels={"ours": "1", "theirs": "2"}, fields={"f:metadata": {"f:labels": {"f:ours": {}}}})

    assert difference(body(), live) == {"metadata": {"labels": {"ours": None}}}


def test_a_map_we_set_and_dropped_keeps_what_others_put_into_it() -> None:
    live = body(spec={"selector": {"ours": "1", "theirs": "2"}}, fields={"f:spec": {"f:selector": {"f:ours": {}}}})

    assert difference(body(spec={}), live, Policy(owned=(("spec", "selector"),))) == {"spec": {"selector": {"ours": None}}}


def test_what_the_server_filled_in_counts_as_ours_there_and_is_left_alone() -> None:
    live = body(spec={"type": "ClusterIP"}, fields={"f:spec": {"f:type": {}}})

    assert difference(body(spec={}), live) == {}
    assert difference(body(), live) == {}


def test_where_we_say_nothing_the_servers_default_may_stand_and_nothing_else() -> None:
    policy = Policy(defaults=((("spec", "metrics"), [{"type": "cpu"}]),))

    assert difference(body(spec={"max": 2}), body(spec={"max": 2, "metrics": [{"type": "cpu"}]}), policy) == {}
    assert difference(body(spec={"max": 2}), body(spec={"max": 2, "metrics": [{"type": "mine"}]}), policy) == {"spec": {"metrics": None}}


def test_a_quantity_is_the_same_however_it_is_spelled_and_only_where_it_is_one() -> None:
    policy = Policy(quantities=frozenset({"averageValue"}))
    wanted, live = body(spec={"m": [{"averageValue": "1500m", "name": "1000m"}]}), {"averageValue": "1.5", "name": "1000m"}

    assert difference(wanted, body(spec={"m": [live]}), policy) == {}
    assert difference(wanted, body(spec={"m": [{**live, "name": "1"}]}), policy) != {}
    assert difference(wanted, body(spec={"m": [{**live, "averageValue": "2"}]}), policy) != {}


def test_an_exact_value_whose_seal_agrees_need_only_be_covered() -> None:
    policy = Policy(exact=(("spec",),), seal="hash")
    wanted = body(labels={"hash": "1"}, spec={"ports": [{"port": 80}]})
    defaulted = {"ports": [{"port": 80, "protocol": "TCP"}]}

    assert difference(wanted, body(labels={"hash": "1"}, spec=defaulted), policy) == {}
    assert difference(wanted, body(labels={"hash": "0"}, spec=defaulted), policy)["spec"] == {"ports": [{"port": 80}]}


def test_a_list_we_own_as_a_whole_must_be_equal_a_strangers_need_only_cover() -> None:
    wanted, live = body(spec={"items": [{"a": 1}]}), [{"a": 1, "b": 2}]
    ours: dict[str, Any] = {"f:spec": {"f:items": {}}}

    assert difference(wanted, body(spec={"items": live}, fields=ours)) == {"spec": {"items": [{"a": 1}]}}
    assert difference(wanted, body(spec={"items": live}, fields={})) == {}


def test_a_seeded_field_is_never_compared_nor_taken_away() -> None:
    policy = Policy(seeded=(("spec", "replicas"),))
    fields: dict[str, Any] = {"f:spec": {"f:replicas": {}}}

    assert difference(body(spec={"replicas": 1}), body(spec={"replicas": 7}, fields=fields), policy) == {}
    assert difference(body(spec={}), body(spec={"replicas": 7}, fields=fields), policy) == {}


def test_beneath_an_exact_path_nothing_else_may_be() -> None:
    policy = Policy(exact=(("spec",),))

    assert difference(body(spec={"a": {"b": 1}}), body(spec={"a": {"b": 1, "c": 2}, "d": 3}), policy) == {
        "spec": {"a": {"c": None}, "d": None}
    }


def test_beneath_a_partial_path_nothing_is_taken_away() -> None:
    live = body(labels={"ours": "1"}, fields={"f:metadata": {"f:labels": {"f:ours": {}}}})

    assert difference(body(), live, Policy(partial=(("metadata", "labels"),))) == {}


def test_an_empty_wish_is_met_by_an_absent_field() -> None:
    assert difference(body(spec={"a": {}, "b": [], "c": None}), body(spec={})) == {}


def test_a_change_of_ours_is_intent_and_a_strangers_is_drift() -> None:
    wanted, rules = body(spec={"a": 2}), Rules(PLAIN, Cause.DRIFT)

    (ours,) = compare(wanted, body(spec={"a": 1}, fields={"f:spec": {"f:a": {}}}), rules).changes
    (theirs,) = compare(wanted, body(spec={"a": 1}), rules).changes

    assert (ours.cause, theirs.cause) == (Cause.INTENT, Cause.DRIFT)


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), ({"a": 1}, {"a": True}), ([1], [True]), ("1", 1)])
def test_values_that_only_python_calls_equal_are_different(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not covers(one, other)


def test_the_order_of_arguments_matters() -> None:
    assert not covers(["--a", "1", "--b", "2"], ["--b", "2", "--a", "1"])


def test_a_status_says_what_must_not_be_there() -> None:
    state = compare_status({"count": 1, "progress": None}, {"count": 1, "progress": {"x": 1}, "foreign": 5})

    assert state.patch == {"status": {"progress": None}}


def test_an_explanation_names_the_container_and_the_variable() -> None:
    old = [{"name": "main", "image": "a:1", "env": [{"name": "MODE", "value": "x"}]}]
    new = [{"name": "sidecar", "image": "b"}, {"name": "main", "image": "a:2", "env": [{"name": "MODE", "value": "x"}]}]
    change = Change(("spec", "containers"), old, new, Cause.INTENT)

    lines = explain(Operation(Verb.PATCH, ID, "why", Cause.INTENT, changes=(change,)))

    assert [(line.path, line.old, line.new) for line in lines] == [
        (("spec", "containers", "[main]", "image"), "a:1", "a:2"),
        (("spec", "containers", "[sidecar]"), None, {"name": "sidecar", "image": "b"}),
    ]


def test_a_plain_change_explains_itself() -> None:
    change = Change(("spec", "replicas"), 1, 2, Cause.INTENT)

    assert explain(Operation(Verb.PATCH, ID, "why", Cause.INTENT, changes=(change,))) == (change,)
