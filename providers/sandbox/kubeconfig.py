"""Kubeconfig: the file that lets kubectl, and everybody else, find the sandbox and in."""

import base64
import json
import os
from pathlib import Path

CONTEXT = "sandbox"


def write(path: Path, *, server: str, authority: bytes, token: str, user: str) -> None:
    """Write a kubeconfig that only its owner can read. Whoever reads the path meanwhile sees the old file or the new one, whole."""
    cluster = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user, "namespace": "default"}}],
    }
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    draft.replace(path)
