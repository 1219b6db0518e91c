"""Binding rules: levels that are told apart, and schedulers that know what a topology is."""

from collections.abc import Iterator
from typing import Final

from resources.admission import metadata_rules
from resources.model.scheduler_topology import unavailable
from resources.ports.configuration import Configuration
from resources.schema.issues import Fault, Issue, Path, duplicates
from resources.schema.topology import ClusterTopologyBinding

LEVELS: Final[Path] = ("spec", "levels")
BINDINGS: Final[Path] = ("spec", "schedulerTopologyBindings")


def issues(body: ClusterTopologyBinding, configuration: Configuration) -> Iterator[Issue]:
    """What is wrong with a ClusterTopologyBinding that has the right shape, whether it is new or not."""
    yield from metadata_rules.issues(body.metadata, namespaced=False)
    yield from duplicates(((*LEVELS, number, "domain"), level.domain) for number, level in enumerate(body.spec.levels))
    yield from duplicates(((*LEVELS, number, "key"), level.key) for number, level in enumerate(body.spec.levels))
    named = [((*BINDINGS, number, "schedulerName"), one.scheduler_name) for number, one in enumerate(body.spec.scheduler_topology_bindings)]
    yield from duplicates(named)
    for path, name in named:
        if why := unavailable(name, configuration):
            yield Issue(path, Fault.INVALID, why, name)
