"""Golden files: the recorded answers of a real server.

python -m tests.contract.golden KUBECONFIG [SCENARIO …]      records them again

They are of the release whose pod types are recorded too. A file of another release has only the answers that differ, null for the others.
"""

import sys
from pathlib import Path
from typing import Any

import anyio
import orjson

from resources.schema.published import pod_defaults
from tests.contract.answers import answers_of, sending
from tests.contract.scenario import Scenario
from tests.contract.scenarios import EVERY
from tests.contract.server import Server, described

Answers = list[dict[str, Any]]

FOLDER = Path(__file__).parent / "golden"


def file_of(scenario: Scenario, release: str = "") -> Path:
    """The golden file of a scenario; of a release like `1.35` that of the answers that differ."""
    return FOLDER / release / f"{scenario.name}.json"


def answers(scenario: Scenario, release: str = "") -> Answers:
    """The recorded answers of the real server, or of one of that release."""
    recorded: Answers = orjson.loads(file_of(scenario).read_bytes())
    of_release = file_of(scenario, release)
    differing = orjson.loads(of_release.read_bytes()) if release and of_release.exists() else [None] * len(recorded)
    return [own or shared for own, shared in zip(differing, recorded, strict=True)]


async def release_of(server: Server) -> str:
    """The release of a real server, e.g. `1.37`."""
    async with sending(server) as send:
        _, version = await send("GET", "/version", None, "application/json")
    return minor(version["gitVersion"])


def minor(version: str) -> str:
    """`1.37` of `v1.37.2`."""
    return ".".join(version.removeprefix("v").split(".")[:2])


def write(scenario: Scenario, recorded: Answers, release: str) -> None:
    """Write the answers of a server of that release to a scenario."""
    file, content = file_of(scenario), list[dict[str, Any] | None](recorded)
    if release != minor(pod_defaults().release):
        file = file_of(scenario, release)
        content = [own if own != shared else None for own, shared in zip(recorded, answers(scenario), strict=True)]
    if any(content):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
    else:
        file.unlink(missing_ok=True)


async def record(kubeconfig: Path, names: list[str]) -> None:
    """Record the answers of a real server to the named scenarios, or to all."""
    server = described("real", kubeconfig)
    release = await release_of(server)
    for scenario in EVERY:
        if not names or scenario.name in names:
            write(scenario, await answers_of(server, scenario), release)


if __name__ == "__main__":
    anyio.run(record, Path(sys.argv[1]), sys.argv[2:])
