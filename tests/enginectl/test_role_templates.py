"""Commands for a graph whose roles have pod templates of their own."""

import json
from pathlib import Path

from resources.dynamo.versions.api_versions import BETA
from resources.dynamo.versions.converted import as_version
from tests.enginectl.calling import Engine
from tests.stories.test_graph_role_templates import chat

KINDS = ("PodCliqueSet", "PodCliqueScalingGroup", "PodClique", "Pod")


def test_a_preview_has_no_fault_and_each_version_the_same_pods(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    rendered = []
    for body in (chat("grove"), as_version(chat("grove"), BETA)):
        file.write_text(json.dumps(body))
        preview = engine("diff", "-f", file, "--against", "empty")
        assert preview.code == 0, preview
        assert "refused" not in preview.out + preview.err and "unknown" not in preview.out + preview.err
        rendered.append(engine("render", "-f", file, "-o", "json").document["objects"])

    assert "example/leader:1" in json.dumps(rendered[0]) and "example/worker:1" in json.dumps(rendered[0])
    of_alpha, of_beta = ([each.get("spec") for each in objects if each["kind"] in KINDS] for objects in rendered)
    assert of_alpha == of_beta and len(of_alpha) == 6
