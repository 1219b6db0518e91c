"""Probes and webhooks answer while a pass is being planned, however long that takes: they end before the plan does."""

from pathlib import Path

import pytest

from engine.runtime.passes import MANY_OBJECTS
from resources.base.kinds import PODCLIQUE, PODCLIQUESET
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, started
from tests.enginectl.serving.long_planning import BEGUN, END, PROJECT, SLOW
from tests.enginectl.serving.test_endpoints import CONSTRAINED, Installed, Running
from tests.providers.installed import metadata_of
from tests.resources.admission.requests import small
from tests.waiting import until


@pytest.mark.parametrize("pods", [1, MANY_OBJECTS + 1])
def test_probes_and_reviews_are_answered_before_a_long_plan_ends(box: Box, tmp_path: Path, pods: int) -> None:
    package, begun, end = tmp_path / "package", tmp_path / "begun", tmp_path / "end"
    package.mkdir()
    installed = Installed(package)
    (package / "pyproject.toml").write_text(PROJECT)
    path = f"{ROOT}:{ROOT / 'cmd'}:{metadata_of(package, package)}"
    variables = {"KUBECONFIG": str(box.kubeconfig), "PYTHONPATH": path, BEGUN: str(begun), END: str(end)}
    with started("run", "--config", installed.file, "--log-format", "json", fresh=True, **variables) as process:
        try:
            Running(process).logged("leading")
            box.create(PODCLIQUESET, podcliqueset(SLOW, clique("w", pods)))
            until(begun.exists)

            probes = [installed.get("healthProbes", path) for path in ("/healthz", "/readyz")]
            reviews = [installed.review(body)["allowed"] for body in (small(), CONSTRAINED)]
            planned = box.names(PODCLIQUE)
            end.touch()

            assert (probes, reviews, planned) == ([(200, "ok")] * 2, [True, False], [])
            until(lambda: box.names(PODCLIQUE) == [f"{SLOW}-0-w"])
        finally:
            process.kill()
