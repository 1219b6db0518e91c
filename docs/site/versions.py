"""The versions of the site that are published beside one another: a folder for each.

    python docs/site/versions.py FOLDER ADDRESS

Writes into FOLDER, which has the folders, `versions.json` for the menu of versions, and an `index.html` that leads to the newest release,
or to `main` before the first one.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

RELEASE: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)")
NEWEST: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>grove-engine</title>
<meta http-equiv="refresh" content="0; url={name}/"></head><body><a href="{name}/">{name}</a></body></html>
"""


def main(folder: Path, address: str) -> None:
    """Write both files."""
    found = versions(path.name for path in folder.iterdir() if (path / "index.html").is_file())
    (folder / "versions.json").write_text(json.dumps(menu(found, address), indent=2) + "\n")
    (folder / "index.html").write_text(NEWEST.format(name=found[0]))


def versions(names: Iterable[str]) -> list[str]:
    """Releases, the newest first, then all others by name, e.g. `main`."""
    listed = set(names)
    releases = {name for name in listed if RELEASE.fullmatch(name)}
    return [*sorted(releases, key=lambda name: tuple(map(int, name.split("."))), reverse=True), *sorted(listed - releases)]


def menu(found: Iterable[str], address: str) -> list[dict[str, str | bool]]:
    """The entries of the menu. The first is the one that readers of others are pointed to."""
    return [{"name": name, "version": name, "url": f"{address}/{name}/", "preferred": not place} for place, name in enumerate(found)]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].rstrip("/"))
