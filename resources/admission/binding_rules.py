"""Binding rules: the admission rules for ClusterTopologyBindings."""

from collections.abc import Iterator
from typing import Final

from resources.admission import metadata_rules
from resources.model.topology import unavailable_because
from resources.ports.configuration import Configuration
from resources.schema.issues import ErrorType, Issue, Path, duplicates
from resources.schema.topology import ClusterTopologyBinding

LEVELS: Final[Path] = ("spec", "levels")
BINDINGS: Final[Path] = ("spec", "schedulerTopologyBindings")


def issues(body: ClusterTopologyBinding, configuration: Configuration) -> Iterator[Issue]:
    """The issues of a ClusterTopologyBinding of the right shape, on create and on update."""
    yield from metadata_rules.issues(body.metadata, namespaced=False)
    yield from duplicates(((*LEVELS, number, "domain"), level.domain) for number, level in enumerate(body.spec.levels))
    yield from duplicates(((*LEVELS, number, "key"), level.key) for number, level in enumerate(body.spec.levels))
    entries = enumerate(body.spec.scheduler_topology_bindings)
    named = [((*BINDINGS, number, "schedulerName"), entry.scheduler_name) for number, entry in entries]
    yield from duplicates(named)
    for path, name in named:
        if why := unavailable_because(name, configuration):
            yield Issue(path, ErrorType.INVALID, why, name)
