"""What the sandbox offers tests of other projects: the pytest plugin, as the README shows it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grove_sandbox.product import kinds
from grove_sandbox.testing import serve
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
README = ROOT / "sandbox" / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: re.findall(r"def (test_\w+)", text)[0])
def test_the_examples_of_the_readme_pass(example: str, tmp_path: Path) -> None:
    if "kubectl" in example and not (assets := os.environ.get("KUBEBUILDER_ASSETS")):
        pytest.skip("there is no kubectl in KUBEBUILDER_ASSETS")
    (tmp_path / "test_example.py").write_text(example)
    path = os.pathsep.join(str(ROOT / part) for part in ("", "cmd", "sandbox/src"))
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "grove_sandbox.pytest_plugin", "test_example.py"],
        cwd=tmp_path,
        env={
            "PATH": f"{assets}:/usr/bin:/bin" if "kubectl" in example else "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYTHONPATH": path,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert process.returncode == 0, process.stdout
    assert "1 passed" in process.stdout


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 3


def test_a_cluster_for_tests_serves_the_kinds_that_it_is_given_and_no_others() -> None:
    with serve() as cluster:
        found = cluster.portal.call(cluster.sandbox.api.catalogue.find, "", "v1", "pods")
        with pytest.raises(Exception, match="not find"):
            cluster.portal.call(
                cluster.sandbox.api.catalogue.find, kinds.PODCLIQUESET.group, kinds.PODCLIQUESET.version, kinds.PODCLIQUESET.plural
            )

    assert found.kind.name == "Pod"


def test_real_time_cannot_be_advanced() -> None:
    with serve() as cluster, pytest.raises(RuntimeError, match="real"):
        cluster.advance(1)


def test_the_glossary_has_five_words() -> None:
    rows = README.read_text("utf-8").partition("## Five words")[2].split("|---|---|")[1]

    assert len(rows.strip().splitlines()) == 5
