"""Added names: the init container and the volumes of pods that wait for others. A template must not have such names itself."""

from collections.abc import Iterator
from typing import Final

from resources.base.fields import CLIQUES, mappings
from resources.base.names import POD_INFO, TOKEN, WAITER
from resources.schema.issues import ErrorType, Issue
from resources.schema.pod_checks import fault
from resources.schema.podcliqueset import SetTemplate

TAKEN: Final = "is the name of one that the engine adds to pods of this clique, because they start after others"
ADDED: Final = (("volumes", frozenset({POD_INFO, TOKEN})), ("containers", frozenset({WAITER})), ("initContainers", frozenset({WAITER})))
"""A list of a pod spec, and the names that pods that wait get there, or that must be unique together with those."""


def issues(template: SetTemplate) -> Iterator[Issue]:
    """An issue for each volume and container of a clique whose pods would have two of its name."""
    for number, clique in enumerate(template.cliques):
        if _waits(template, number):
            path = (*CLIQUES, number, "spec", "podSpec")
            for field, names in ADDED:
                for index, entry in enumerate(mappings(clique.spec.pod_spec.get(field))):
                    if entry.get("name") in names:
                        yield fault((*path, field, index, "name"), ErrorType.DUPLICATE, TAKEN, entry["name"])


def _waits(template: SetTemplate, number: int) -> bool:
    """Whether the pods of a clique start after those of others."""
    if template.clique_startup_type == "CliqueStartupTypeInOrder":
        return number > 0
    return template.clique_startup_type == "CliqueStartupTypeExplicit" and bool(template.cliques[number].spec.starts_after)
