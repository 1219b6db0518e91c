"""Scope: which namespaces and which kinds a command reads."""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from engine.blueprint import Blueprint
from engine.ids import Kind
from engine.runtime.provider import Scope
from enginectl.wiring.configuration import Wiring
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS

ROOTS = tuple(blueprint.kind for blueprint in BLUEPRINTS)
"""The kinds of roots."""


class Selection(Struct, frozen=True):
    """What to read: in which namespaces (none: in all), and roots of which kinds."""

    namespaces: tuple[str, ...] = ()
    roots: tuple[Kind, ...] = ROOTS


EVERYTHING = Selection()


def select(
    wiring: Wiring, *, namespaces: Iterable[str] = (), kinds: Collection[str] = frozenset(), default: Iterable[str] = ()
) -> Selection:
    """What to read: the namespaces of the options, else `namespaces` (those of the manifests), else `default`, else all.

    Cluster-scoped roots are read together with all namespaces, or if their kind is among `kinds` (those of the manifests).
    """
    options = wiring.options
    chosen = (options.namespace,) if options.namespace else tuple(namespaces) or tuple(default)
    if options.all_namespaces or not chosen:
        return EVERYTHING
    return Selection(chosen, tuple(kind for kind in ROOTS if kind.namespaced or kind.name in kinds))


def scope_of(
    configuration: Configuration, selection: Selection = EVERYTHING, known: Sequence[Blueprint[Configuration]] = BLUEPRINTS
) -> Scope:
    """What a provider has to list: the roots, their children with the label selector, and the kinds that they refer to.

    `known` are the blueprints of all kinds of roots.
    """
    blueprints = [blueprint for blueprint in known if blueprint.kind in selection.roots]
    children = tuple(dict.fromkeys(kind for blueprint in blueprints for kind in blueprint.children(configuration)))
    references = tuple(dict.fromkeys(kind for blueprint in blueprints for kind in blueprint.references(configuration)))
    policies = {name: policy for blueprint in blueprints for name, policy in blueprint.policies(configuration).items()}
    ours = {kind: policies[kind.name].finalizers for kind in children if kind.name in policies and kind not in references}
    return Scope(selection.roots, children, _selector_of_all(blueprints), selection.namespaces, references, finalizers=ours)


def _selector_of_all(blueprints: Iterable[Blueprint[Configuration]]) -> str:
    """The selector that matches the children of all these roots, whose selectors differ in the value of one label."""
    selectors = list(dict.fromkeys(blueprint.selector for blueprint in blueprints))
    if len(selectors) == 1:
        return selectors[0]
    keys, values = zip(*(selector.split("=", 1) for selector in selectors), strict=True)
    return f"{keys[0]} in ({','.join(values)})"
