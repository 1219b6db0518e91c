"""The rules of the chart's ClusterRoles as a template: computed from the permissions under every combination of features."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from engine.runtime.clock import SystemClock
from enginectl.actions.manifests import account_permissions
from enginectl.base.options import Options
from enginectl.wiring.configuration import Wiring, configuration_of
from resources.install.modes import Use
from resources.install.permissions import (
    VERBS,
    Permission,
    installation_permissions,
    is_of_workloads,
    of_the_cluster,
    permissions,
    without_implied,
)
from resources.install.roles import Account
from resources.registry import managed_blueprints
from resources.settings import valid_settings
from tests.chart.conditions import Features, assignments, combinations, conditions

FEATURES = ("unlisted", "kai", "volcano", "gangs", "topology", "auto", "protects", "graphs", "webhooks", "certificate")

Rule = tuple[str, str, str, str]
"""Group, resource, name (empty: all objects), verb."""


def rules_template() -> str:
    """The file with the rules of the engine's ClusterRole and of that of readers."""
    return "\n".join(
        (
            "{{- /* Computed from the tables of kinds by `make chart`. Do not edit. */}}",
            "",
            *(line for name, (text, needed) in NEEDED.items() for line in three_templates(name, text, needed)),
        )
    )


def three_templates(name: str, text: str, needed: Callable[[Features], Iterable[Permission]]) -> Iterator[str]:
    """What a use needs in the whole cluster; where only some namespaces are managed, what it needs in each of them, and the rest."""

    def whole(chosen: Features) -> Iterator[Rule]:
        yield from rules(permission for permission in without_implied(needed(chosen)) if not permission.namespace)

    def in_each(chosen: Features) -> Iterator[Rule]:
        yield from rules(filter(is_of_workloads, needed(chosen)))

    def rest(chosen: Features) -> Iterator[Rule]:
        listed = tuple(needed(chosen))
        others = (*(permission for permission in listed if not is_of_workloads(permission)), *of_the_cluster(listed))
        yield from rules(permission for permission in without_implied(others) if not permission.namespace)

    for suffix, where, make in (
        ("Rules", "in the whole cluster", whole),
        ("NamespaceRules", "in each namespace, if only some are managed", in_each),
        ("ClusterRules", "in the whole cluster, if only some namespaces are managed", rest),
    ):
        yield f"{{{{/* {text} {where}. */}}}}"
        yield from defined(f"grove-engine.{name}{suffix}", make)
        yield ""


@cache
def wiring(chosen: Features) -> Wiring:
    """A process with these features."""
    settings = valid_settings(
        {
            "scheduler": {"profiles": list(profiles(chosen)), "gangScheduling": "gangs" in chosen},
            "topologyAwareScheduling": {"enabled": "topology" in chosen},
            "network": {"autoMNNVLEnabled": "auto" in chosen},
            "authorizer": {"enabled": "protects" in chosen},
            "dynamo": {"enabled": "graphs" in chosen},
            "server": {
                "webhooks": {
                    "port": 9443 if "webhooks" in chosen else 0,
                    "certProvisionMode": "auto" if "certificate" in chosen else "manual",
                }
            },
        }
    )
    return Wiring(Options(), settings, configuration_of(settings), SystemClock())


def profiles(chosen: Features) -> Iterator[dict[str, Any]]:
    """The profiles of the enabled scheduler back ends; none if the configuration lists none."""
    if "unlisted" not in chosen:
        names = ["default-scheduler", *(name for feature, name in (("kai", "kai-scheduler"), ("volcano", "volcano")) if feature in chosen)]
        yield from ({"name": name} for name in names)


def is_possible(chosen: Features) -> bool:
    """Whether an installation can have these features."""
    has_own_profiles = "unlisted" not in chosen or chosen.isdisjoint(("kai", "volcano"))
    return has_own_profiles and ("webhooks" in chosen or "certificate" not in chosen)


def of_engine(use: Use) -> Callable[[Features], Iterable[Permission]]:
    """What the engine's account needs."""
    return cache(lambda chosen: tuple(account_permissions(wiring(chosen), Account(), use)))


@cache
def of_readers(chosen: Features) -> Iterable[Permission]:
    """What commands need that write nothing."""
    configuration = wiring(chosen).configuration
    return (*permissions(managed_blueprints(configuration), configuration, use=Use.READ), *installation_permissions(Use.READ))


NEEDED: dict[str, tuple[str, Callable[[Features], Iterable[Permission]]]] = {
    "run": ("What `engine run` needs", of_engine(Use.RUN)),
    "sync": ("What `engine sync` needs", of_engine(Use.SYNC)),
    "reader": ("What commands need that write nothing", of_readers),
}
"""Beginning of the names of templates -> what they are for, and what is needed."""


def rules(needed: Iterable[Permission]) -> Iterator[Rule]:
    """One rule for each verb and name, so that they can be compared."""
    for permission in needed:
        for name in permission.names or ("",):
            yield from ((permission.kind.group, permission.resource, name, verb) for verb in permission.verbs)


def defined(name: str, make: Callable[[Features], Iterator[Rule]]) -> Iterator[str]:
    """The lines of a named template with these rules, those under one condition together."""
    possible = combinations(FEATURES, is_possible)
    found = conditions({chosen: frozenset(make(chosen)) for chosen in possible}, FEATURES)
    yield f'{{{{- define "{name}" -}}}}'
    yield from assignments(found.values())
    for condition in sorted(set(found.values()), key=lambda text: (text.count("$"), text)):
        if condition:
            yield f"{{{{- if {condition} }}}}"
        yield from lines(rule for rule, when in found.items() if when == condition)
        if condition:
            yield "{{- end }}"
    yield "{{- end }}"


def lines(group: Iterable[Rule]) -> Iterator[str]:
    """The lines of these rules: resources of one group with the same verbs are in one rule, and so are the names of one resource."""
    verbs: dict[tuple[str, str, str], set[str]] = {}
    for api_group, resource, name, verb in group:
        verbs.setdefault((api_group, resource, name), set()).add(verb)
    resources: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for (api_group, resource, name), some in sorted(verbs.items()):
        ordered = tuple(sorted(some, key=VERBS.index))
        if name:
            resources.setdefault((api_group, ordered, resource), []).append(name)
        else:
            resources.setdefault((api_group, ordered, ""), []).append(resource)
    for (api_group, ordered, named), entries in sorted(resources.items()):
        yield f'- apiGroups: ["{api_group}"]'
        yield f"  resources: [{named or ', '.join(entries)}]"
        if named:
            yield f"  resourceNames: [{', '.join(entries)}]"
        yield f"  verbs: [{', '.join(ordered)}]"
