"""The recorded objects of the component path of a graph of each framework, in `tests/resources/dynamo/golden/components/`.

python -m tests.resources.dynamo.objects.golden_components      records them again; review the change
"""

import json
from pathlib import Path
from typing import Final

import yaml

from tests.resources.dynamo.objects.component_graphs import resources
from tests.resources.dynamo.objects.grove_graphs import COMMANDS, disaggregated

FOLDER: Final = Path(__file__).parent.parent / "golden" / "components"


def recorded(framework: str) -> str:
    """The recorded objects of a framework, as YAML."""
    return _file(framework).read_text("utf-8")


def computed(framework: str) -> str:
    """The objects that the graph of a framework has now, as YAML."""
    bodies = [json.loads(json.dumps(resource.body)) for resource in resources(disaggregated(framework)).values()]
    return yaml.safe_dump_all(bodies, sort_keys=False, width=140)


def record() -> None:
    """Record all objects again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for framework in COMMANDS:
        _file(framework).write_text(computed(framework), "utf-8")


def _file(framework: str) -> Path:
    return FOLDER / f"{framework}.yaml"


if __name__ == "__main__":
    record()
