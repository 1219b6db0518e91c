"""Registry: the root kinds that the engine looks after. A new one is a blueprint and one line here."""

from engine.blueprint import Blueprint
from resources.blueprints.podcliqueset import PodCliqueSetBlueprint
from resources.blueprints.topology_binding import TopologyBindingBlueprint

BLUEPRINTS: tuple[Blueprint, ...] = (PodCliqueSetBlueprint(), TopologyBindingBlueprint())
