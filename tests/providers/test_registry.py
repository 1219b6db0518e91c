"""Fabrics of other packages are found by their entry points, and a broken one is named."""

from pathlib import Path

import pytest

from engine.errors import InputError
from providers.registry import fabrics
from resources.settings import Settings
from tests.providers.installed import EXAMPLE, install

PROJECT = """[project]
name = "{name}"
version = "1.0"

[project.entry-points."engine.fabrics"]
{name} = "{name}_module:configured"
"""

INCOMPLETE = """from resources.ports.fabric import Fabric

class Half(Fabric):
    name, kind, finalizer = "half", None, "half"
    domain_requests = template_name = template_blocker = domain_uid = lambda self, *given: ""

def configured(settings):
    return Half()
"""


def package(folder: Path, name: str, code: str) -> Path:
    """A package of one module that offers a fabric."""
    made = folder / name
    made.mkdir()
    (made / "pyproject.toml").write_text(PROJECT.format(name=name))
    (made / f"{name}_module.py").write_text(code)
    return made


def test_our_fabrics_come_first_then_those_of_other_packages_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [fabric.name for fabric in fabrics(Settings())] == ["nvidia"]

    install(EXAMPLE, tmp_path, monkeypatch)
    assert [fabric.name for fabric in fabrics(Settings())] == ["nvidia", "meshworks"]


@pytest.mark.parametrize(
    ("name", "code", "why"),
    [
        ("absent", "import nowhere_to_be_found\n", "No module named 'nowhere_to_be_found'"),
        ("nameless", "", "module 'nameless_module' has no attribute 'configured'"),
        ("failing", "def configured(settings):\n    raise RuntimeError('no licence')\n", "no licence"),
        ("foreign", "def configured(settings):\n    return 7\n", "it makes 7, which is no resources.ports.fabric.Fabric"),
        ("incomplete", INCOMPLETE, "Can't instantiate abstract class Half .* abstract method '?decorate_pod"),
    ],
)
def test_a_broken_plug_in_is_named_in_the_error(name: str, code: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(package(tmp_path, name, code), tmp_path, monkeypatch)

    with pytest.raises(InputError, match=f"the plug-in {name} = {name}_module:configured .* cannot be used: {why}"):
        fabrics(Settings())


def test_two_fabrics_with_the_same_kind_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "from providers.fabrics.nvidia.fabric import Nvidia\n\nclass Copy(Nvidia):\n    name = 'copy'\n"
    code += "\ndef configured(settings):\n    return Copy()\n"
    install(package(tmp_path, "twin", code), tmp_path, monkeypatch)

    with pytest.raises(InputError, match="the fabrics nvidia and copy both use the kind ComputeDomain for their domains"):
        fabrics(Settings())
