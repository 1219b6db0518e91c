"""The picture of the first page: what `engine diff` says on a terminal of an example with another image.

python -m tests.enginectl.recording      draws it
"""

import io
import os
import subprocess
import tempfile
import termios
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from tests.enginectl.calling import ROOT, command, environment
from tests.waiting import PATIENCE

PICTURE: Final = ROOT / "docs" / "figures" / "diff.svg"
WIDTH: Final = 132
"""Characters of a line."""
# Rich's own form without its fonts, which a browser would fetch from elsewhere.
FORM: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def edited(folder: Path) -> None:
    """Make `old` in this folder, an example, and `new`, the same with another image."""
    old = ROOT / "examples" / "03-scaling-group"
    (new := folder / "new").mkdir()
    (new / "group.yaml").write_text((old / "group.yaml").read_text().replace("nginx:1.29-alpine", "nginx:1.30-alpine"))
    (folder / "old").symlink_to(old)


def said(folder: Path) -> str:
    """What `engine diff --base old -f new` says on a terminal, with its colours."""
    edited(folder)
    controlled, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (40, WIDTH))
    with os.fdopen(controlled, "rb", buffering=0) as reading:
        words = command("diff", "--base", "old", "-f", "new")
        variables = {**environment(), "TERM": "xterm"}
        with subprocess.Popen(words, cwd=folder, env=variables, stdout=terminal, stderr=subprocess.DEVNULL) as running:
            os.close(terminal)
            text = bytearray()
            try:
                while part := reading.read(1 << 16):
                    text += part
            except OSError:
                pass  # The terminal ends with the last process that has it open.
            assert running.wait(PATIENCE) == 0
    return text.decode().replace("\r\n", "\n")


def picture(text: str) -> str:
    """The picture of a terminal in which that was said."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_terminal=True, color_system="standard")
    console.print(Text("$ engine diff --base old -f new", style="bold"))
    for line in text.splitlines():
        console.print(Text.from_ansi(line))
    drawn = console.export_svg(title="what an edit of an image does", code_format=FORM, unique_id="diff")
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        PICTURE.write_text(picture(said(Path(temporary))))
