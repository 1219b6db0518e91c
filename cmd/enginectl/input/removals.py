"""Removals: what a command removes, found out in the cluster before anything is planned."""

from collections.abc import Collection, Iterable
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from engine.errors import InputError
from engine.intent import NO_REMOVALS, Record, RootRemovals
from engine.report.printable import printable
from engine.runtime.provider import Observation, Provider
from enginectl.base import terminal
from enginectl.wiring.configuration import Wiring
from enginectl.wiring.scope import ROOTS, Selection, scope_of


class RemovalScope(Struct, frozen=True, eq=False):
    """What a command removes, and what has to be read for it."""

    selection: Selection
    """The namespaces and kinds of what is removed, besides those that the command reads anyway."""
    removals: RootRemovals = NO_REMOVALS
    record: Record | None = None
    """Where it is noted which members the ApplySet has, if there is one."""


class Removing(Protocol):
    """Finds out what a command removes."""

    async def find(self, wiring: Wiring, provider: Provider, selection: Selection) -> RemovalScope:
        """What is removed, where `selection` is what the command reads anyway. Nothing is written. Raises `InputError`."""
        ...


async def found_by(removing: Removing | None, wiring: Wiring, provider: Provider, selection: Selection) -> RemovalScope:
    """What is removed, with notes on stderr; nothing if the command removes nothing."""
    if removing is None:
        return RemovalScope(selection)
    scope = await removing.find(wiring, provider, selection)
    for note in scope.removals.notes:
        terminal.note(printable(note))
    return scope


def widened(selection: Selection, namespaces: Iterable[str], kinds: Iterable[str]) -> Selection:
    """The selection with more namespaces, and with roots of more kinds. One that has all namespaces has everything."""
    if not selection.namespaces:
        return selection
    names = {kind.name for kind in selection.roots}.union(kinds)
    return Selection(tuple(sorted({*selection.namespaces, *namespaces} - {""})), tuple(kind for kind in ROOTS if kind.name in names))


async def roots_in(
    wiring: Wiring, provider: Provider, selection: Selection, kinds: Collection[str] = frozenset(), hint: str = ""
) -> Observation:
    """The roots in the selection, without anything else.

    Raises `InputError` if those of a kind could not be listed completely. `kinds`: only the names of these matter; empty: all do.
    `hint`: what the user can do then, in words behind a semicolon.
    """
    scope = replace(scope_of(wiring.configuration, selection), children=(), references=())
    observation = await provider.observe(scope)
    for kind in scope.roots:
        if kind.key in observation.incomplete and (not kinds or kind.name in kinds):
            raise InputError(
                f"{kind.name} objects could not be listed completely, so it is not known what is to be removed{hint}: "
                f"{observation.incomplete[kind.key].text}"
            )
    return observation
