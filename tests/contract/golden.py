"""Golden files: what the real server said, written once and read ever after.

python -m tests.contract.golden KUBECONFIG [SCENARIO …]      records them anew
"""

import sys
from pathlib import Path
from typing import Any

import anyio
import orjson

from tests.contract.asking import told
from tests.contract.scenario import Scenario
from tests.contract.scenarios import EVERY
from tests.contract.server import described

FOLDER = Path(__file__).parent / "golden"


def file_of(scenario: Scenario) -> Path:
    """Where the answers of a scenario are kept."""
    return FOLDER / f"{scenario.name}.json"


def answers(scenario: Scenario) -> list[dict[str, Any]]:
    """What the real server said."""
    said: list[dict[str, Any]] = orjson.loads(file_of(scenario).read_bytes())
    return said


async def record(kubeconfig: Path, names: list[str]) -> None:
    """Play scenarios on a real server and write down what it says."""
    server = described("real", kubeconfig)
    for scenario in EVERY:
        if not names or scenario.name in names:
            said = await told(server, scenario)
            file_of(scenario).write_bytes(orjson.dumps(said, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


if __name__ == "__main__":
    anyio.run(record, Path(sys.argv[1]), sys.argv[2:])
