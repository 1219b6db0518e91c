"""What apply does with two bodies of one shape."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from grove_sandbox.types import fields, typed
from grove_sandbox.types.structural import shape_of

ITEM = {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}
SHAPE = shape_of(
    {
        "type": "object",
        "properties": {
            "plain": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "atomic": {"type": "array", "items": {"type": "integer"}},
            "parts": {"type": "array", "items": ITEM, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }
)
WORDS = st.sampled_from(["x", "y", "z"])
PARTS = st.lists(st.fixed_dictionaries({"name": WORDS}, optional={"size": st.integers(0, 3)}), unique_by=lambda part: part["name"])
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "plain": WORDS,
        "tags": st.lists(WORDS, unique=True),
        "atomic": st.lists(st.integers(0, 3)),
        "parts": PARTS,
        "labels": st.dictionaries(WORDS, WORDS, min_size=1),
    },
)


@given(BODIES)
def test_a_body_does_not_differ_from_itself(body: dict[str, Any]) -> None:
    comparison = typed.compare(body, {**body}, SHAPE)

    assert (comparison.added, comparison.removed, comparison.modified) == ({}, {}, {})


@given(BODIES, BODIES)
def test_after_a_merge_the_configuration_has_its_way(live: dict[str, Any], config: dict[str, Any]) -> None:
    merged = typed.merge(live, config, SHAPE)

    assert typed.merge(merged, config, SHAPE) == merged
    assert typed.field_set(config, SHAPE) == fields.intersection(typed.field_set(config, SHAPE), typed.field_set(merged, SHAPE))


@given(BODIES, BODIES)
def test_a_merge_takes_nothing_away(live: dict[str, Any], config: dict[str, Any]) -> None:
    removed = typed.compare(live, typed.merge(live, config, SHAPE), SHAPE).removed

    assert fields.without(removed, fields.of_paths("atomic", "tags", "parts", "labels")) == {}
    for key in ("tags", "labels"):
        assert set(live.get(key, ())) <= set(typed.merge(live, config, SHAPE).get(key, ()))


@given(BODIES, BODIES)
def test_what_one_side_adds_the_other_removes(old: dict[str, Any], new: dict[str, Any]) -> None:
    there, back = typed.compare(old, new, SHAPE), typed.compare(new, old, SHAPE)

    assert (there.added, there.removed, there.modified) == (back.removed, back.added, back.modified)


def test_items_of_others_keep_their_places_between_ours() -> None:
    live = {"parts": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}

    merged = typed.merge(live, {"parts": [{"name": "c"}, {"name": "a"}]}, SHAPE)

    assert [part["name"] for part in merged["parts"]] == ["b", "c", "a"]


def test_removing_the_last_of_a_map_leaves_null() -> None:
    assert typed.remove({"labels": {"x": "y"}}, {"f:labels": {"f:x": {}}}, SHAPE) == {"labels": None}
