"""Manifests with very many names that do not exist: a review of one compares few of them with others, so that it does not take long."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any
from unittest.mock import patch

import pytest

from resources.schema import unknown_fields
from resources.schema.unknown_fields import MOST, MOST_COMPARED, MOST_SUGGESTED, Suggestions
from tests.resources.admission.requests import Body, clique, created, pod_spec, small

MANY = 300
NAMES = [f"worker-{number}" for number in range(50)]
WRONG = [f"worked-{number}" for number in range(MANY)]
CLIQUES = [clique(name) for name in NAMES]


PODS = 5
INSTEAD = Suggestions.instead


class Counted(Collection[str]):
    """Known names, and how many of them have been read."""

    def __init__(self, known: Collection[str]) -> None:
        self.known, self.read = known, 0

    def __iter__(self) -> Iterator[str]:
        for name in self.known:
            self.read += 1
            yield name

    def __contains__(self, name: object) -> bool:
        return name in self.known

    def __len__(self) -> int:
        return len(self.known)


def of_pods(**fields: Any) -> Body:
    """A set of many cliques whose pods have these volumes and mounts."""
    volumes = [{"name": name, "emptyDir": {}} for name in NAMES]
    container = {"name": "main", "image": "example/worker:1", **fields}
    return small(cliques=[clique(name, spec={"podSpec": pod_spec(volumes=volumes, containers=[container])}) for name in NAMES[:PODS]])


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
        small(
            cliqueStartupType="CliqueStartupTypeExplicit",
            cliques=[*CLIQUES, *(clique(f"x{name}", spec={"startsAfter": [name]}) for name in WRONG)],
        ),
        small(cliques=[*CLIQUES, *(clique(f"x{name}", spec={"startsAfter": [name]}) for name in WRONG)]),
        small(
            cliques=[*CLIQUES, *(clique(f"z{number}") for number in range(MANY))],
            podCliqueScalingGroups=[{"name": f"g{name}", "cliqueNames": [name]} for name in WRONG],
        ),
        of_pods(volumeMounts=[{"name": name, "mountPath": f"/{name}"} for name in WRONG]),
    ],
    ids=[
        "start order",
        "unused start order",
        "members of groups",
        "filters",
        "templates",
        "many starts",
        "many unused starts",
        "many groups",
        "mounts",
    ],
)
def test_of_very_many_unknown_names_few_are_compared_with_known_ones(body: Body) -> None:
    given: dict[int, Counted] = {}

    def counted(self: Suggestions, written: Iterable[str], known: Collection[str], besides: str | None = None) -> str:
        return INSTEAD(self, written, given.setdefault(id(known), Counted(known)), besides)

    with (
        patch.object(unknown_fields, "nearest_name", side_effect=unknown_fields.nearest_name) as compared,
        patch.object(Suggestions, "instead", counted),
    ):
        decision = created(body)

    said = [*map(str, decision.issues), *decision.all_warnings]
    assert any("did you mean worker-" in each for each in said)
    assert 0 < compared.call_count <= 2 * MOST_SUGGESTED
    assert len(given) <= PODS, "known names are copied for each name that does not exist"
    assert sum(each.read for each in given.values()) <= PODS * (MANY * MOST + MOST_SUGGESTED * MOST_COMPARED)
