"""A namespace that is missing or being deleted holds creates back in every command, with the same words and the same remedy."""

import json
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine

MISSING = ("NamespaceMissing", "it does not exist", "kubectl create namespace nowhere")


def manifest_in(folder: Path, *sets: dict[str, Any]) -> Path:
    """A file with these sets."""
    file = folder / "sets.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(sets)}))
    return file


@pytest.mark.parametrize("command", [("diff",), ("sync", "--dry-run"), ("sync", "--yes")], ids=" ".join)
def test_a_missing_namespace_is_named_with_its_remedy_by_every_command(
    box: Box, engine: Engine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = manifest_in(tmp_path, podcliqueset("lost", clique("a"), namespace="nowhere"))

    answer = engine(*command, "-f", file)

    assert all(part in answer.out for part in MISSING), answer.out
    (own := tmp_path / "own.yaml").write_text("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: nowhere}\n")
    beside = engine(*command, "-f", file, "-f", own)
    assert f"NamespaceMissing: it does not exist (in {own}:2); do: apply it with kubectl first: the engine does not" in beside.out
    assert box.all(kinds.PODCLIQUESET) == []
    assert command == ("sync", "--yes") or answer.code == Exit.STUCK
    assert "failed" not in answer.out + answer.err and "whether it accepts" not in answer.out
