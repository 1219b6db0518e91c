"""The rules for sets and graphs read what was parsed: the JSON is for what makes it, carries it, or has no model."""

from types import ModuleType

import pytest

from providers.fabrics.nvidia import channel_rules
from providers.schedulers import queues
from resources.admission import (
    annotation_rules,
    computable_rules,
    create_rules,
    dependency_rules,
    graph_rules,
    graph_schedulers,
    graph_update_rules,
    metadata_rules,
    topology_rules,
    update_rules,
)
from resources.base import fields

RULES = (
    annotation_rules,
    channel_rules,
    computable_rules,
    create_rules,
    dependency_rules,
    graph_rules,
    graph_schedulers,
    graph_update_rules,
    metadata_rules,
    queues,
    topology_rules,
    update_rules,
)
OF_JSON = {"Body", fields.annotations_of.__name__, fields.cliques_of.__name__, fields.members_of.__name__, fields.mapping.__name__}
"""What a module imports that reads the JSON of an object."""


@pytest.mark.parametrize("rules", RULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_rules_read_no_json_of_the_object(rules: ModuleType) -> None:
    assert OF_JSON.isdisjoint(vars(rules))
