"""Every object of a built-in kind is compared by the recorded rules about zero values of its kind."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.memo import Memo
from engine.observed import World
from engine.proposal import compose, propose
from engine.quantity import NOTHING_OMITTED
from engine.resource import Resource, Stance
from resources.base import kinds
from resources.base.fields import omitted_fields
from resources.registry import BLUEPRINTS
from tests.builders import claim_template, clique, group, podcliqueset, share
from tests.laws.toy import CONFIGURATION
from tests.stories.graphs import graph, service

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUILT_IN = {(kind.group, kind.name): kind for kind in kinds.KINDS}
SCALED = {"minReplicas": 1, "maxReplicas": 3}

SET = podcliqueset(
    "all",
    clique("front", 1, autoScalingConfig=SCALED, resourceSharing=[share("disk", "PerReplica")]),
    clique("back", 1),
    groups=(group("pool", "back"),),
    cliqueStartupType="CliqueStartupTypeInOrder",
    resourceClaimTemplates=[claim_template("disk")],
)
FRONTEND = service(1) | {"componentType": "frontend", "ingress": {"enabled": True, "host": "chat"}}
GRAPH = graph(Frontend=FRONTEND, decode=service(2))
GRAPH["spec"]["pvcs"] = [{"create": True, "name": "models", "size": "1Gi", "storageClass": "x", "volumeAccessMode": "ReadWriteMany"}]


def desired(manifest: dict[str, Any], unserved: frozenset[str] = frozenset()) -> list[Resource]:
    """Everything that is wanted for a manifest in an empty cluster."""
    proposed = propose(World((), unserved=unserved), [manifest])
    composed = compose(proposed, BLUEPRINTS, CONFIGURATION, Memo())
    by_kind = {blueprint.kind.name: blueprint for blueprint in BLUEPRINTS}
    return [
        resource
        for observed in composed.roots
        for resource in by_kind[observed.root.id.kind].desire(observed, NOW, CONFIGURATION, Memo()).graph.resources.values()
        if resource.stance is Stance.WANT
    ]


@pytest.mark.parametrize(("manifest", "unserved"), [(SET, frozenset()), (GRAPH, frozenset()), (GRAPH, frozenset({kinds.PODCLIQUESET.key}))])
def test_every_object_is_compared_by_what_is_recorded_of_its_kind(manifest: dict[str, Any], unserved: frozenset[str]) -> None:
    compared = set()
    for resource in desired(manifest, unserved):
        kind = BUILT_IN.get((resource.id.group, resource.id.kind))
        recorded = omitted_fields(kind) if kind is not None else NOTHING_OMITTED
        if recorded is not NOTHING_OMITTED:
            compared.add(resource.id.kind)
            assert resource.policy.omitted is recorded, resource.id
    assert "Service" in compared
