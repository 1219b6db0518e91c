"""Registry: the root kinds that the engine looks after. A new one is a blueprint and one line here."""

from engine.blueprint import Blueprint
from resources.blueprints.podcliqueset import PodCliqueSetBlueprint

BLUEPRINTS: tuple[Blueprint, ...] = (PodCliqueSetBlueprint(),)
