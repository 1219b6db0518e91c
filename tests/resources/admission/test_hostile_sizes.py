"""Manifests with very many names that do not exist: a review of one compares few of them with others, so that it does not take long."""

from typing import Any
from unittest.mock import patch

import pytest

from resources.schema import unknown_fields
from resources.schema.unknown_fields import MOST_SUGGESTED
from tests.resources.admission.requests import Body, clique, created, pod_spec, small

MANY = 300
NAMES = [f"worker-{number}" for number in range(50)]
WRONG = [f"worked-{number}" for number in range(MANY)]
CLIQUES = [clique(name) for name in NAMES]


def of_pods(**fields: Any) -> Body:
    """A set of many cliques whose pods have these volumes and mounts."""
    volumes = [{"name": name, "emptyDir": {}} for name in NAMES]
    container = {"name": "main", "image": "example/worker:1", **fields}
    return small(cliques=[clique(name, spec={"podSpec": pod_spec(volumes=volumes, containers=[container])}) for name in NAMES[:5]])


@pytest.mark.parametrize(
    "body",
    [
        small(
            cliqueStartupType="CliqueStartupTypeExplicit",
            cliques=[*CLIQUES, *(clique(f"x{name}", spec={"startsAfter": WRONG}) for name in NAMES)],
        ),
        small(cliques=[*CLIQUES, *(clique(f"x{name}", spec={"startsAfter": WRONG}) for name in NAMES)]),
        small(cliques=CLIQUES, podCliqueScalingGroups=[{"name": name, "cliqueNames": WRONG} for name in NAMES]),
        small(cliques=CLIQUES, resourceSharing=[{"name": "x", "scope": "PerReplica", "filter": {"childCliqueNames": WRONG}}]),
        small(
            cliques=[clique("a")],
            resourceClaimTemplates=[{"name": name, "templateSpec": {"spec": {"devices": {"requests": [{"name": "g"}]}}}} for name in NAMES],
            resourceSharing=[{"name": name, "scope": "PerReplica"} for name in WRONG],
        ),
        of_pods(volumeMounts=[{"name": name, "mountPath": f"/{name}"} for name in WRONG]),
    ],
    ids=["start order", "unused start order", "members of groups", "filters", "templates", "mounts"],
)
def test_of_very_many_unknown_names_few_are_compared_with_known_ones(body: Body) -> None:
    with patch.object(unknown_fields, "nearest_name", side_effect=unknown_fields.nearest_name) as compared:
        decision = created(body)

    said = [*map(str, decision.issues), *decision.all_warnings]
    assert any("did you mean worker-" in each for each in said)
    assert 0 < compared.call_count <= 2 * MOST_SUGGESTED
