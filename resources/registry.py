"""Registry: the blueprints of the root kinds that the engine manages. A new root kind is one line here."""

from engine.blueprint import Blueprint
from engine.ids import Kind
from resources.base.kinds import DYNAMO_GRAPH, SCALING_ADAPTER
from resources.blueprints.dynamo_graph import DynamoGraphBlueprint
from resources.blueprints.podcliqueset import PodCliqueSetBlueprint
from resources.blueprints.topology_binding import TopologyBindingBlueprint
from resources.ports.configuration import Configuration


def is_managed(kind: Kind, configuration: Configuration) -> bool:
    """Whether objects of this kind are managed under this configuration: graphs and their adapters only if graphs are enabled."""
    return kind not in (DYNAMO_GRAPH, SCALING_ADAPTER) or configuration.dynamo.enabled


def managed_blueprints(configuration: Configuration) -> tuple[Blueprint[Configuration], ...]:
    """The blueprints of the kinds of roots that are managed under this configuration."""
    return tuple(blueprint for blueprint in BLUEPRINTS if is_managed(blueprint.kind, configuration))


BLUEPRINTS: tuple[Blueprint[Configuration], ...] = (PodCliqueSetBlueprint(), TopologyBindingBlueprint(), DynamoGraphBlueprint())
