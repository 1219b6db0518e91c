"""Kustomize: the manifests that `kubectl kustomize` or `kustomize build` makes of a directory."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from engine.errors import InputError
from engine.report.printable import clipped, printable
from enginectl.base.exit_codes import UsageError

PROGRAMS: Final = (("kustomize", "build"), ("kubectl", "kustomize"))
"""What can build a directory, with the words before its path."""
ERROR: Final = re.compile("^error: ", re.IGNORECASE | re.MULTILINE)
"""How the line of the error begins."""
SECONDS: Final = 60
"""How long a build may take."""
MAX_MESSAGE: Final = 1000
"""Characters of the program's own message that are shown."""


OFFLINE: Final[Mapping[str, str]] = {
    "GIT_ALLOW_PROTOCOL": "",
    **{name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")},
    **{name: "" for name in ("NO_PROXY", "no_proxy")},
}
"""The environment in which neither git nor a client of HTTP leaves this host, should a kustomize fetch what we do not know."""


def build(directory: Path, *, remote: bool) -> bytes:
    """The manifests that a directory stands for, as YAML. `remote`: the program may use the network.

    Raises `UsageError` if no program can build it, and `InputError` if the build fails or takes too long.
    """
    place = printable(str(directory))
    words = _program()
    if words is None:
        raise UsageError(f"{place}: neither kustomize nor kubectl is on the PATH: where one is, kustomize build {place} | engine diff -f -")
    command = " ".join(words)
    try:
        # An absolute path: one that begins with a hyphen is not taken for an option.
        done = subprocess.run(
            [*words, str(directory.absolute())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            env=None if remote else {**os.environ, **OFFLINE},
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{place}: {command} did not end within {SECONDS} seconds") from None
    except OSError as error:
        raise InputError(f"{place}: {command} could not be started: {(error.strerror or 'unknown error').lower()}") from None
    if done.returncode:
        raise InputError(f"{place}: {command} failed: {_message(done.stderr)}")
    return done.stdout


def _program() -> tuple[str, ...] | None:
    """The words of the first program on the PATH."""
    return next((words for words in PROGRAMS if shutil.which(words[0])), None)


def _message(stderr: bytes) -> str:
    """The error that a program wrote to its standard error, in one line; without its warnings, if one line says `error:`."""
    text = stderr[-4 * MAX_MESSAGE :].decode("utf-8", "replace")
    *_, error = ERROR.split(text)
    return clipped(" ".join(error.split()), MAX_MESSAGE) or "without a message"
