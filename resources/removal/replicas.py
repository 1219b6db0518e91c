"""Removal of replicas: a replica that the set should no longer have is deleted with its fabric domains."""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from engine.graph import Part, part
from engine.memo import Memo
from engine.observed import Observed, Slice
from engine.plan import Wait
from engine.reason import Because, Reason
from resources.domains.release import DomainRelease, release_domains
from resources.domains.users import claims_on
from resources.model.part_keys import ROOT, SET
from resources.ports.configuration import Configuration
from resources.removal.order import delete_in_order, pending_deletions


class PartRemoval(Struct, frozen=True, eq=False):
    """A replica that is being deleted."""

    part: Part
    release: DomainRelease
    """The release of its fabric domains."""
    pending: tuple[Wait, ...]
    """Its pods that are being deleted."""


def excess_replicas(observed: Observed, count: int, configuration: Configuration, now: datetime, memo: Memo) -> Iterator[PartRemoval]:
    """The removals of the replicas whose index is `count` or greater."""
    for key, lives in sorted(observed.slices.items()):
        if key not in (ROOT, SET) and int(key) >= count:
            why = f"replica {key} is removed: {observed.root.id.name} is scaled to {count}"
            yield remove_part(observed, key, lives, Because(Reason.SCALED_IN, why), configuration, now, memo)


def remove_part(
    observed: Observed, key: str, lives: Slice, because: Because, configuration: Configuration, now: datetime, memo: Memo
) -> PartRemoval:
    """The removal of all objects of one part."""
    kinds = [fabric.kind.name for fabric in configuration.fabrics]
    domains = [live for kind in kinds for live in lives.of(kind)]
    facts = (lives, because.text, configuration, *claims_on(observed, domains, configuration))

    def make() -> PartRemoval:
        release = release_domains(observed, domains, configuration, because, now, (lives,))
        others = (live for live in lives.objects.values() if live.id.kind not in kinds)
        return PartRemoval(
            part(key, [*delete_in_order(others, because), *release.resources]), release, tuple(pending_deletions(lives.objects.values()))
        )

    return memo.recall_until(("removal", key), facts, now, make, lambda removal: removal.release.until)
