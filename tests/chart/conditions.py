"""Conditions: under which values of the chart something is part of an installation, found by trying all combinations."""

import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
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
    items = dict.fromkeys(item for every in present.values() for item in every)
    terms = [
        frozenset(zip(names, signs, strict=True))
        for size in range(4)
        for names in itertools.combinations(features, size)
        for signs in itertools.product((True, False), repeat=size)
    ]
    matching = {term: [chosen for chosen in present if matches(term, chosen)] for term in terms}
    known: dict[frozenset[Features], str] = {}
    result = {}
    for item in items:
        where = frozenset(chosen for chosen, every in present.items() if item in every)
        if where not in known:
            known[where] = helm(cover(where, matching))
        result[item] = known[where]
    return result


def matches(term: Term, chosen: Features) -> bool:
    """Whether a combination fulfils a term."""
    return all((name in chosen) is sign for name, sign in term)


def cover(where: Collection[Features], matching: Mapping[Term, Sequence[Features]]) -> list[Term]:
    """The fewest and shortest terms that are fulfilled in exactly these combinations."""
    implying = [term for term, combos in matching.items() if combos and all(chosen in where for chosen in combos)]
    left, chosen_terms = set(where), []
    while left:
        best = max(implying, key=lambda term: (len(left.intersection(matching[term])), -len(term)), default=None)
        if best is None or not left.intersection(matching[best]):
            raise ValueError(f"no simple condition describes {sorted(map(sorted, where))[:3]} ...")
        chosen_terms.append(best)
        left -= set(matching[best])
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
