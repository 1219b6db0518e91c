"""Workers of two generations: on request, an update gives the new ones another suffix of their Dynamo namespace, and the frontend stays."""

from typing import Any

import pytest

from engine.runtime.sync_report import Ending
from resources.base import kinds
from resources.base.labels import WORKER_SUFFIX
from resources.dynamo.model.generation import GENERATION, SUFFIX_VARIABLE
from tests.stories.graphs import graph, service
from tests.stories.stage import Stage, stage
from tests.stories.test_graph_form import ADDONS, PATHS

pytestmark = pytest.mark.anyio


def made(path: str, model: str, **more: str) -> dict[str, Any]:
    """A graph whose prefill worker serves that model."""
    annotations = {**PATHS[path], **more}
    prefill = service(script=f"python3 -m dynamo.vllm --model {model}")
    return graph(annotations=annotations, Frontend=service(componentType="frontend"), prefill=prefill, decode=service(2))


def generations(cluster: Stage) -> dict[str, set[tuple[str | None, str | None]]]:
    """The suffix and the label of the pods of each service that stay."""
    found: dict[str, set[tuple[str | None, str | None]]] = {}
    for name, pod in cluster.there(kinds.POD).items():
        if not pod["metadata"].get("deletionTimestamp"):
            key = next(key for key in ("frontend", "prefill", "decode") if key in name)
            values = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
            found.setdefault(key, set()).add((values.get(SUFFIX_VARIABLE), pod["metadata"]["labels"].get(GENERATION)))
    return found


@pytest.mark.parametrize("path", PATHS)
async def test_an_edit_of_one_worker_gives_all_workers_another_suffix(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path, "m", **{WORKER_SUFFIX: "enabled"})])
        first = generations(cluster)
        frontends = {name for name in cluster.there(kinds.POD) if "frontend" in name}

        report = await cluster.sync(manifests=[made(path, "other", **{WORKER_SUFFIX: "enabled"})])

        second = generations(cluster)
        assert report.ending is Ending.DONE
        assert first["frontend"] == second["frontend"] == {(None, None)}
        assert frontends <= set(cluster.there(kinds.POD))
        assert first["prefill"] == first["decode"] != second["prefill"] == second["decode"]
        assert all(len(found) == 1 and suffix == label for found in second.values() for suffix, label in found)


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_request_an_edit_replaces_only_the_worker_that_has_changed(path: str) -> None:
    async with stage(addons=ADDONS[path]) as cluster:
        await cluster.sync(manifests=[made(path, "m")])
        decoders = {name for name in cluster.there(kinds.POD) if "decode" in name}

        await cluster.sync(manifests=[made(path, "other")])

        assert decoders <= set(cluster.there(kinds.POD))
        assert set.union(*generations(cluster).values()) == {(None, None)}
