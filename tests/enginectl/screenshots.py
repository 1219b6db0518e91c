"""The picture of a page on the first page: that of a plan, as Chromium shows it.

python -m tests.enginectl.screenshots      takes it
"""

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.browser import Browser, open_browser
from tests.enginectl.calling import ROOT, command, environment
from tests.enginectl.recording import edited

PLAN: Final = ROOT / "docs" / "figures" / "plan.png"
SIZE: Final = (1000, 760)
"""Pixels: width and height of what is shown of a page."""


def plan_page(folder: Path) -> Path:
    """The page that `engine diff --base old -f new -o html` makes of an example with another image."""
    edited(folder)
    page = folder / "plan.html"
    words = command("diff", "--base", "old", "-f", "new", "--report", f"html={page}")
    subprocess.run(words, cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return page


def take(browser: Browser, page: Path, picture: Path) -> None:
    """Store what the beginning of a page looks like, as a PNG."""
    width, height = SIZE
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    browser.open(page.as_uri(), width=width, height=height)
    browser.screenshot(picture, whole=False)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary, open_browser() as chromium:
        take(chromium, plan_page(Path(temporary)), PLAN)
