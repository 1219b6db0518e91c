"""The lock files: what the image and a release are built from, each file of it by its hash.

    python deploy/image/lock.py            # `make lock`

Writes `requirements.lock` (what the engine and its extra `otel` need at run time), `sandbox.lock` (what the sandbox needs besides) and
`build.lock` (what builds their wheels) beside this file. Versions are those of constraints.txt and of `build-system` in pyproject.toml; pip
says which wheels it would install, on Linux with glibc, for each supported version of Python and processor, and what their hashes are.
Nothing is installed. The addresses of an index are not written.
"""

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = Path(__file__).parent
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
PROCESSORS: Final = ("x86_64", "aarch64")
GLIBCS: Final = (17, 28, 41)
"""Minor versions of glibc 2: of old systems, of those in between, and of new ones, for which there may be other wheels."""
NEWER_GLIBCS: Final = GLIBCS[1:]
"""Those for which there is a wheel of everything that the sandbox needs."""
HEADER: Final = "# Made by `make lock`: wheels for Linux (glibc), Python {pythons}, {processors}. Do not edit.\n"

Wheels = Mapping[str, frozenset[str]]
"""`name==version` -> the SHA-256 hashes of its wheels."""


def main() -> None:
    """Write the files."""
    project, sandbox = (tomllib.loads((ROOT / folder / "pyproject.toml").read_text()) for folder in ("", "sandbox"))
    extras = project["project"]["optional-dependencies"]
    write(FOLDER / "requirements.lock", [*project["project"]["dependencies"], *extras["otel"]])
    write(FOLDER / "sandbox.lock", sandbox["project"]["dependencies"], NEWER_GLIBCS, besides=FOLDER / "requirements.lock")
    write(FOLDER / "build.lock", project["build-system"]["requires"])


def write(file: Path, requirements: Sequence[str], glibcs: Sequence[int] = GLIBCS, besides: Path | None = None) -> None:
    """Write what these requirements need, directly or not, less what is in the file `besides` already."""
    known = set(besides.read_text().split()) if besides is not None else set[str]()
    wheels = locked(requirements, glibcs)
    file.write_text("".join(lines({name: digests for name, digests in wheels.items() if name not in known})))


def locked(requirements: Sequence[str], glibcs: Sequence[int]) -> Wheels:
    """The wheels on every platform, together."""
    platforms = list(product(PYTHONS, PROCESSORS, glibcs))
    with ThreadPoolExecutor(4) as threads:
        reports = list(threads.map(lambda platform: reported(requirements, *platform), platforms))
    wheels: dict[str, frozenset[str]] = {}
    for name, digest in (wheel for report in reports for wheel in wheels_in(report)):
        wheels[name] = wheels.get(name, frozenset()) | {digest}
    return wheels


def reported(requirements: Sequence[str], python: str, processor: str, glibc: int) -> Any:
    """What pip would install there, as it reports it. Wheels in local folders do not count: they need not be those of the index."""
    platforms = [f"--platform=manylinux_2_{minor}_{processor}" for minor in range(glibc, 4, -1)]
    platforms += [f"--platform={name}_{processor}" for name in ("manylinux2014", "linux")]
    environment = {key: value for key, value in os.environ.items() if key != "PIP_FIND_LINKS"}
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "requirements.txt"
        wanted.write_text("\n".join(requirements))
        words = ["--dry-run", "--quiet", "--report=-", "--only-binary=:all:", f"--target={folder}/none", f"--python-version={python}"]
        words += [*platforms, "--constraint", str(ROOT / "constraints.txt"), "--requirement", str(wanted)]
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", *words]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def wheels_in(report: Any) -> Iterator[tuple[str, str]]:
    """`name==version` of each wheel in a report, and its hash."""
    for entry in report["install"]:
        metadata = entry["metadata"]
        name = metadata["name"].lower().replace("_", "-").replace(".", "-")
        yield f"{name}=={metadata['version']}", entry["download_info"]["archive_info"]["hashes"]["sha256"]


def lines(wheels: Wheels) -> Iterable[str]:
    """The lines of a file that pip reads with `--require-hashes`."""
    yield HEADER.format(pythons=" to ".join((PYTHONS[0], PYTHONS[-1])), processors=" and ".join(PROCESSORS))
    for name, digests in sorted(wheels.items(), key=lambda wheel: wheel[0].split("==")):
        yield " \\\n".join((name, *(f"    --hash=sha256:{digest}" for digest in sorted(digests)))) + "\n"


if __name__ == "__main__":
    main()
