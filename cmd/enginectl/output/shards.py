"""The shards of the namespaces and their holders: a table for people, and entries of the JSON document."""

from collections.abc import Iterator, Sequence
from typing import Any

from engine.report.printable import Line, clipped, printable
from engine.runtime.lease_holder import MAX_IDENTITY, MAX_PURPOSE, readable
from engine.runtime.shard_leases import ShardHolder
from enginectl.output.tables import table

HEADERS = ("SHARD", "HOLDER", "SINCE", "RENEWED", "FOR")


def shard_lines(shards: Sequence[ShardHolder]) -> Iterator[Line]:
    """The table of shards and their holders."""
    head, *rows = table(HEADERS, [shard_row(shard, len(shards)) for shard in shards])
    yield Line(head, "head")
    for shard, row in zip(shards, rows, strict=True):
        yield Line(row, "" if shard.holder.identity else "blocked")


def shard_row(shard: ShardHolder, count: int) -> tuple[str, ...]:
    """The cells of one shard."""
    holder = shard.holder
    if not holder.identity:
        return (f"{shard.index} of {count}", "nobody", "", "", "")
    who, purpose = clipped(readable(holder.identity), MAX_IDENTITY), clipped(holder.purpose, MAX_PURPOSE)
    return (f"{shard.index} of {count}", who, printable(holder.acquired_at), printable(shard.renewed_at), purpose)


def shard_entry(shard: ShardHolder) -> dict[str, Any]:
    """A shard in the JSON document; `holder` is null if nobody holds it."""
    holder = shard.holder
    return {
        "shard": shard.index,
        "lease": shard.lease,
        "holder": holder.identity or None,
        "since": holder.acquired_at or None,
        "renewed": shard.renewed_at or None,
        "purpose": holder.purpose or None,
    }
