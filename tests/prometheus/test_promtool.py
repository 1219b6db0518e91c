"""promtool accepts the alerts and the expressions of the dashboard, and the alerts fire when they should."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.prometheus.expressions import RULES, of_panels
from tests.waiting import PATIENCE

PROMTOOL = os.environ.get("PROMTOOL", "")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not PROMTOOL, reason="PROMTOOL does not name promtool; tests/prometheus/build prints where it is"),
]


def promtool(*words: str | Path) -> None:
    """Run promtool, which must be content."""
    done = subprocess.run([PROMTOOL, *map(str, words)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The file of rules that the PrometheusRule contains."""
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(yaml.load(RULES.read_text(), yaml.CSafeLoader)["spec"]))
    return path


def test_the_alerts_are_rules(rules: Path) -> None:
    promtool("check", "rules", rules)


def test_the_expressions_of_the_dashboard_are_promql(tmp_path: Path) -> None:
    recorded = [{"record": f"panel:{number}", "expr": expression} for number, (_, expression) in enumerate(of_panels())]
    path = tmp_path / "panels.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": recorded}]}))

    promtool("check", "rules", path)


def test_the_alerts_fire_when_they_should_and_only_then(rules: Path) -> None:
    cases = rules.with_name("cases.yaml")
    cases.write_text((Path(__file__).parent / "cases.yaml").read_text())

    promtool("test", "rules", cases)
