"""Golden files: the recorded answers of a real server.

python -m tests.contract.golden KUBECONFIG [SCENARIO …]      records them again
"""

import sys
from pathlib import Path
from typing import Any

import anyio
import orjson

from tests.contract.answers import answers_of
from tests.contract.scenario import Scenario
from tests.contract.scenarios import EVERY
from tests.contract.server import described

FOLDER = Path(__file__).parent / "golden"


def file_of(scenario: Scenario) -> Path:
    """The golden file of a scenario."""
    return FOLDER / f"{scenario.name}.json"


def answers(scenario: Scenario) -> list[dict[str, Any]]:
    """The recorded answers of the real server."""
    recorded: list[dict[str, Any]] = orjson.loads(file_of(scenario).read_bytes())
    return recorded


async def record(kubeconfig: Path, names: list[str]) -> None:
    """Record the answers of a real server to the named scenarios, or to all."""
    server = described("real", kubeconfig)
    for scenario in EVERY:
        if not names or scenario.name in names:
            recorded = await answers_of(server, scenario)
            file_of(scenario).write_bytes(orjson.dumps(recorded, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")


if __name__ == "__main__":
    anyio.run(record, Path(sys.argv[1]), sys.argv[2:])
