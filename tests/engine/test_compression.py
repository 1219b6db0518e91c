"""Compression: what is read is what was stored, and objects that are alike take little more than what they differ in."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

from engine.canonical import digest
from engine.observed import MAX_DICTIONARIES, POOR, USES, Compressed, Compressor, Plain, live
from tests.engine.runtime.fakes import LEAF, body

contents = st.binary(max_size=3000) | st.text(max_size=1000).map(str.encode)


def read(source: bytes | Compressed) -> bytes:
    return source.decompress() if isinstance(source, Compressed) else source


def size(source: bytes | Compressed) -> int:
    return len(source.data if isinstance(source, Compressed) else source)


def pod(number: int, *, image: str = "worker:1") -> bytes:
    environment = [{"name": f"VARIABLE_{index}", "value": digest(f"{image}{index}")} for index in range(20)]
    return orjson.dumps({"metadata": {"name": f"pod-{number}", "uid": f"uid-{number}"}, "spec": {"image": image, "env": environment}})


@given(st.lists(st.tuples(st.integers(0, 2), contents), max_size=60))
def test_every_object_is_read_as_it_was_stored(stored: list[tuple[int, bytes]]) -> None:
    compressor = Compressor()

    kept = [compressor.compress(group, content) for group, content in stored]

    assert [read(source) for source in kept] == [content for _, content in stored]


def test_objects_that_are_alike_take_a_small_part_of_their_size() -> None:
    compressor = Compressor()

    sources = [compressor.compress("pods", pod(number)) for number in range(100)]

    assert sum(map(size, sources[1:])) * POOR < sum(len(pod(number)) for number in range(1, 100))


def test_a_dictionary_is_replaced_when_objects_have_become_different() -> None:
    compressor = Compressor()
    for number in range(USES):
        compressor.compress("pods", pod(number))

    sources = [compressor.compress("pods", pod(number, image="an entirely different image")) for number in range(2)]

    assert size(sources[1]) * POOR < size(sources[0])


def test_objects_that_cannot_be_compressed_take_no_more_than_their_size() -> None:
    compressor = Compressor()
    contents = [orjson.dumps([f"{number * 7919**index}" for index in range(40)]) for number in range(1, 10 * USES)]

    sources = [compressor.compress("noise", content) for content in contents]

    dictionaries = {source.dictionary for source in sources if isinstance(source, Compressed)}
    assert sum(size(source) for source in sources) + sum(map(len, dictionaries)) < 1.1 * sum(map(len, contents))


def test_only_so_many_dictionaries_are_in_use() -> None:
    compressor = Compressor()
    for group in range(MAX_DICTIONARIES + 1):
        compressor.compress(group, pod(group))

    assert isinstance(compressor.compress(0, pod(0)), bytes)
    assert isinstance(compressor.compress(MAX_DICTIONARIES, pod(0)), Compressed)


def test_the_first_objects_stay_as_they_are_if_that_is_asked_for() -> None:
    compressor = Compressor(Plain(2 * len(pod(0))))

    sources = [compressor.compress("pods", pod(number)) for number in range(4)]

    assert sources[:3] == [pod(number) for number in range(3)]  # The third is the dictionary of the fourth.
    assert isinstance(sources[3], Compressed)


def test_a_compressed_object_has_the_body_that_it_was_made_from() -> None:
    compressor = Compressor()
    bodies = [body(LEAF, f"leaf-{number}") for number in range(3)]

    lives = [live(each, source=compressor.compress("leaves", orjson.dumps(each))) for each in bodies]

    assert [each.body for each in lives] == bodies
