"""Completes the chart of a release with what only the release knows: where the repository is, and in which registry the images are.

    python deploy/release/chart.py FOLDER https://github.com/OWNER/NAME ghcr.io/OWNER

FOLDER is a copy of deploy/chart, which is changed. Exits with 1 if a place that it changes is not there.
"""

import re
import sys
from pathlib import Path

IMAGES = ("grove-engine", "grove-initc")
"""The images, by the names that they have without a registry."""


def completed(chart: str, values: str, repository: str, registry: str) -> tuple[str, str]:
    """The texts of Chart.yaml and values.yaml. Raises `ValueError` if one lacks a place for it."""
    about = f"home: {repository}\nsources: [{repository}]\nannotations:\n"
    chart = _replaced(r"^annotations:\n", about, chart)
    for image in IMAGES:
        chart = _replaced(rf"(?<=image: '){image}(?=:)", f"{registry}/{image}", chart)
        values = _replaced(rf"(?<=^  repository: ){image}$", f"{registry}/{image}", values)
    return chart, values


def _replaced(pattern: str, by: str, text: str) -> str:
    """The text with its one match replaced."""
    result, count = re.subn(pattern, lambda _: by, text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{count} places match {pattern}")
    return result


def main(folder: Path, repository: str, registry: str) -> int:
    """Rewrite the two files. Returns the exit code."""
    chart, values = folder / "Chart.yaml", folder / "values.yaml"
    try:
        texts = completed(chart.read_text(encoding="utf-8"), values.read_text(encoding="utf-8"), repository, registry)
    except ValueError as error:
        sys.stderr.write(f"{folder}: {error}\n")
        return 1
    for file, text in zip((chart, values), texts, strict=True):
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
