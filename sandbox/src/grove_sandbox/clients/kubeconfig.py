"""Kubeconfig: the file with which kubectl and other clients connect to the sandbox."""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONTEXT = "sandbox"


@dataclass(frozen=True, slots=True)
class Login:
    """A user and their token."""

    user: str
    token: str = field(repr=False)


def write(path: Path, *, server: str, authority: bytes, logins: Mapping[str, Login]) -> None:
    """Write a kubeconfig that only its owner can read, with a context for each login; the first is the current one.

    The file is replaced atomically.
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
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    temporary.replace(path)
