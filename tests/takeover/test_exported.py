"""An exported cluster gives the same plan as the cluster (M16 of docs/behaviour/take-over.md)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import engine as engine  # The fixture.
from tests.takeover.epochs import run_by_later_grove
from tests.takeover.worlds import ALL, WORLDS, planned, run_by_grove

Body = Mapping[str, Any]
EXPORTED = ("scaling group", "automatic domains", "inference")


async def exported_later(name: str) -> list[Body]:
    """The objects of a cluster that the later release of the operator has run."""
    async with run_by_later_grove(WORLDS[name]) as (cluster, _):
        served = [kind for kind in (kinds.PODCLIQUESET, *ALL) if cluster.serves(kind)]
        return [{"apiVersion": kind.api_version, "kind": kind.name, **body} for kind in served for body in cluster.there(kind).values()]


async def exported(name: str) -> tuple[list[Body], set[tuple[str, str]]]:
    """The objects of a cluster that the operator has run, and verb and name of the operations that are planned there."""
    async with run_by_grove(WORLDS[name]) as (cluster, _):
        served = [kind for kind in (kinds.PODCLIQUESET, kinds.RESOURCE_CLAIM_TEMPLATE, *ALL) if cluster.serves(kind)]
        bodies: list[Body] = [
            {"apiVersion": kind.api_version, "kind": kind.name, **body} for kind in served for body in cluster.there(kind).values()
        ]
        return bodies, {(str(operation.verb), operation.id.name) for operation in await planned(cluster)}


def without_managed_fields(body: Body) -> Body:
    """The object as `kubectl get` shows it."""
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "managedFields"}}


@pytest.mark.parametrize("managed_fields", [True, False], ids=["managed fields", "no managed fields"])
@pytest.mark.parametrize("name", EXPORTED)
def test_M16_an_export_gives_the_plan_of_the_cluster(name: str, managed_fields: bool, engine: Engine, tmp_path: Path) -> None:
    bodies, expected = anyio.run(exported, name)
    items = [body if managed_fields else without_managed_fields(body) for body in bodies]
    file = tmp_path / "before.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))

    answer = engine("diff", "-A", "--against", file, "-o", "json")

    operations = {(step["verb"], step["object"]["name"]) for root in answer.document["roots"] for step in root["operations"]}
    assert operations == expected
    assert {verb for verb, _ in operations} == {"patch", "status"}


def test_M18_a_set_of_the_later_release_is_left_alone_in_an_export_too(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "before.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": anyio.run(exported_later, "inference")}))

    denied, allowed = engine("diff", "-A", "--against", file), engine("diff", "-A", "--against", file, "--take-over", "-o", "json")

    assert (denied.code, allowed.code) == (Exit.DENIED, Exit.DONE)
    assert {step["verb"] for root in allowed.document["roots"] for step in root["operations"]} == {"create", "patch", "status"}
