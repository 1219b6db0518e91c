"""Room: the quotas of namespaces that wait for it are read in turn, and a change of one is noticed once."""

from collections.abc import Iterable

import pytest

from engine.errors import Unreachable
from engine.ids import RESOURCE_QUOTA
from engine.observed import Unlisted, live
from engine.runtime.provider import Observation, Scope
from engine.runtime.room import AT_A_TIME, FORBIDDEN_PAUSE, QuotaRevisions
from tests.engine.runtime.fakes import FakeProvider

pytestmark = pytest.mark.anyio


class Quotas(FakeProvider):
    """A provider of quotas, each of them the only one in its namespace."""

    def __init__(self, namespaces: Iterable[str]) -> None:
        super().__init__()
        self.revisions = dict.fromkeys(namespaces, 1)
        self.scopes: list[Scope] = []
        self.unlisted: Unlisted | None = None

    async def observe(self, scope: Scope) -> Observation:
        """The quotas of the scope."""
        self.scopes.append(scope)
        if self.observe_errors:
            raise self.observe_errors.pop(0)
        if self.unlisted is not None:
            return Observation((), (), {RESOURCE_QUOTA.key: self.unlisted})
        metadata = ({"name": "few", "namespace": name, "resourceVersion": str(self.revisions[name])} for name in scope.namespaces)
        return Observation((), (), references=[live({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": each}) for each in metadata])


async def test_a_quota_that_changes_after_it_was_read_is_noticed_once() -> None:
    quotas, room = Quotas("ab"), QuotaRevisions()
    assert await room.changed(quotas, {"a", "b"}, 0) == frozenset()
    assert await room.changed(quotas, {"a", "b"}, 2) == frozenset()
    quotas.revisions["b"] += 1

    assert await room.changed(quotas, {"a", "b"}, 4) == {"b"}
    assert await room.changed(quotas, {"a", "b"}, 6) == frozenset()


async def test_nothing_is_read_while_no_namespace_waits() -> None:
    quotas = Quotas("ab")

    assert await QuotaRevisions().changed(quotas, set(), 0) == frozenset()
    assert quotas.scopes == []


async def test_what_has_changed_while_a_namespace_did_not_wait_is_not_reported() -> None:
    quotas, room = Quotas("a"), QuotaRevisions()
    await room.changed(quotas, {"a"}, 0)
    await room.changed(quotas, set(), 2)
    quotas.revisions["a"] += 1

    assert await room.changed(quotas, {"a"}, 4) == frozenset()


async def test_of_many_namespaces_a_few_are_read_at_a_time_and_all_in_turn() -> None:
    names = {f"team-{number}" for number in range(3 * AT_A_TIME)}
    quotas, room = Quotas(names), QuotaRevisions()
    for step in range(6):
        await room.changed(quotas, names, step)

    assert [len(scope.namespaces) for scope in quotas.scopes] == [AT_A_TIME] * 6
    assert {name for scope in quotas.scopes[:3] for name in scope.namespaces} == names
    assert {name for scope in quotas.scopes[3:] for name in scope.namespaces} == names


async def test_a_read_that_fails_or_is_not_permitted_changes_nothing() -> None:
    quotas, room = Quotas("a"), QuotaRevisions()
    await room.changed(quotas, {"a"}, 0)
    quotas.observe_errors = [Unreachable("no answer")]
    assert await room.changed(quotas, {"a"}, 2) == frozenset()
    quotas.unlisted = Unlisted("forbidden", is_forbidden=True)
    assert await room.changed(quotas, {"a"}, 4) == frozenset()
    asked = len(quotas.scopes)
    quotas.unlisted, quotas.revisions["a"] = None, 2

    assert await room.changed(quotas, {"a"}, FORBIDDEN_PAUSE) == frozenset()
    assert len(quotas.scopes) == asked
    assert await room.changed(quotas, {"a"}, 4 + FORBIDDEN_PAUSE) == {"a"}
