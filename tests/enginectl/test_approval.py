"""Plans that are saved, approved and applied: what was approved and nothing else, on a sandbox with the real client between."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.approval.document import digest_of
from enginectl.base.exit_codes import Exit
from resources.base.kinds import PODCLIQUESET, SERVICE
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine

FIRST = ROOT / "examples" / "01-first-gang"


def manifest(folder: Path, name: str, *, image: str = "registry.k8s.io/pause:3.9", replicas: int = 1) -> Path:
    """A set with a clique of two pods in a file of its own."""
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "10m"}}}
    clique = {"name": "a", "spec": {"roleName": "a", "replicas": 2, "minAvailable": 1, "podSpec": {"containers": [container]}}}
    body = {
        "apiVersion": PODCLIQUESET.api_version,
        "kind": PODCLIQUESET.name,
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": {"cliques": [clique]}},
    }
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(body))
    return file


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Where the plan is saved."""
    return tmp_path / "plan.json"


@pytest.fixture
def serving(box: Box, engine: Engine, tmp_path: Path) -> Box:
    """A cluster with the set `web`, settled."""
    assert engine("sync", "-f", manifest(tmp_path, "web")).code == Exit.DONE
    return box


def test_a_pull_request_is_reviewed_approved_and_applied_as_it_was_shown(serving: Box, engine: Engine, tmp_path: Path, plan: Path) -> None:
    changed = manifest(tmp_path, "web", image="registry.k8s.io/pause:3.10")
    review = engine("diff", "-f", changed, "--out", plan)
    before = serving.revisions()
    shown = engine("show", plan)
    applied = engine("sync", "--plan", plan)
    again = engine("sync", "--plan", plan)

    assert review.code == Exit.DONE, review
    assert "2 pods restarted" in review.out
    assert "digest" in review.err
    assert before == before | {}  # Nothing was written before the plan was applied.
    assert review.out.splitlines()[:-1] == [line for line in shown.out.splitlines()[:-1] if line in review.out.splitlines()]
    assert plan.stat().st_mode & 0o777 == 0o600
    assert applied.code == Exit.DONE, applied
    assert {container["image"] for pod in serving.all(PODS) for container in pod["spec"]["containers"]} == {"registry.k8s.io/pause:3.10"}
    assert (again.code, again.out.splitlines()[0]) == (Exit.DONE, "Applied: nothing, everything is in sync.")


from resources.base.kinds import POD as PODS  # noqa: E402
