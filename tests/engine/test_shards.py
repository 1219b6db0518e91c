"""Shards: where a namespace belongs is fixed for ever, and replicas that each decide by themselves come to even shares and stay there."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as some

from engine.shards import Division, Shard, shard_of, shards_of, shards_to_give_back, shards_to_take, weight


@pytest.mark.parametrize(
    ("namespace", "of_two", "of_three", "of_eight"),
    [("", 0, 0, 6), ("default", 1, 1, 4), ("team-a", 1, 1, 4), ("team-b", 1, 1, 6), ("grove-system", 0, 0, 4), ("prod", 0, 0, 5)],
)
def test_the_shard_of_a_namespace_is_the_same_in_every_version(namespace: str, of_two: int, of_three: int, of_eight: int) -> None:
    assert (shard_of(namespace, 2), shard_of(namespace, 3), shard_of(namespace, 8)) == (of_two, of_three, of_eight)
    assert shard_of(namespace, 1) == 0


def test_the_weight_is_the_beginning_of_a_sha256_digest() -> None:
    # echo -n 2/team-a | sha256sum | cut -c-16
    assert f"{weight('2', 'team-a'):016x}" == "6b3710884d7af77b"


def test_another_shard_takes_namespaces_from_the_others_and_moves_no_other_one() -> None:
    names = [f"ns-{number}" for number in range(1000)]

    moved = {name for name in names if shard_of(name, 4) != shard_of(name, 5)}

    assert {shard_of(name, 5) for name in moved} == {4}
    assert all(150 < count < 250 for count in Counter(shard_of(name, 5) for name in names).values())


def test_a_writer_needs_the_shards_of_its_namespaces_and_that_of_cluster_scoped_objects_only_if_it_writes_those() -> None:
    assert shards_of((), 3, cluster_scoped=True) == (0, 1, 2)
    assert shards_of(("team-b", "prod", "team-a"), 3, cluster_scoped=False) == (0, 1)
    assert shards_of(("team-a",), 3, cluster_scoped=True) == (0, 1)
    assert Shard(1, 3).contains("team-a") and not Shard(0, 3).contains("team-a")


@given(some.integers(1, 12), some.integers(1, 6), some.data())
def test_replicas_that_decide_one_after_the_other_divide_the_shards_evenly_and_then_move_none(
    count: int, number: int, data: some.DataObject
) -> None:
    replicas = [f"replica-{index}" for index in range(number)]
    holders = data.draw(some.lists(some.sampled_from(["", *replicas]), min_size=count, max_size=count))
    moves = 0
    for _ in range(4 * count):
        for replica in replicas:
            division = Division(tuple(holders), frozenset(replicas))
            for shard in shards_to_give_back(division, replica):
                assert holders[shard] == replica
                holders[shard], moves = "", moves + 1
            division = Division(tuple(holders), frozenset(replicas))
            for shard in shards_to_take(division, replica):
                assert holders[shard] == ""
                holders[shard] = replica

    shares = Counter(holders)
    assert "" not in shares
    assert {shares[replica] for replica in replicas} <= {count // number, -(-count // number)}
    division = Division(tuple(holders), frozenset(replicas))
    assert not any(shards_to_take(division, replica) or shards_to_give_back(division, replica) for replica in replicas)
    assert moves <= count


@given(some.integers(1, 12), some.integers(1, 6), some.data())
def test_replicas_that_decide_at_the_same_time_never_give_back_what_nobody_lacks(count: int, number: int, data: some.DataObject) -> None:
    replicas = [f"replica-{index}" for index in range(number)]
    holders = data.draw(some.lists(some.sampled_from(["", *replicas]), min_size=count, max_size=count))
    for _ in range(4 * count):
        division = Division(tuple(holders), frozenset(replicas))
        given = [shard for replica in replicas for shard in shards_to_give_back(division, replica)]
        # Several may try to take the same shard: its Lease decides for one of them.
        wanted = {shard: replica for replica in replicas for shard in shards_to_take(division, replica)}
        for shard in given:
            holders[shard] = ""
        for shard, replica in wanted.items():
            holders[shard] = replica

    shares = Counter(holders)
    assert "" not in shares and {shares[replica] for replica in replicas} <= {count // number, -(-count // number)}


def test_a_shard_that_a_sync_holds_is_not_missed_by_the_replicas() -> None:
    division = Division(("sync", "a", "a", "b"), frozenset({"a", "b"}))

    assert shards_to_give_back(division, "a") == () == shards_to_take(division, "b")
