"""Release notes: what the changelog says about a version, as the text of a release on GitHub.

    python deploy/release/notes.py 0.1.0 https://github.com/OWNER/NAME > notes.md

Exits with 1 if the changelog has no section with a date for it, or if it is not the version of the engine, the chart and the sandbox.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACES = (
    ("engine/version.py", r'^VERSION = "(.*)"$'),
    ("sandbox/pyproject.toml", r'^version = "(.*)"$'),
    ("deploy/chart/Chart.yaml", r"^version: (.*)$"),
    ("deploy/chart/Chart.yaml", r'^appVersion: "(.*)"$'),
)
"""The files that state the version, and where in them."""
LONGEST = 120_000
"""The most characters of a text; GitHub takes 125,000."""


def notes(changelog: str, version: str) -> str:
    """The section of a version, without its heading. Empty if there is none with a date."""
    section = re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    return section[1].strip() if section else ""


def body(section: str, files: str, longest: int = LONGEST) -> str:
    """The section as a release shows it: an entry is one line, since it keeps line breaks, and links lead to the files of the release.

    `files` is the address of their root. What is too long ends with how many entries are left out, and where they are.
    """
    lines = re.sub(r"\n +(?=\S)", " ", section).splitlines()
    text = [re.sub(r"\]\((?![a-z]+:|#)([^)]+)\)", rf"]({files}/\1)", line) for line in lines]
    kept, size = 0, 0
    while kept < len(text) and (size := size + len(text[kept]) + 1) <= longest:
        kept += 1
    if left_out := sum(line.startswith("- ") for line in text[kept:]):
        text[kept:] = ["", f"{left_out} more entries are in the [changelog]({files}/CHANGELOG.md)."]
    return "\n".join(text)


def others(version: str, root: Path = ROOT) -> Iterator[str]:
    """The files that state another version."""
    for file, pattern in PLACES:
        stated = re.findall(pattern, (root / file).read_text(encoding="utf-8"), re.MULTILINE)
        if stated != [version]:
            yield f"{file} has version {', '.join(stated) or 'none'}, not {version}"


def main(version: str, repository: str) -> int:
    """Write the notes, or what is wrong. Returns the exit code."""
    section = notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    faults = [*others(version), *([] if section else [f"CHANGELOG.md has no section [{version}] with a date"])]
    sys.stdout.write(f"{body(section, f'{repository}/blob/v{version}')}\n" if not faults else "")
    sys.stderr.writelines(f"{fault}\n" for fault in faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
