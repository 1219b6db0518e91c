"""The webhooks for DynamoGraphDeployments in front of the sandbox's API."""

from pathlib import Path
from typing import Any

import pytest

from sandbox.tests.api.test_webhooks import guarded
from tests.resources.admission.graphs import graph, wide, worker

GRAPHS = "/apis/nvidia.com/v1alpha1/namespaces/default/dynamographdeployments"


def in_default(body: dict[str, Any]) -> dict[str, Any]:
    """The graph in the namespace that exists."""
    return {**body, "metadata": {"name": "g"}}


@pytest.mark.anyio
async def test_a_number_in_quotes_is_stored_as_a_number(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        answer = await user.ask("POST", GRAPHS, in_default(graph({"decode": wide(nodes="2", gpus=8)})))
        stored = (await user.ask("GET", f"{GRAPHS}/g")).body["spec"]["services"]["decode"]

    assert answer.code == 201
    assert stored["multinode"] == {"nodeCount": 2}
    assert stored["resources"] == {"limits": {"gpu": "8"}}


@pytest.mark.anyio
async def test_an_invalid_graph_is_refused_in_the_name_of_the_webhook(tmp_path: Path) -> None:
    async with guarded(tmp_path) as (_, user):
        answer = await user.ask("POST", GRAPHS, in_default(graph({"decode": worker(replicas=-1)})))

    assert answer.code == 422
    assert answer.body["message"] == (
        'admission webhook "vdynamographdeployment.kb.io" denied the request: DynamoGraphDeployment.nvidia.com "g" is invalid: '
        "spec.services[decode].replicas must be non-negative"
    )
