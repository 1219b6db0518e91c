"""Two walks: the functions that architecture.md names exist, are visited in that order, and are not more than it says."""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import unwrap
from operator import attrgetter
from typing import Any

import pytest

from providers.kubernetes.client import KubernetesClient
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.counting import traced
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.stories.stage import stage

ARCHITECTURE = ROOT / "docs" / "architecture.md"
MANIFEST, EVENT = "**A manifest becomes", "**An event of a watch becomes"
MOST = {MANIFEST: 30, EVENT: 20}


def walk(title: str) -> Mapping[str, Callable[..., Any]]:
    """The stops of a walk, each with its function."""
    text = ARCHITECTURE.read_text()
    _, _, after = text.partition(title)
    table = after[: after.find("\n\n", after.find("|---"))]
    stops = re.findall(r"^\| `([\w.]+):([\w.]+)` \|", table, re.MULTILINE)
    return {f"{module}:{name}": unwrap(attrgetter(name)(import_module(module))) for module, name in stops}


@pytest.mark.parametrize("title", MOST)
def test_a_walk_has_no_more_stops_than_it_says(title: str) -> None:
    assert 10 < len(walk(title)) <= MOST[title]


def test_a_manifest_goes_from_stop_to_stop_until_it_is_printed(engine: Engine, box: Box) -> None:
    stops = walk(MANIFEST)

    with traced(stops) as visited:
        assert engine("diff", "-f", ROOT / "examples" / "01-first-gang" / "gang.yaml").code == 0

    assert visited == list(stops)


@pytest.mark.anyio
async def test_an_event_goes_from_stop_to_stop_until_the_api_is_called() -> None:
    """The client of a stage is in memory: what the other one does with a request is tested with a server."""
    stops = walk(EVENT)
    of_client = [name for name in stops if name.startswith(KubernetesClient.__module__)]
    async with stage() as cluster, cluster.running():
        await cluster.apply(podcliqueset("demo", clique("a"), replicas=1))
        await cluster.settle()

        with traced({name: stop for name, stop in stops.items() if name not in of_client}) as visited:
            await cluster.scale(kinds.PODCLIQUESET, "demo", 2)
            await cluster.until(lambda: len(cluster.there(kinds.POD)) == 2)

    assert visited == [name for name in stops if name not in of_client]
