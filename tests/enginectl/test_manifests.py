"""`engine manifests crds`: what it prints can be applied, and deploy/ contains what it prints."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_group

from engine.errors import InputError
from enginectl.base.errors import UsageError
from enginectl.base.exit_codes import Exit
from enginectl.commands.manifests import manifests
from resources.schema.crds import crds

DEPLOYED = Path(__file__).parents[2] / "deploy" / "crds"
FILES = [
    "grove.io_clustertopologybindings.yaml",
    "grove.io_podcliques.yaml",
    "grove.io_podcliquescalinggroups.yaml",
    "grove.io_podcliquesets.yaml",
    "nvidia.com_dynamographdeployments.yaml",
    "scheduler.grove.io_podgangs.yaml",
]


def manifest(*arguments: str) -> Any:
    """The exit code of `engine manifests` with these arguments."""
    return get_group(manifests).main(list(arguments), standalone_mode=False)


def test_the_text_is_a_stream_of_all_definitions(capsys: pytest.CaptureFixture[str]) -> None:
    assert manifest("crds") == Exit.DONE

    assert list(yaml.safe_load_all(capsys.readouterr().out)) == list(crds())


def test_the_json_is_one_versioned_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert manifest("crds", "-o", "json") == Exit.DONE

    assert json.loads(capsys.readouterr().out) == {"version": 1, "objects": list(crds())}


def test_the_deployed_definitions_are_those_that_the_command_writes(tmp_path: Path) -> None:
    assert manifest("crds", "--dir", str(tmp_path)) == Exit.DONE

    assert {file.name: file.read_text() for file in DEPLOYED.iterdir()} == {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert sorted(file.name for file in DEPLOYED.iterdir()) == FILES


def test_a_folder_and_json_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out -o json"):
        manifest("crds", "--dir", str(tmp_path), "-o", "json")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match=r"file/grove\.io_podcliques\.yaml: (file exists|not a directory)"):
        manifest("crds", "--dir", str(tmp_path / "file"))
