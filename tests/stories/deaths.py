"""What a sync leaves behind that is killed, for each write at which it may be."""

from collections import Counter
from typing import Any

from msgspec import Struct

from engine.errors import ClusterError
from engine.runtime.sync_report import Ending
from tests.stories.process import ASIDE, WRITES, Call, Process
from tests.stories.stage import Stage, kept


class Death(Struct, frozen=True):
    """The cluster in which nothing of a process arrives any more, and how often it has created each thing by then."""

    left: Stage
    created: Counter[str]


async def deaths(cluster: Stage, ours: Process, **options: Any) -> list[Death]:
    """Every death of this process while it syncs: before its first write, and after each.

    Before a later write is after the one that precedes it. The process lives on to its end, and nobody repeats for each death what was
    done before.
    """
    found: list[Death] = []
    refuses, on_write = ours.refuses, ours.on_write

    def before(call: Call) -> ClusterError | None:
        if not found and call[0] in WRITES and call[1].name not in ASIDE:
            found.append(Death(kept(cluster), Counter()))
        return refuses(call)

    def after() -> None:
        on_write()
        found.append(Death(kept(cluster), Counter(ours.created)))

    ours.refuses, ours.on_write = before, after
    assert (await cluster.sync(ours, **options)).ending is Ending.DONE
    assert len(found) == ours.count + 1 > 3
    return found
