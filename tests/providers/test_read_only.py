"""A read-only provider refuses every write."""

from collections.abc import Mapping
from typing import Any

import pytest

from engine.errors import Forbidden
from engine.event import Event
from engine.ids import ResourceId
from engine.operation import Cause, Operation
from engine.verb import Verb
from providers.read_only import ReadOnlyProvider
from providers.snapshot import Snapshot
from tests.operations import operation_of

pytestmark = pytest.mark.anyio
POD = ResourceId("", "Pod", "a", "p")


class WriteFails(Snapshot):
    """A provider that fails the test when something is written."""

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Never."""
        pytest.fail("a write went through")

    async def record(self, event: Event) -> None:
        """Never."""
        pytest.fail("an event went through")


@pytest.mark.parametrize("verb", Verb)
async def test_every_operation_is_refused_before_it_reaches_the_provider(verb: Verb) -> None:
    with pytest.raises(Forbidden):
        await ReadOnlyProvider(WriteFails()).execute(operation_of(verb, POD, "why", Cause.INTENT), {})


async def test_no_event_is_recorded() -> None:
    await ReadOnlyProvider(WriteFails()).record(Event(POD, "u", "Created", "made"))
