"""Scope: which namespaces and which kinds a command reads."""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from engine.blueprint import Blueprint
from engine.errors import InputError
from engine.ids import Kind
from engine.report.printable import clipped
from engine.runtime.provider import Scope
from enginectl.wiring.configuration import Wiring
from resources.ports.configuration import Configuration
from resources.registry import BLUEPRINTS, is_managed

ROOTS = tuple(blueprint.kind for blueprint in BLUEPRINTS)
"""The kinds of roots."""


class Selection(Struct, frozen=True):
    """What to read: in which namespaces (none: in all), and roots of which kinds."""

    namespaces: tuple[str, ...] = ()
    roots: tuple[Kind, ...] = ROOTS


EVERYTHING = Selection()
MAX_NAMES = 5
"""How many namespaces a message names."""


def select(
    wiring: Wiring, *, namespaces: Iterable[str] = (), kinds: Collection[str] = frozenset(), default: Iterable[str] = ()
) -> Selection:
    """What to read: the namespaces of the options, else `namespaces` (those of the manifests), else `default`, else all.

    Cluster-scoped roots are read together with all namespaces, or if their kind is among `kinds` (those of the manifests).
    All namespaces are those that the configuration manages. Raises `InputError` for others, and for kinds that it does not manage.
    """
    options, configuration = wiring.options, wiring.configuration
    require_managed_kinds(configuration, kinds)
    chosen = (options.namespace,) if options.namespace else tuple(namespaces) or tuple(default)
    if options.all_namespaces or not chosen:
        managed_namespaces(configuration, namespaces)
        return Selection(configuration.namespaces)
    return Selection(managed_namespaces(configuration, chosen), tuple(kind for kind in ROOTS if kind.namespaced or kind.name in kinds))


def require_managed_kinds(configuration: Configuration, names: Collection[str]) -> None:
    """Raise `InputError` if roots of one of these kinds are not managed under the configuration."""
    if unmanaged := [kind for kind in ROOTS if kind.name in names and not is_managed(kind, configuration)]:
        raise InputError(f"{unmanaged[0].name}s are not managed: dynamo.enabled of the configuration is false")


def managed_namespaces(configuration: Configuration, chosen: Iterable[str]) -> tuple[str, ...]:
    """The chosen namespaces, none being all that are managed. Raises `InputError` for one that is not managed."""
    names, managed = tuple(name for name in chosen if name), configuration.namespaces
    if not managed:
        return names
    if outside := sorted(set(names) - set(managed)):
        more = f" and {len(outside) - 1} more" if len(outside) > 1 else ""
        raise InputError(
            f"namespace {clipped(outside[0], 80)}{more}: not managed by this installation, whose `namespaces` are {called(managed)}"
        )
    return names or managed


def called(namespaces: Sequence[str]) -> str:
    """At most `MAX_NAMES` of the namespaces, and how many more there are."""
    more = f" and {len(namespaces) - MAX_NAMES} more" if len(namespaces) > MAX_NAMES else ""
    return f"{', '.join(namespaces[:MAX_NAMES])}{more}"


def scope_of(
    configuration: Configuration, selection: Selection = EVERYTHING, known: Sequence[Blueprint[Configuration]] = BLUEPRINTS
) -> Scope:
    """What a provider has to list: the roots, their children with the label selector, and the kinds that they refer to.

    `known` are the blueprints of all kinds of roots. What the configuration does not manage is not listed. Raises `InputError` for chosen
    namespaces that it does not manage.
    """
    roots = tuple(kind for kind in selection.roots if is_managed(kind, configuration))
    blueprints = [blueprint for blueprint in known if blueprint.kind in roots]
    children = tuple(dict.fromkeys(kind for blueprint in blueprints for kind in blueprint.children(configuration)))
    references = tuple(dict.fromkeys(kind for blueprint in blueprints for kind in blueprint.references(configuration)))
    policies = {name: policy for blueprint in blueprints for name, policy in blueprint.policies(configuration).items()}
    ours = {kind: policies[kind.name].finalizers for kind in children if kind.name in policies and kind not in references}
    namespaces = managed_namespaces(configuration, selection.namespaces)
    return Scope(roots, children, _selector_of_all(blueprints), namespaces, references, finalizers=ours)


def _selector_of_all(blueprints: Iterable[Blueprint[Configuration]]) -> str:
    """The selector that matches the children of all these roots, whose selectors differ in the value of one label."""
    selectors = list(dict.fromkeys(blueprint.selector for blueprint in blueprints))
    if len(selectors) == 1:
        return selectors[0]
    keys, values = zip(*(selector.split("=", 1) for selector in selectors), strict=True)
    return f"{keys[0]} in ({','.join(values)})"
