"""Runs the command of a container as a kubelet would, with recording programs instead of the real ones.

Each program of `RECORDED` writes its arguments to a file. `mpirun` then runs what it was asked to run, with the variables of its `-x`
options alone, as on another node.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE

RECORDED = (
    "python3",
    "python",
    "python3.8",
    "ray",
    "numactl",
    "tini",
    "trtllm-llmapi-launch",
    "launch",
    "vllm",
    "ssh-keygen",
    "sshd",
    "getent",
    "chmod",
)
_RECORD = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$#" "$@" >> "$RECORD"
"""
_TINI = f'{_RECORD}while [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
_COPY = f'{_RECORD}for last in "$@"; do :; done\nprintf "%s" "$1" > "$last"\n'
_MKDIR = f'{_RECORD}case "$*" in *" /"*) case "$*" in *"$HOME"*) ;; *) exit "${{MKDIR_STATUS:-0}}" ;; esac ;; esac\nexec /bin/mkdir "$@"\n'
_MPIRUN = f"""#!{sys.executable} -IS
import os, sys
words = sys.argv[1:]
with open(os.environ["RECORD"], "ab") as record:
    record.write(b"".join(os.fsencode(word) + b"\\0" for word in ("mpirun", str(len(words)), *words)))
names = [words[index + 1] for index, word in enumerate(words) if word == "-x"]
exported = {{name: os.environ[name] for name in names if name in os.environ}}
# The virtual environment is not installed here: reading its script succeeds.
exported |= {{"RECORD": os.environ["RECORD"], "BASH_FUNC_source%%": "() {{ [ $1 = /opt/dynamo/venv/bin/activate ]; }}"}}
os.execvpe("bash", words[words.index("bash"):], exported)
"""
GROVE = {
    "GROVE_PCSG_NAME": "g-0-decode",
    "GROVE_PCSG_INDEX": "1",
    "GROVE_PCLQ_POD_INDEX": "1",
    "GROVE_PCSG_POD_INDEX": "2",
    "GROVE_HEADLESS_SERVICE": "g-0.ai.svc.cluster.local",
}
LWS = {"LWS_LEADER_ADDRESS": "g-decode-1-0.g-decode-1.ai", "LWS_GROUP_SIZE": "3", "LWS_WORKER_INDEX": "2"}


@dataclass(frozen=True)
class ContainerRun:
    """What a container started, and how it ended."""

    calls: tuple[tuple[str, ...], ...]
    """Program and arguments of each call, in order."""
    status: int
    errors: str
    home: Path

    def arguments(self, program: str) -> list[tuple[str, ...]]:
        """The arguments of each call of a program."""
        return [call[1:] for call in self.calls if call[0] == program]


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """The text as a kubelet delivers it, character by character."""
    result, position = "", 0
    while position < len(text):
        following = text[position + 1 : position + 2]
        if text[position] != "$" or following not in ("$", "("):
            result += text[position]
            position += 1
        elif following == "$":
            result += "$"
            position += 2
        elif (end := text.find(")", position)) < 0:
            result += "$("
            position += 2
        else:
            name = text[position + 2 : end]
            result += variables.get(name, f"$({name})")
            position = end + 1
    return result


def environment(container: Mapping[str, Any], injected: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """The variables of a container, computed in their order. `secrets` are those that come from `envFrom` or a Secret."""
    variables = {**injected, **secrets}
    for env in container.get("env", ()):
        if "value" in env:
            variables[env["name"]] = expanded(env["value"], variables)
    return variables


def delivered(words: Sequence[str], container: Mapping[str, Any], injected: Mapping[str, str], secrets: Mapping[str, str]) -> list[str]:
    """The words that the container's program would have received without any rewriting."""
    variables = environment(container, injected, secrets)
    return [expanded(word, variables) for word in words]


def programs(folder: Path) -> Path:
    """A folder with the recording programs."""
    folder.mkdir(parents=True)
    texts = dict.fromkeys(RECORDED, _RECORD) | {"tini": _TINI, "cp": _COPY, "ls": _RECORD, "mkdir": _MKDIR}
    for name, text in texts.items():
        _program(folder / name, text)
    _program(folder / "mpirun", _MPIRUN)
    return folder


def run(
    container: Mapping[str, Any],
    folder: Path,
    injected: Mapping[str, str] = GROVE,
    secrets: Mapping[str, str] | None = None,
    mkdir_status: int = 0,
    shell: str = "",
) -> ContainerRun:
    """Start the container's command in a home below `folder`, and wait for its end. `shell` stands in for `/bin/sh`."""
    bin_folder = folder / "bin"
    if not bin_folder.exists():
        programs(bin_folder)
    home, record = folder / "home of user", folder / "record"
    home.mkdir(exist_ok=True)
    record.write_bytes(b"")
    variables = environment(container, injected, secrets or {})
    words = [expanded(word, variables) for word in (*container.get("command", ()), *container.get("args", ()))]
    # The SSH server is started by its absolute path, which a test cannot replace.
    words = [word.replace("/usr/sbin/sshd", "sshd") for word in words]
    own = {"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": str(home), "RECORD": str(record), "MKDIR_STATUS": str(mkdir_status)}
    done = subprocess.run(
        [os.fsencode(word) for word in words],
        executable=shell if shell and words[0] in ("/bin/sh", "sh") else None,
        env={os.fsencode(name): os.fsencode(value) for name, value in {**variables, **own}.items()},
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
    )
    return ContainerRun(_calls(record.read_bytes()), done.returncode, done.stderr.decode(errors="replace"), home)


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _calls(record: bytes) -> tuple[tuple[str, ...], ...]:
    fields = [os.fsdecode(field) for field in record.split(b"\0")[:-1]]
    calls: list[tuple[str, ...]] = []
    while fields:
        end = 2 + int(fields[1])
        calls.append((fields[0], *fields[2:end]))
        fields = fields[end:]
    return tuple(calls)
