"""The first moments of a command: what a user interrupts before its code is imported."""

import subprocess
import sys
import tomllib

from enginectl.base.exit_codes import Exit
from tests.enginectl.calling import ROOT, environment
from tests.waiting import PATIENCE


def test_an_interruption_while_the_command_line_is_imported_is_one_line() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["engine"] == "enginectl.entry:main"
    interrupting = (
        "import signal, sys; from enginectl.entry import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # A shell that runs in the background ignores it.
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'enginectl.main': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder()); sys.exit(main())"
    )

    ended = subprocess.run([sys.executable, "-c", interrupting], env=environment(), capture_output=True, text=True, timeout=PATIENCE)

    assert (ended.returncode, ended.stderr) == (Exit.INTERRUPTED, "exit 130: interrupted\n")
