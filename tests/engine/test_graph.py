"""A graph holds every name once, has no cycle, and has an order of its own."""

import pytest

from engine.errors import GraphError
from engine.graph import Part, graph, part
from engine.ids import ResourceId
from engine.resource import Resource, Want


def named(name: str) -> ResourceId:
    """An identity."""
    return ResourceId("", "Thing", "default", name)


def thing(name: str, *after: str) -> Resource:
    """A resource that comes after others."""
    return Want(named(name), f"wants {name}", body={}, after=frozenset(map(named, after)))


def order(part: Part) -> list[str]:
    """The names of a part, in order."""
    return [id.name for id in part.resources]


def test_a_resource_comes_after_those_it_needs_and_by_name_where_there_is_a_choice() -> None:
    things = [thing("a", "d"), thing("b"), thing("c", "b"), thing("d")]

    assert order(part("x", things)) == ["b", "c", "d", "a"]
    assert order(part("x", reversed(things))) == ["b", "c", "d", "a"]


def test_two_resources_of_one_name_are_refused_with_both_reasons() -> None:
    with pytest.raises(GraphError, match="Thing/default/a is defined twice: wants a; wants a"):
        part("x", [thing("a"), thing("a")])
    with pytest.raises(GraphError, match="defined twice"):
        graph([part("x", [thing("a")]), part("y", [thing("a")])])


def test_a_cycle_is_refused_and_its_members_are_named() -> None:
    with pytest.raises(GraphError, match="in a cycle: Thing/default/a, Thing/default/b"):
        part("x", [thing("a", "b"), thing("b", "a"), thing("c")])


def test_a_part_may_need_resources_of_earlier_parts_and_of_no_part_but_not_of_later_ones() -> None:
    first, second = part("first", [thing("a", "elsewhere")]), part("second", [thing("b", "a")])

    assert list(graph([first, second]).resources) == [named("a"), named("b")]
    with pytest.raises(GraphError, match="part 'second' comes before Thing/default/a"):
        graph([second, first])


def test_what_an_earlier_graph_had_under_the_same_names_is_not_checked_again_and_everything_else_is() -> None:
    first, second = part("first", [thing("a", "elsewhere")]), part("second", [thing("b", "a")])
    again = part("second", [thing("b", "a")])

    assert graph([first, again], (first, second)).resources[named("b")] is again.resources[named("b")]
    with pytest.raises(GraphError, match="defined twice"):
        graph([first, part("second", [thing("a")])], (first, second))
    with pytest.raises(GraphError, match="part 'first' comes before Thing/default/b"):
        graph([part("first", [thing("a", "b")]), second], (first, second))
    with pytest.raises(GraphError, match="part 'second' comes before Thing/default/a"):
        graph([second, first], (first, second))
