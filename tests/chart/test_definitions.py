"""Definitions where nobody runs `helm install`: `helm template` prints them if it is asked, and they are resources of a kustomization."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from resources.base import kinds
from resources.schema.crds import crds
from tests.chart.generated import CHART
from tests.chart.rendering import run_helm
from tests.waiting import PATIENCE

KUBECTL = shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", "")) or shutil.which("kubectl")
DEFINED = {f"{kind.plural}.{kind.group}" for kind in kinds.DEFINED}


def names(text: str) -> set[str]:
    """The names of the definitions among the documents."""
    return {body["metadata"]["name"] for body in yaml.load_all(text, yaml.CSafeLoader) if body and body["kind"] == kinds.CRD.name}


@pytest.mark.e2e
@pytest.mark.parametrize(("options", "printed"), [((), set()), (("--include-crds",), DEFINED)], ids=["as it is", "--include-crds"])
def test_helm_template_prints_all_definitions_if_it_is_asked_for_them(options: tuple[str, ...], printed: set[str], tmp_path: Path) -> None:
    result = run_helm("template", "grove-engine", CHART, *options, folder=tmp_path)

    assert (result.returncode, names(result.stdout)) == (0, printed)


@pytest.mark.e2e
@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl in KUBEBUILDER_ASSETS, nor on PATH")
def test_kustomize_builds_what_the_command_prints(tmp_path: Path) -> None:
    assert KUBECTL is not None
    (tmp_path / "crds.yaml").write_text("\n---\n".join(map(json.dumps, crds())))
    (tmp_path / "kustomization.yaml").write_text("resources: [crds.yaml]\nnamePrefix: own-\ncommonAnnotations: {a: b}\n")

    built = subprocess.run([KUBECTL, "kustomize", str(tmp_path)], capture_output=True, text=True, timeout=PATIENCE, check=False)

    assert (built.returncode, names(built.stdout)) == (0, DEFINED), built.stderr
