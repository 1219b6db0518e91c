"""What commands take that have next to nothing to do: start Python, import, compute, print. Prints one JSON line per figure.

`python -m benchmarks.startup [NAME…]`: the named ones only, e.g. `help status`. Best of `TRIALS`, with compiled bytecode as an installation
has it. `status` and `live diff` ask a sandbox with one set.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.plan import report

ROOT = Path(__file__).resolve().parent.parent
SET = str(ROOT / "examples" / "01-first-gang")
ALONE = {
    "help": ("--help",),
    "version": ("--version",),
    "diff-help": ("diff", "--help"),
    "render": ("render", "-f", SET),
    "diff": ("diff", "--against", "empty", "-f", SET),
}
"""Name -> command line that needs no cluster."""
CONNECTED = {
    "live-diff": ("diff", "-f", SET),
    "status": ("status",),
}
"""Name -> command line that asks a cluster with one settled set."""
COMMANDS: Mapping[str, tuple[str, ...]] = {**ALONE, **CONNECTED}
TRIALS = 5
WARM_UP = 2
"""Runs before the first one that counts: they compile."""


def main() -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join([*COMMANDS])}")
    names = parser.parse_args().names or list(COMMANDS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        variables = environment(Path(folder))
        for name in names:
            if name in CONNECTED and "KUBECONFIG" not in variables:
                variables["KUBECONFIG"] = stack.enter_context(cluster(variables))
            wall, cpu = best(COMMANDS[name], variables)
            report(name, round(wall * 1000), "ms")
            report(f"{name}, CPU", round(cpu * 1000), "ms")


def environment(folder: Path) -> dict[str, str]:
    """The environment of the commands: bytecode is kept in a folder of its own, and nothing of the user's is read."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "cmd")))
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


@contextmanager
def cluster(variables: Mapping[str, str]) -> Iterator[str]:
    """A sandbox with one settled set: the path of its kubeconfig. It ends with the block."""
    folder = Path(variables["HOME"]) / "sandbox"
    with subprocess.Popen(engine("sandbox", "up", "--dir", str(folder)), stdout=subprocess.PIPE, text=True, env=dict(variables)) as server:
        assert server.stdout is not None
        kubeconfig = server.stdout.readline().strip().partition("=")[2]
        try:
            run(("sync", "-f", SET), {**variables, "KUBECONFIG": kubeconfig})
            yield kubeconfig
        finally:
            server.terminate()


def best(words: tuple[str, ...], variables: Mapping[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of the command, each the lowest of several runs."""
    for _ in range(WARM_UP):
        run(words, variables)
    costs = [run(words, variables) for _ in range(TRIALS)]
    return min(wall for wall, _ in costs), min(cpu for _, cpu in costs)


def run(words: tuple[str, ...], variables: Mapping[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of one run. Raises `CalledProcessError` if it fails."""
    used, began = cpu_of_children(), time.perf_counter()
    subprocess.run(engine(*words), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(variables))
    return time.perf_counter() - began, cpu_of_children() - used


def engine(*words: str) -> list[str]:
    """The command line of another process."""
    return [sys.executable, "-m", "enginectl", *words]


def cpu_of_children() -> float:
    """CPU seconds of the child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
