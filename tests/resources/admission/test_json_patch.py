"""JSON patches: correct and minimal."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grove_sandbox.apply.patches import PatchFault, patched
from resources.admission.json_patch import PatchOperation, json_patch
from tests.resources.manifests import JSON

KEYS = st.sampled_from(["a", "b", "~", "/", "~1", "", "0", "-"])
DOCUMENTS = st.recursive(
    JSON | st.sampled_from([0, 0.0, 1, 1.0, True, False, "1", None]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS, DOCUMENTS, max_size=5)


def exactly(value: Any) -> str:
    """A document as text, in which `true` is not 1 and 1 is not 1.0."""
    return json.dumps(value, sort_keys=True)


@given(OBJECTS, OBJECTS)
def test_applying_the_patch_gives_the_new_document(old: Any, new: Any) -> None:
    assert exactly(patched(old, json_patch(old, new))) == exactly(new)


@given(OBJECTS)
def test_equal_documents_need_no_patch(document: Any) -> None:
    assert json_patch(document, json.loads(json.dumps(document))) == []


@given(OBJECTS, OBJECTS)
def test_no_operation_can_be_left_out(old: Any, new: Any) -> None:
    steps = json_patch(old, new)

    for left_out in range(len(steps)):
        assert not leads_to(old, [*steps[:left_out], *steps[left_out + 1 :]], new)


def leads_to(old: Any, steps: list[PatchOperation], new: Any) -> bool:
    """Whether these steps can be taken, and make the new document."""
    try:
        return exactly(patched(old, steps)) == exactly(new)
    except PatchFault:
        return False


@pytest.mark.parametrize(
    ("old", "new", "steps"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [{"op": "replace", "path": "/a/c", "value": 3}]),
        ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
        ({}, {"grove.io/auto-mnnvl~": "x"}, [{"op": "add", "path": "/grove.io~1auto-mnnvl~0", "value": "x"}]),
        ({"a": True}, {"a": 1}, [{"op": "replace", "path": "/a", "value": 1}]),
        ({"l": [1, 2, 3]}, {"l": [1, 3]}, [{"op": "remove", "path": "/l/1"}]),
        ({"l": [1, 3]}, {"l": [1, 2, 3]}, [{"op": "add", "path": "/l/1", "value": 2}]),
        ({"l": [1, 2, 3, 4]}, {"l": []}, [{"op": "remove", "path": f"/l/{at}"} for at in (3, 2, 1, 0)]),
        ({"l": [{"a": 1}, {"b": 1}]}, {"l": [{"a": 1, "c": 2}, {"b": 1}]}, [{"op": "add", "path": "/l/0/c", "value": 2}]),
        ({"a": None}, {"a": {}}, [{"op": "replace", "path": "/a", "value": {}}]),
    ],
)
def test_only_differences_are_patched(old: Any, new: Any, steps: list[PatchOperation]) -> None:
    assert json_patch(old, new) == steps
