"""The store: objects that nobody changes, revisions that only grow, and a memory that ends somewhere."""

import orjson
import pytest

from grove_sandbox.api.request import Selection
from grove_sandbox.types.status import StatusError
from sandbox.tests.in_memory import CONFIG, POD, about, config, fresh, pod


def test_bytes_and_bodies_say_the_same_whatever_was_done() -> None:
    api = fresh()
    api.create(about(api, POD), pod("a", nodeName="n"))
    api.patch(about(api, POD, "a"), {"metadata": {"labels": {"x": "y"}}}, "merge")
    api.patch(about(api, POD, "a"), {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "labels": {"z": "1"}}}, "apply")
    api.delete(about(api, POD, "a"))

    for _, collection in api.core.store.collections():
        for change in collection.log:
            assert change.now.body == orjson.loads(change.now.encoded)


def test_a_write_leaves_what_was_answered_before_as_it_was() -> None:
    api = fresh()
    before = api.create(about(api, CONFIG), config("a", labels={"x": "1"}))
    kept = orjson.loads(before.encoded)

    api.patch(about(api, CONFIG, "a"), {"metadata": {"labels": {"x": "2"}}}, "merge")

    assert before.body == kept


def test_pages_show_the_collection_as_it_was_at_the_first() -> None:
    api = fresh()
    for name in ("a", "b", "c"):
        api.create(about(api, CONFIG), config(name))
    first = api.list(about(api, CONFIG), Selection(limit=1))

    api.delete(about(api, CONFIG, "b"))
    api.create(about(api, CONFIG), config("bb"))
    rest = api.list(about(api, CONFIG), Selection(token=first.token))

    assert [item.body["metadata"]["name"] for item in rest.items] == ["b", "c"]
    assert rest.revision == first.revision


def test_a_page_of_a_forgotten_revision_is_refused() -> None:
    api = fresh(history=2)
    for name in ("a", "b"):
        api.create(about(api, CONFIG), config(name))
    first = api.list(about(api, CONFIG), Selection(limit=1))

    for name in ("c", "d", "e", "f", "g"):
        api.create(about(api, CONFIG), config(name))

    with pytest.raises(StatusError) as refused:
        api.list(about(api, CONFIG), Selection(token=first.token))
    assert (refused.value.code, refused.value.reason) == (410, "Expired")


def test_the_same_seed_gives_the_same_world() -> None:
    worlds = [fresh() for _ in range(2)]

    made = [api.create(about(api, POD), {**pod("a"), "metadata": {"generateName": "g-"}}).encoded for api in worlds]

    assert made[0] == made[1]
