"""Labels that somebody removed, and what else is said of cliques that others have touched: reasons are those of what happened."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.ids import Kind
from resources.base import labels
from resources.base.kinds import POD, PODCLIQUE, SCALING_GROUP
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

KEPT = {labels.TEMPLATE_HASH}
"""The label whose loss is told as another hash."""


@pytest.fixture
def made(box: Box, engine: Engine, tmp_path: Path) -> Box:
    """A set with a clique, and another one in a scaling group of two replicas."""
    body = podcliqueset("one", clique("w", 2), clique("v", 1))
    body["spec"]["template"]["podCliqueScalingGroups"] = [{"name": "g", "cliqueNames": ["v"], "replicas": 2}]
    (tmp_path / "set.json").write_text(json.dumps(body))
    engine("sync", "-f", tmp_path / "set.json")
    return box


def of(box: Box, kind: Kind, name: str) -> Mapping[str, Any]:
    """The first object of a kind whose name begins so."""
    return next(body for body in box.all(kind) if body["metadata"]["name"].startswith(name))


@pytest.mark.parametrize(
    ("kind", "name"), [(PODCLIQUE, "one-0-w"), (PODCLIQUE, "one-0-g-1-v"), (SCALING_GROUP, "one-0-g"), (POD, "one-0-g-1-v-")]
)
def test_a_lost_label_is_drift_also_when_the_set_is_edited(made: Box, engine: Engine, kind: Kind, name: str) -> None:
    metadata = of(made, kind, name)["metadata"]
    lost = [key for key in metadata["labels"] if key in labels.IDENTITY]
    made.change(kind, metadata["name"], {"metadata": {"labels": dict.fromkeys(lost)}})
    made.scale("one", 2)

    steps = engine("diff", "-o", "json").document["roots"][0]["operations"]
    reasons = {step["reason"] for step in steps if step["object"]["name"] == metadata["name"] and step["verb"] == "patch"}
    assert len(lost) >= 5 and reasons == {"Drifted"}


def test_a_clique_of_a_replica_that_is_scaled_in_is_not_created_again(made: Box, engine: Engine) -> None:
    made.change(SCALING_GROUP, "one-0-g", {"spec": {"replicas": 1}})
    made.delete(PODCLIQUE, "one-0-g-1-v")
    pod = of(made, POD, "one-0-g-1-v-")["metadata"]["name"]

    for named in ("pclq/one-0-g-1-v", f"pod/{pod}"):
        said = engine("why", named).out
        assert "replica 1 of one-0-g is removed: one-0-g is scaled to 1" in said and "created again" not in said
    assert "UserDeleted" not in engine("diff").out
