"""Field sets are sets of paths, whatever trie they are kept in."""

from hypothesis import given
from hypothesis import strategies as st

from grove_sandbox.types import fields
from grove_sandbox.types.fields import Fields, Path

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
PATHS = st.lists(STEPS, min_size=1, max_size=4).map(tuple)
SETS = st.frozensets(PATHS, max_size=8)


def trie(members: frozenset[Path]) -> Fields:
    """The set of exactly these paths."""
    made: Fields = {}
    for path in members:
        single: Fields = {}
        for step in reversed(path):
            single = {step: single}
        made = fields.union(made, single)
    return made


def members(found: Fields) -> frozenset[Path]:
    """The paths of a set."""
    return frozenset(fields.paths(found))


@given(SETS)
def test_a_set_holds_what_was_put_into_it(paths: frozenset[Path]) -> None:
    assert members(trie(paths)) == paths


@given(SETS, SETS)
def test_union_difference_and_intersection_are_those_of_sets(left: frozenset[Path], right: frozenset[Path]) -> None:
    assert members(fields.union(trie(left), trie(right))) == left | right
    assert members(fields.difference(trie(left), trie(right))) == left - right
    assert members(fields.intersection(trie(left), trie(right))) == left & right


@given(SETS, SETS)
def test_without_takes_whole_subtrees(left: frozenset[Path], right: frozenset[Path]) -> None:
    def below(path: Path) -> bool:
        return any(path[: len(other)] == other for other in right)

    assert members(fields.without(trie(left), trie(right))) == {path for path in left if not below(path)}


@given(SETS, SETS)
def test_no_operation_changes_its_arguments(left: frozenset[Path], right: frozenset[Path]) -> None:
    one, two = trie(left), trie(right)
    fields.union(one, two), fields.difference(one, two), fields.intersection(one, two), fields.without(one, two)

    assert (members(one), members(two)) == (left, right)


def test_a_path_is_written_as_conflicts_write_it() -> None:
    path = ("f:spec", "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}', "f:name")

    assert fields.dotted(path) == '.spec.ports[containerPort=80,protocol="TCP"].name'
