"""Registry: the blueprints of the root kinds that the engine manages. A new root kind is one line here."""

from engine.blueprint import Blueprint
from resources.blueprints.dynamo_graph import DynamoGraphBlueprint
from resources.blueprints.podcliqueset import PodCliqueSetBlueprint
from resources.blueprints.topology_binding import TopologyBindingBlueprint
from resources.ports.configuration import Configuration

BLUEPRINTS: tuple[Blueprint[Configuration], ...] = (PodCliqueSetBlueprint(), TopologyBindingBlueprint(), DynamoGraphBlueprint())
