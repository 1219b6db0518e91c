"""Names: which of many objects exist, with few calls, and what must not be read is told."""

from typing import Any, cast

import pytest

from engine.errors import Forbidden, NotFound, Unauthorized, Unreachable
from engine.ids import Kind, ResourceId
from engine.runtime.provider import Client
from providers.taken_names import FEW, taken_names

pytestmark = pytest.mark.anyio

LEAF = Kind("example.io", "v1", "Leaf", "leaves")
TWIG = Kind("example.io", "v1", "Twig", "twigs")


class FakeClient:
    """Objects by kind and namespace, or the error that reading them has; and the calls that were made."""

    def __init__(self, objects: dict[tuple[Kind, str], set[str] | Exception]) -> None:
        self.objects, self.calls = objects, list[tuple[str, ...]]()

    async def names(self, kind: Kind, namespace: str) -> frozenset[str]:
        """All names."""
        self.calls.append(("names", kind.name, namespace))
        return frozenset(self._read(kind, namespace))

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        """One object."""
        self.calls.append(("get", kind.name, namespace, name))
        if name not in self._read(kind, namespace):
            raise NotFound(name)
        return {}

    def _read(self, kind: Kind, namespace: str) -> set[str]:
        found = self.objects.get((kind, namespace), set())
        if isinstance(found, Exception):
            raise found
        return found


def asked(kind: Kind, namespace: str, *names: str) -> list[tuple[Kind, ResourceId]]:
    """Objects with their kind."""
    return [(kind, kind.id(namespace, name)) for name in names]


async def test_few_objects_are_read_and_of_many_the_names_are_listed_once_for_each_namespace() -> None:
    many = [f"leaf-{number}" for number in range(FEW + 1)]
    client = FakeClient({(LEAF, "a"): {"leaf-1", "other"}, (LEAF, "b"): {"leaf-0"}, (TWIG, "a"): {"twig"}})

    found = await taken_names(cast(Client, client), [*asked(LEAF, "a", *many), *asked(LEAF, "b", *many), *asked(TWIG, "a", "twig", "gone")])

    assert found.ids == {LEAF.id("a", "leaf-1"), LEAF.id("b", "leaf-0"), TWIG.id("a", "twig")}
    assert sorted(client.calls) == [
        ("get", "Twig", "a", "gone"),
        ("get", "Twig", "a", "twig"),
        ("names", "Leaf", "a"),
        ("names", "Leaf", "b"),
    ]
    assert not found.unread


async def test_a_kind_that_may_not_be_read_is_named_and_one_that_is_not_served_has_no_objects() -> None:
    client = FakeClient({(LEAF, "a"): Forbidden("leaves is forbidden"), (TWIG, "a"): NotFound("no such resource")})
    names = [str(number) for number in range(FEW + 1)]

    found = await taken_names(cast(Client, client), [*asked(LEAF, "a", "x"), *asked(TWIG, "a", *names)])

    assert (found.ids, {kind: str(error) for kind, error in found.unread.items()}) == (frozenset(), {"Leaf": "leaves is forbidden"})


@pytest.mark.parametrize("error", [Unreachable("no answer"), Unauthorized("log in again")])
async def test_an_error_that_concerns_the_whole_server_is_raised(error: Exception) -> None:
    client = FakeClient({(LEAF, "a"): error})

    with pytest.raises(type(error)):
        await taken_names(cast(Client, client), asked(LEAF, "a", "x"))
