"""Conditions: under which values of the chart something is part of an installation, found by trying all combinations."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Final, TypeVar

VARIABLES: Final[Mapping[str, str]] = {
    "unlisted": 'not (include "grove-engine.profiles" . | fromJsonArray)',
    "kai": 'and (not $unlisted) (has "kai-scheduler" (include "grove-engine.schedulers" . | fromJsonArray))',
    "volcano": 'has "volcano" (include "grove-engine.schedulers" . | fromJsonArray)',
    "gangs": 'include "grove-engine.gangs" .',
    "topology": 'dig "topologyAwareScheduling" "enabled" false .Values.config',
    "auto": 'dig "network" "autoMNNVLEnabled" false .Values.config',
    "protects": 'dig "authorizer" "enabled" false .Values.config',
    "graphs": 'include "grove-engine.graphs" .',
    "webhooks": 'eq (include "grove-engine.admission" .) "webhooks"',
    "certificate": 'include "grove-engine.makesCertificate" .',
}
"""Feature, which is the name of a variable in templates -> how it is computed."""

Features = frozenset[str]
Term = frozenset[tuple[str, bool]]
"""Features that must be on or off together."""
Item = TypeVar("Item", bound=Hashable)


def combinations(features: Sequence[str], holds: Callable[[Features], bool] = lambda _: True) -> list[Features]:
    """Every set of features that are on, among those that are possible."""
    sets = (frozenset(chosen) for size in range(len(features) + 1) for chosen in itertools.combinations(features, size))
    return [chosen for chosen in sets if holds(chosen)]


def conditions(present: Mapping[Features, Collection[Item]], features: Sequence[str]) -> dict[Item, str]:
    """Item -> the condition of a template under which it is part of the installation; empty if it always is.

    `present` has the items of each combination. Raises `ValueError` if no condition of at most three features describes an item.
    """
    places = {chosen: 1 << place for place, chosen in enumerate(present)}
    all_of_them = sum(places.values())
    fulfilled = {(name, True): sum(place for chosen, place in places.items() if name in chosen) for name in features}
    fulfilled |= {(name, False): all_of_them ^ found for (name, _), found in fulfilled.items()}
    terms = {
        frozenset(term): reduce(and_, map(fulfilled.__getitem__, term), all_of_them)
        for size in range(4)
        for names in itertools.combinations(features, size)
        for term in itertools.product(*(((name, True), (name, False)) for name in names))
    }
    where: dict[Item, int] = defaultdict(int)
    for chosen, items in present.items():
        for item in items:
            where[item] |= places[chosen]
    known = {found: helm(cover(found, terms)) for found in dict.fromkeys(where.values())}
    return {item: known[found] for item, found in where.items()}


def cover(where: int, terms: Mapping[Term, int]) -> list[Term]:
    """The fewest and shortest terms that are fulfilled in exactly these combinations. Sets of combinations have a bit for each."""
    implying = [term for term, fulfilled in terms.items() if fulfilled and not fulfilled & ~where]
    left, chosen_terms = where, []
    while left:
        best = max(implying, key=lambda term: ((left & terms[term]).bit_count(), -len(term)), default=None)
        if best is None or not left & terms[best]:
            raise ValueError(f"no simple condition describes where it is: {where:b}")
        chosen_terms.append(best)
        left &= ~terms[best]
    return chosen_terms


def helm(terms: Iterable[Term]) -> str:
    """The terms as a condition of a template; empty if it is always true."""
    parts = []
    for term in terms:
        literals = [f"${name}" if sign else f"(not ${name})" for name, sign in sorted(term)]
        if not literals:
            return ""
        parts.append(literals)
    if len(parts) == 1:
        return parts[0][0].strip("()") if len(parts[0]) == 1 else f"and {' '.join(parts[0])}"
    return "or " + " ".join(part[0] if len(part) == 1 else f"(and {' '.join(part)})" for part in parts)


def assignments(used: Iterable[str]) -> list[str]:
    """The lines that compute the variables of these conditions."""
    text = " ".join(used)
    text += VARIABLES["kai"] if "$kai" in text else ""
    return [f"{{{{- ${name} := {value} }}}}" for name, value in VARIABLES.items() if f"${name}" in text]
