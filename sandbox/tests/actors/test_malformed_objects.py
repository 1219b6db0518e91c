"""Malformed objects: whatever users write into the objects that actors read, no actor stops."""

import json
from random import Random
from typing import Any

import pytest

from engine.errors import ClusterError
from engine.ids import Kind
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN, COMPUTE_DOMAIN_CLIQUE, DOMAIN_LABEL
from resources.base.kinds import DAEMON_SET, DEVICE_CLASS, NODE, POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE
from sandbox.tests.actors.domains import domain, member, serving
from sandbox.tests.actors.manifests import pod
from sandbox.tests.actors.stage import Stage
from tests.stories.domains import violations

pytestmark = pytest.mark.anyio

KINDS = (
    POD,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    COMPUTE_DOMAIN,
    COMPUTE_DOMAIN_CLIQUE,
    NODE,
    DAEMON_SET,
    DEVICE_CLASS,
    RESOURCE_SLICE,
)
JUNK: tuple[Any, ...] = (
    *(None, "", "x" * 300, "\x1b[31m", "a/b", "node-0000", "True", "2026-01-01T00:00:00Z"),
    *(0, -1, 2**62, 1.5, True, [], {}, [None], {"a": {"b": [1]}}),
)


def malformed(chance: Random, value: Any) -> Any:
    """The value with a part missing or replaced by junk."""
    if not value or not isinstance(value, dict | list) or chance.random() < 0.2:
        return chance.choice(JUNK)
    if isinstance(value, list):
        at = chance.randrange(len(value))
        return [*value[:at], malformed(chance, value[at]), *value[at + 1 :]]
    key = chance.choice(list(value))
    if chance.random() < 0.2:
        return {name: item for name, item in value.items() if name != key}
    return value | {key: malformed(chance, value[key])}


async def write_malformed(stage: Stage, chance: Random, step: int) -> None:
    """Write something malformed: a copy of an object, a change to one, or a deletion."""
    kind = chance.choice(KINDS)
    there = (await stage.client.list(kind)).items
    if not there:
        return
    body = json.loads(json.dumps(chance.choice(there)))
    namespace, name = body["metadata"].get("namespace", ""), body["metadata"]["name"]
    parts = [key for key in body if key not in ("apiVersion", "kind", "metadata")]
    match chance.randrange(5):
        case 0 | 1 if parts:
            part = chance.choice(parts)
            body[part] = malformed(chance, body[part])
            await stage.client.replace(kind, namespace, name, body, subresource="status" if part == "status" and kind.status else "")
        case 2 | 3:
            await copy(stage, chance, kind, body, f"odd-{step}")
        case _ if kind != NODE:
            await stage.client.delete(kind, namespace, name)


async def copy(stage: Stage, chance: Random, kind: Kind, body: dict[str, Any], name: str) -> None:
    """Create a malformed copy of the object, perhaps with its status."""
    kept = {
        key: value
        for key, value in body["metadata"].items()
        if key in ("namespace", "labels", "annotations", "finalizers", "ownerReferences")
    }
    if chance.random() < 0.3:
        kept["labels"] = {**kept.get("labels", {}), DOMAIN_LABEL: chance.choice(("", "x", body["metadata"]["uid"]))}
    odd = {
        key: malformed(chance, value) if key not in ("apiVersion", "kind") else value for key, value in body.items() if key != "metadata"
    }
    made = json.loads(json.dumps(await stage.client.create(kind, kept.get("namespace", ""), odd | {"metadata": kept | {"name": name}})))
    if "status" in body and kind.status:
        await stage.client.replace(
            kind, kept.get("namespace", ""), name, made | {"status": malformed(chance, body["status"])}, subresource="status"
        )


@pytest.mark.parametrize("seed", range(4))
async def test_no_malformed_object_stops_an_actor(seed: int) -> None:
    chance = Random(seed)
    async with serving() as (stage, domains):
        for name in ("d", "e"):
            await domains.create(domain(name))
        await stage.turn(1)
        await stage.create(member("a", "d"), member("b", "e"))
        await stage.turn(5)
        refused = 0
        for step in range(80):
            try:
                await write_malformed(stage, chance, step)
            except ClusterError:
                refused += 1
            await stage.turn(chance.choice((0, 0.1, 1, 5)))
            await violations(stage.client)
        await stage.turn(60)
        assert refused < 80

        await stage.create(pod("last"))
        await stage.turn(5)
        assert await stage.node_of("last")
