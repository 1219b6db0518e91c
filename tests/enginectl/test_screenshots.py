"""The picture of the page of a plan is taken by a script, from what the page says now."""

from pathlib import Path
from struct import unpack

from tests.browser import needs_chromium, open_browser
from tests.enginectl.screenshots import PLAN, SIZE, plan_page, take


def size_of(picture: Path) -> tuple[int, int]:
    """Pixels: width and height of a PNG, which its first chunk tells."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = unpack(">II", head[16:])
    return width, height


def test_the_stored_picture_has_the_size_of_the_window() -> None:
    assert size_of(PLAN) == SIZE


@needs_chromium
def test_the_script_takes_the_picture(tmp_path: Path) -> None:
    with open_browser() as chromium:
        take(chromium, plan_page(tmp_path), picture := tmp_path / "plan.png")
        shown = chromium.evaluate("document.body.innerText")

    assert size_of(picture) == SIZE
    assert "10 pods restarted" in shown and "4 PodCliques deleted" in shown and "10 passes" in shown, "draw it and describe it anew"
