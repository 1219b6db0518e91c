"""Another spelling of the same pods is no edit: nothing is written below the set, whichever hash its objects have."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import pytest

from resources.base import kinds
from resources.model import template
from resources.schema.pod_spec_form import canonical_form
from tests.builders import clique, group, podcliqueset
from tests.stories.pods import running
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

OF_SETS = (kinds.POD, kinds.PODCLIQUE, kinds.SCALING_GROUP, kinds.PODGANG)
BLOB = {"diskName": "d", "diskURI": "https://a.blob.core.windows.net/c/d.vhd"}


def spelled(cpu: Any, disk: dict[str, str], **fields: Any) -> dict[str, Any]:
    """A pod spec with these fields and a container with so much CPU, and an Azure disk."""
    (container,) = running(1)["containers"]
    resources = {"limits": {"cpu": cpu}}
    volumes = [{"name": "d", "azureDisk": {**BLOB, **disk}}]
    return {"containers": [{**container, "resources": resources}], "volumes": volumes, **fields}


LONG = spelled(0.0005, {"kind": "Shared"}, serviceAccount="default", ephemeralContainers=[])
SHORT = spelled("1m", {}, serviceAccountName="default")
MIXED = spelled("0.1m", {"cachingMode": "ReadWrite"}, serviceAccount="y", serviceAccountName="default")
"""Three spellings of the same pods."""


def fleet(pod_spec: Mapping[str, Any]) -> dict[str, Any]:
    """A set of a clique that stands alone and one in a group, with this pod spec."""
    cliques = [clique(name, 2, pod_spec=pod_spec) for name in ("router", "worker")]
    return podcliqueset("llm", *cliques, groups=(group("pool", "worker", replicas=2),))


def versions(cluster: Stage) -> dict[str, str]:
    """The revision of everything that the engine has made."""
    return {f"{kind.name} {name}": body["metadata"]["resourceVersion"] for kind in OF_SETS for name, body in cluster.there(kind).items()}


@contextmanager
def former_hashes() -> Iterator[None]:
    """The engine computes hashes from the former canonical form while the block runs, whichever form it asks for."""

    def former(value: Any, *, is_former: bool) -> Any:
        return canonical_form(value, is_former=True)

    with mock.patch.object(template, "canonical_form", former):
        yield


def test_the_version_before_has_another_hash_for_a_long_spelling() -> None:
    entry = {"spec": {"podSpec": LONG}}
    with former_hashes():
        former = template.hashed_content(entry, "")

    assert former == template.hashed_content(entry, "", is_former=True) != template.hashed_content(entry, "")


@pytest.mark.parametrize("is_former", [False, True], ids=["same version", "version before"])
@pytest.mark.parametrize("before", [LONG, SHORT, MIXED], ids=["long", "short", "mixed"])
async def test_another_spelling_writes_nothing_below_the_set(before: Mapping[str, Any], is_former: bool) -> None:
    async with stage() as cluster:
        with former_hashes() if is_former else nullcontext():
            await cluster.apply(fleet(before))
            async with cluster.running():
                await cluster.settle()
        settled = versions(cluster)

        async with cluster.running():
            for pod_spec in (before, LONG, SHORT, MIXED):
                await cluster.apply(fleet(pod_spec))
                await cluster.settle()

                assert cluster.there(kinds.POD) and versions(cluster) == settled

            await cluster.apply(fleet({**SHORT, "terminationGracePeriodSeconds": 7}))
            await cluster.settle()
            assert {body["spec"]["terminationGracePeriodSeconds"] for body in cluster.there(kinds.POD).values()} == {7}


async def test_another_order_of_cliques_writes_nothing_below_the_set() -> None:
    manifest = podcliqueset(
        "llm", clique("router", 2), clique("worker", 1), clique("cache", 1), groups=(group("pool", "worker", replicas=2),)
    )
    template = manifest["spec"]["template"]
    other = {**manifest, "spec": {**manifest["spec"], "template": {**template, "cliques": template["cliques"][::-1]}}}
    async with stage() as cluster, cluster.running():
        await cluster.apply(manifest)
        await cluster.settle()
        settled = versions(cluster)

        await cluster.apply(other)
        await cluster.settle()

        assert cluster.there(kinds.POD) and versions(cluster) == settled
