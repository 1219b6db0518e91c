"""The parts of the chart that are computed. `python -m tests.chart.generated`, or `make chart`, writes them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from enginectl.actions.manifests import yaml_stream
from resources.schema.crds import crds
from tests.chart.foreign_values import notices_template
from tests.chart.hub import with_annotations
from tests.chart.policies_template import policies_template
from tests.chart.published_template import published_template
from tests.chart.rules_template import rules_template
from tests.chart.values_schema import values_schema
from tests.chart.values_table import values_table
from tests.chart.webhooks_template import webhooks_template

CHART: Final = Path(__file__).parents[2] / "deploy" / "chart"
COPIES: Final = {"files/rules.yaml": "prometheus/rules.yaml", "files/dashboard.json": "grafana/engine.json"}
"""File of the chart -> the file in deploy/ that it is a copy of: a chart can read nothing outside of its folder."""
TABLE: Final = "<!-- The table is computed from values.yaml by `make chart`. -->\n"
"""The line of the README above the table of values."""


def generated_files() -> Iterator[tuple[str, str]]:
    """Each computed file: its path in the chart, and its text."""
    for definition in crds():
        names = definition["spec"]
        yield f"crds/{names['group']}_{names['names']['plural']}.yaml", yaml_stream([definition])
    values = (CHART / "values.yaml").read_text()
    defaults = yaml.load(values, yaml.CSafeLoader)
    changelog = (CHART.parents[1] / "CHANGELOG.md").read_text()
    yield "Chart.yaml", with_annotations((CHART / "Chart.yaml").read_text(), defaults, changelog)
    yield "values.schema.json", json.dumps(values_schema(defaults), indent=2) + "\n"
    yield "templates/_notices.tpl", notices_template(defaults)
    yield "templates/_rules.tpl", rules_template()
    yield "templates/_published.tpl", published_template()
    yield "templates/policies.yaml", policies_template()
    yield "templates/webhooks.yaml", webhooks_template()
    for copy, original in COPIES.items():
        yield copy, (CHART.parent / original).read_text()
    before, _, _ = (CHART / "README.md").read_text().partition(TABLE)
    yield "README.md", f"{before}{TABLE}\n{values_table(values)}"


if __name__ == "__main__":
    for path, text in generated_files():
        (CHART / path).write_text(text)
