"""What counts as a difference between a desired and a live object, and what does not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.diff import Rules, compare, compare_status, covers, same
from engine.ids import ResourceId
from engine.leaves import explain, leaves
from engine.operation import Cause, Change, Patch
from engine.ownership import MANAGER, owned
from engine.resource import PLAIN, Policy

ID = ResourceId("", "Service", "default", "one")


def body(*, labels: dict[str, str] | None = None, fields: dict[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
    """An object; `fields` are those that we own."""
    metadata: dict[str, Any] = {"name": "one", "labels": labels or {}}
    if fields is not None:
        metadata["managedFields"] = [{"manager": MANAGER, "operation": "Update", "fieldsV1": fields}]
    return {"metadata": metadata, **rest}


def difference(desired: dict[str, Any], live: dict[str, Any], policy: Policy = PLAIN) -> dict[str, Any]:
    """The patch that makes the live object match."""
    return compare(desired, live, Rules(policy, Cause.DRIFT)).patch


def test_fields_that_the_server_adds_are_no_difference() -> None:
    assert difference(body(spec={"a": 1}), body(spec={"a": 1, "defaulted": True}, status={"x": 1})) == {}


def test_a_field_that_differs_is_patched_alone() -> None:
    assert difference(body(spec={"a": 1, "b": 2}), body(spec={"a": 1, "b": 3})) == {"spec": {"b": 2}}


def test_a_label_that_we_set_and_dropped_is_removed_and_those_of_others_stay() -> None:
    live = body(labels={"ours": "1", "theirs": "2"}, fields={"f:metadata": {"f:labels": {"f:ours": {}}}})

    assert difference(body(), live) == {"metadata": {"labels": {"ours": None}}}


@pytest.mark.parametrize("is_first", [True, False])
def test_what_we_own_is_in_all_records_of_our_manager(is_first: bool) -> None:
    live = body(spec={"limits": {"cpu": 1}, "replicas": 2}, fields={"f:spec": {".": {}, "f:limits": {".": {}, "f:cpu": {}}}})
    scaled = {"manager": MANAGER, "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    live["metadata"]["managedFields"].insert(0 if is_first else 1, scaled)

    assert owned(live) == {"f:spec": {".": {}, "f:limits": {".": {}, "f:cpu": {}}, "f:replicas": {}}}
    assert difference(body(spec={"replicas": 2}), live, Policy(owned=(("spec", "limits"),))) == {"spec": {"limits": None}}


def test_a_map_that_we_set_and_dropped_keeps_the_keys_of_others() -> None:
    live = body(spec={"selector": {"ours": "1", "theirs": "2"}}, fields={"f:spec": {"f:selector": {"f:ours": {}}}})

    assert difference(body(spec={}), live, Policy(owned=(("spec", "selector"),))) == {"spec": {"selector": {"ours": None}}}


LIMITS: dict[str, Any] = {".": {}, "f:cpu": {}, "f:inner": {".": {}, "f:gpu": {}}}
"""The ownership of a map that we made, and of its fields."""


def test_a_map_that_is_ours_with_all_its_fields_is_removed_by_one_change() -> None:
    live = body(spec={"limits": {"cpu": 1, "inner": {"gpu": 2}}}, fields={"f:spec": {".": {}, "f:limits": LIMITS}})

    assert difference(body(spec={}), live, Policy(owned=(("spec", "limits"),))) == {"spec": {"limits": None}}


@pytest.mark.parametrize(
    ("limits", "fields", "patch"),
    [
        ({"cpu": 1, "theirs": 2, "inner": {"gpu": 2}}, LIMITS, {"cpu": None, "inner": None}),
        ({"cpu": 1, "inner": {"gpu": 2, "theirs": 3}}, LIMITS, {"cpu": None, "inner": {"gpu": None}}),
        ({"cpu": 1}, {"f:cpu": {}}, {"cpu": None}),
    ],
    ids=["a field of others", "a field of others deeper down", "a map that others made"],
)
def test_a_map_that_is_ours_in_part_loses_only_that(limits: dict[str, Any], fields: dict[str, Any], patch: dict[str, Any]) -> None:
    live = body(spec={"limits": limits}, fields={"f:spec": {".": {}, "f:limits": fields}})

    assert difference(body(spec={}), live, Policy(owned=(("spec", "limits"),))) == {"spec": {"limits": patch}}


def test_a_map_with_a_seeded_field_is_not_removed_as_a_whole() -> None:
    live = body(spec={"limits": {"cpu": 1, "inner": {"gpu": 2}}}, fields={"f:spec": {".": {}, "f:limits": LIMITS}})
    policy = Policy(owned=(("spec", "limits"),), seeded=(("spec", "limits", "cpu"),))

    assert difference(body(spec={}), live, policy) == {"spec": {"limits": {"inner": None}}}


def test_labels_that_we_dropped_are_listed_one_by_one() -> None:
    live = body(labels={"a": "1", "b": "2"}, fields={"f:metadata": {"f:labels": {".": {}, "f:a": {}, "f:b": {}}}})
    desired: dict[str, Any] = {"metadata": {"name": "one"}}

    assert difference(desired, live) == {"metadata": {"labels": {"a": None, "b": None}}}


def test_a_default_of_the_server_that_counts_as_our_field_is_left_alone() -> None:
    live = body(spec={"type": "ClusterIP"}, fields={"f:spec": {"f:type": {}}})

    assert difference(body(spec={}), live) == {}
    assert difference(body(), live) == {}


def test_a_field_that_is_not_desired_must_have_the_servers_default() -> None:
    policy = Policy(defaults=((("spec", "metrics"), [{"type": "cpu"}]),))

    assert difference(body(spec={"max": 2}), body(spec={"max": 2, "metrics": [{"type": "cpu"}]}), policy) == {}
    assert difference(body(spec={"max": 2}), body(spec={"max": 2, "metrics": [{"type": "mine"}]}), policy) == {"spec": {"metrics": None}}


def test_a_quantity_is_equal_however_it_is_spelled_and_only_under_its_key() -> None:
    policy = Policy(quantities=frozenset({"averageValue"}))
    desired, live = body(spec={"m": [{"averageValue": "1500m", "name": "1000m"}]}), {"averageValue": "1.5", "name": "1000m"}

    assert difference(desired, body(spec={"m": [live]}), policy) == {}
    assert difference(desired, body(spec={"m": [{**live, "name": "1"}]}), policy) != {}
    assert difference(desired, body(spec={"m": [{**live, "averageValue": "2"}]}), policy) != {}


def test_an_exact_value_whose_seal_agrees_need_only_be_covered() -> None:
    policy = Policy(exact=(("spec",),), seal="hash")
    desired = body(labels={"hash": "1"}, spec={"ports": [{"port": 80}]})
    defaulted = {"ports": [{"port": 80, "protocol": "TCP"}]}

    assert difference(desired, body(labels={"hash": "1"}, spec=defaulted), policy) == {}
    assert difference(desired, body(labels={"hash": "0"}, spec=defaulted), policy)["spec"] == {"ports": [{"port": 80}]}


def test_a_list_that_we_own_as_a_whole_must_be_equal_and_any_other_covered() -> None:
    desired, live = body(spec={"items": [{"a": 1}]}), [{"a": 1, "b": 2}]
    owned: dict[str, Any] = {"f:spec": {"f:items": {}}}

    assert difference(desired, body(spec={"items": live}, fields=owned)) == {"spec": {"items": [{"a": 1}]}}
    assert difference(desired, body(spec={"items": live}, fields={})) == {}


def test_a_seeded_field_is_never_compared_nor_removed() -> None:
    policy = Policy(seeded=(("spec", "replicas"),))
    fields: dict[str, Any] = {"f:spec": {"f:replicas": {}}}

    assert difference(body(spec={"replicas": 1}), body(spec={"replicas": 7}, fields=fields), policy) == {}
    assert difference(body(spec={}), body(spec={"replicas": 7}, fields=fields), policy) == {}


def test_beneath_an_exact_path_every_other_field_is_removed() -> None:
    policy = Policy(exact=(("spec",),))

    assert difference(body(spec={"a": {"b": 1}}), body(spec={"a": {"b": 1, "c": 2}, "d": 3}), policy) == {
        "spec": {"a": {"c": None}, "d": None}
    }


def test_beneath_a_partial_path_nothing_is_removed() -> None:
    live = body(labels={"ours": "1"}, fields={"f:metadata": {"f:labels": {"f:ours": {}}}})

    assert difference(body(), live, Policy(partial=(("metadata", "labels"),))) == {}


def test_an_absent_field_equals_an_empty_one() -> None:
    assert difference(body(spec={"a": {}, "b": [], "c": None}), body(spec={})) == {}


def test_a_change_of_a_field_that_we_own_is_intent_and_of_any_other_drift() -> None:
    desired, rules = body(spec={"a": 2}), Rules(PLAIN, Cause.DRIFT)

    (own,) = compare(desired, body(spec={"a": 1}, fields={"f:spec": {"f:a": {}}}), rules).changes
    (foreign,) = compare(desired, body(spec={"a": 1}, fields={"f:spec": {"f:b": {}}}), rules).changes
    (unrecorded,) = compare(desired, body(spec={"a": 1}), rules).changes

    assert (own.cause, foreign.cause, unrecorded.cause) == (Cause.INTENT, Cause.DRIFT, Cause.INTENT)


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), ({"a": 1}, {"a": True}), ([1], [True]), ("1", 1)])
def test_values_that_only_python_calls_equal_are_different(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not covers(one, other)


def test_the_order_of_arguments_matters() -> None:
    assert not covers(["--a", "1", "--b", "2"], ["--b", "2", "--a", "1"])


def test_a_status_field_of_none_is_removed_and_others_stay() -> None:
    state = compare_status({"count": 1, "progress": None}, {"count": 1, "progress": {"x": 1}, "foreign": 5})

    assert state.patch == {"status": {"progress": None}}


def test_an_explanation_names_the_container_and_the_variable() -> None:
    old = [{"name": "main", "image": "a:1", "env": [{"name": "MODE", "value": "x"}]}]
    new = [{"name": "sidecar", "image": "b"}, {"name": "main", "image": "a:2", "env": [{"name": "MODE", "value": "x"}]}]
    change = Change(("spec", "containers"), old, new, Cause.INTENT)

    lines = explain(Patch(ID, "why", Cause.INTENT, patch={}, changes=(change,)))

    assert [(line.path, line.old, line.new) for line in lines] == [
        (("spec", "containers", "[main]", "image"), "a:1", "a:2"),
        (("spec", "containers", "[sidecar]"), None, {"name": "sidecar", "image": "b"}),
    ]


def test_a_plain_change_explains_itself() -> None:
    change = Change(("spec", "replicas"), 1, 2, Cause.INTENT)

    assert explain(Patch(ID, "why", Cause.INTENT, patch={}, changes=(change,))) == (change,)


VALUES = st.recursive(
    st.sampled_from([0, 1, False, True, "", "0", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "value", "__hidden", "ports"]), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, VALUES)
def test_every_difference_has_a_line_and_nothing_else_has(old: Any, new: Any) -> None:
    lines = list(leaves(Change(("spec",), old, new, Cause.INTENT)))

    assert bool(lines) is not same(old, new) or not isinstance(new, dict | list)
    assert not any(same(leaf.old, leaf.new) for leaf in lines) or same(old, new)


def moved(old: Any, new: Any) -> list[tuple[tuple[str, ...], Any, Any, bool]]:
    return [(leaf.path, leaf.old, leaf.new, leaf.order) for leaf in leaves(Change(("spec",), old, new, Cause.INTENT))]


def test_entries_that_change_places_are_one_change_of_their_keys() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}]

    assert moved({"ports": ports}, {"ports": ports[::-1]}) == [(("spec", "ports"), ["80", "81"], ["81", "80"], True)]


def test_entries_without_keys_that_change_places_are_one_change_of_the_entries() -> None:
    assert moved({"args": ["--a", "--b"]}, {"args": ["--b", "--a"]}) == [(("spec", "args"), ["--a", "--b"], ["--b", "--a"], True)]


def test_entries_that_change_places_and_content_are_told_as_both() -> None:
    old = [{"name": "a", "image": "a:1"}, {"name": "b", "env": [{"name": "X"}, {"name": "Y"}]}]
    new = [{"name": "c"}, {"name": "b", "env": [{"name": "Y"}, {"name": "X"}]}, {"name": "a", "image": "a:2"}]

    assert moved(old, new) == [
        (("spec",), ["a", "b"], ["c", "b", "a"], True),
        (("spec", "[b]", "env"), ["X", "Y"], ["Y", "X"], True),
        (("spec", "[a]", "image"), "a:1", "a:2", False),
        (("spec", "[c]"), None, {"name": "c"}, False),
    ]


def test_an_entry_that_is_added_moves_no_other() -> None:
    assert moved([{"name": "a"}], [{"name": "b"}, {"name": "a"}]) == [(("spec", "[b]"), None, {"name": "b"}, False)]


def test_of_labels_that_all_come_or_go_each_is_a_change() -> None:
    change = Change(("metadata", "labels"), None, {"a": "", "b": "1"}, Cause.DRIFT)

    assert [(leaf.path, leaf.old, leaf.new) for leaf in leaves(change)] == [
        (("metadata", "labels", "a"), None, ""),
        (("metadata", "labels", "b"), None, "1"),
    ]
