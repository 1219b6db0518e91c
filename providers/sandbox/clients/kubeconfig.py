"""Kubeconfig: the file that lets kubectl, and everybody else, find the sandbox and in."""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONTEXT = "sandbox"


@dataclass(frozen=True, slots=True)
class Login:
    """A user, and the token that lets them in."""

    user: str
    token: str = field(repr=False)


def write(path: Path, *, server: str, authority: bytes, logins: Mapping[str, Login]) -> None:
    """Write a kubeconfig with a context for each login, the first the current one, that only its owner can read.

    Whoever reads the path meanwhile sees the old file or the new one, whole.
    """
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": next(iter(logins)),
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": login.user, "user": {"token": login.token}} for login in logins.values()],
        "contexts": [
            {"name": name, "context": {"cluster": CONTEXT, "user": login.user, "namespace": "default"}} for name, login in logins.items()
        ],
    }
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    draft.replace(path)
