"""The recorded PodCliqueSets of a graph of each framework, in `tests/resources/dynamo/golden/sets/`.

python -m tests.resources.dynamo.objects.golden_sets      records them again; review the change
"""

import json
from pathlib import Path
from typing import Final

import yaml

from resources.dynamo.objects.podcliqueset import podcliqueset
from resources.ports.configuration import DynamoSettings
from tests.resources.dynamo.objects.grove_graphs import COMMANDS, disaggregated

FOLDER: Final = Path(__file__).parent.parent / "golden" / "sets"


def recorded(framework: str) -> str:
    """The recorded set of a framework, as YAML."""
    return _file(framework).read_text("utf-8")


def computed(framework: str) -> str:
    """The set that the graph of a framework has now, in the KAI queue `dynamo`, as YAML."""
    made = podcliqueset(disaggregated(framework), DynamoSettings(), "dynamo")
    assert made is not None
    return yaml.safe_dump(json.loads(json.dumps(made.body)), sort_keys=False, width=140)


def record() -> None:
    """Record all sets again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for framework in COMMANDS:
        _file(framework).write_text(computed(framework), "utf-8")


def _file(framework: str) -> Path:
    return FOLDER / f"{framework}.yaml"


if __name__ == "__main__":
    record()
