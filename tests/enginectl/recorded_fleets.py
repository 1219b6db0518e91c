"""What the engine has made of the examples while its pod types were those of an earlier release of Kubernetes: snapshots, compressed.

python -m tests.enginectl.recorded_fleets      records what it makes of them now; do so before the pod types of another release are recorded
"""

import gzip
import sys
import tempfile
from pathlib import Path
from typing import Final

from grove_sandbox.registry import ACTORS
from resources.base.kinds import KAI_QUEUE
from resources.schema.published import pod_defaults
from tests.enginectl.calling import finished
from tests.enginectl.conftest import cluster
from tests.enginectl.test_examples import IN_MEMORY, LIKE_THE_SANDBOX, addons, configured, queues

FOLDER: Final = Path(__file__).parent / "recorded_fleets"


def fleets() -> list[Path]:
    """The snapshots; each is of the example that it is named after, in the folder of the release."""
    return sorted(FOLDER.glob("*/*.yaml.gz"))


def record(example: Path, file: Path) -> None:
    """Let the engine bring an example up on a cluster in memory, and write a snapshot. Raises `RuntimeError` if it does not."""
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder), ACTORS, LIKE_THE_SANDBOX, addons=addons(example)) as box:
        for queue in queues(example):
            box.create(KAI_QUEUE, queue)
        for words in (("sync", "-y", "-f", example), ("snapshot",)):
            answer = finished(*words, *configured(example), KUBECONFIG=str(box.kubeconfig))
            if answer.code:
                raise RuntimeError(f"{example.name}: {answer.err}{answer.out}")
        file.write_bytes(gzip.compress(answer.out.encode(), mtime=0))


def main() -> None:
    """Record all examples."""
    folder = FOLDER / pod_defaults().release
    folder.mkdir(parents=True, exist_ok=True)
    for example in IN_MEMORY:
        record(example, folder / f"{example.name}.yaml.gz")
        sys.stderr.write(f"{example.name}\n")


if __name__ == "__main__":
    main()
