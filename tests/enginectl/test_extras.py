"""Without the extras and the sandbox everything else works, and what is missing says how to install it."""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from engine.errors import InputError
from enginectl.base import extras
from enginectl.base.exit_codes import Exit
from enginectl.main import NOT_INSTALLED
from tests.controlplane.cluster import ControlPlane
from tests.enginectl.calling import ROOT, CommandResult
from tests.stories.graph_cluster import install_crds
from tests.waiting import PATIENCE

EXAMPLE = "examples/01-first-gang"
SERVERS = ("httptools", "jsonschema_rs", "starlette", "uvicorn")
"""What only the sandbox installs; its other dependencies come with those of the product too."""
POLICIES = ("cel_expr_python", "google")
"""What the extra `policy` installs, as it is imported."""
TRACING = ("opentelemetry",)
"""What the extra `otel` installs, as it is imported."""
WITHOUT = f"""
import sys
from importlib import metadata

found = metadata.entry_points
metadata.entry_points = lambda **wanted: () if wanted.get("group") == "engine.commands" else found(**wanted)

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {("grove_sandbox", *SERVERS, *POLICIES, *TRACING)}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
COMMAND = f"{WITHOUT}\nfrom enginectl.main import app\nsys.exit(app(sys.argv[1:]))"
IMPORT = f"{WITHOUT}\nfrom importlib import import_module\nfor name in sys.argv[1:]:\n    import_module(name)"


def python(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The program in another process, in which neither the sandbox nor what only extras install can be imported."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}", "HOME": "/nonexistent", "PYTHONUTF8": "1"}
    return subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--help",), "Commands:"),
        (("sandbox", "--help"), "Not installed"),
        (("render", "-f", EXAMPLE), "kind: PodGang"),
        (("diff", "--against", "empty", "-f", EXAMPLE), "2 PodCliques"),
    ],
)
def test_other_commands_need_no_extra(words: tuple[str, ...], line: str) -> None:
    ended = python(COMMAND, *words)

    assert (ended.returncode, CommandResult(ended.returncode, ended.stdout, ended.stderr).errors) == (Exit.DONE, "")
    assert line in ended.stdout


@pytest.mark.parametrize(
    "words", [("demo",), ("sandbox", "up"), ("sandbox", "actors", "--with", "kubelet"), ("-n", "x", "demo", "--nodes", "3")]
)
def test_the_sandbox_says_how_to_install_it(words: tuple[str, ...]) -> None:
    ended = python(COMMAND, *words)

    assert (ended.returncode, ended.stdout) == (Exit.FAILED, "")
    assert ended.stderr.splitlines()[0] == f"engine: {NOT_INSTALLED}"


@pytest.mark.parametrize("command", [("diff", "--against", "empty"), ("sync",)])
def test_policies_say_how_to_install_what_they_need(command: tuple[str, ...]) -> None:
    ended = python(COMMAND, *command, "-f", EXAMPLE, "--policy", "examples/policies")

    assert (ended.returncode, ended.stdout) == (Exit.FAILED, "")
    assert (
        ended.stderr.splitlines()[0]
        == "engine: --policy needs a library that is not installed: pip install '.[policy]', in a checkout of the project"
    )


def modules() -> list[str]:
    """Every module of the product outside of policies and tracing."""
    files = [path for root in ("engine", "resources", "providers", "cmd") for path in (ROOT / root).rglob("*.py")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("cmd.").removesuffix(".__init__") for path in files]
    return sorted(
        name
        for name in names
        if not name.startswith(("grove_sandbox", "providers.plan_policies", "providers.tracing")) and not name.endswith("__main__")
    )


def test_every_other_module_is_imported_without_the_extras() -> None:
    ended = python(IMPORT, *modules())

    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_defect_of_our_own_is_not_reported_as_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ModuleNotFoundError("No module named 'providers.plan_policies.gone'", name="providers.plan_policies.gone")

    monkeypatch.setattr(extras, "import_module", broken)

    with pytest.raises(ModuleNotFoundError) as raised:
        extras.require_policies()
    assert not isinstance(raised.value, InputError)


def test_what_only_the_sandbox_uses_is_no_dependency_of_the_product() -> None:
    product, sandbox = (tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"] for folder in (".", "sandbox"))

    def names(requirements: list[str]) -> set[str]:
        return {requirement.partition(">")[0].replace("-", "_") for requirement in requirements}

    assert set(SERVERS) <= names(sandbox["dependencies"])
    assert set(SERVERS).isdisjoint(names(product["dependencies"]))
    assert "grove-engine[otel,policy]" in product["optional-dependencies"]["dev"]


def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, words)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the project, built by pip."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    return the_wheel(folder, built)


def the_wheel(folder: Path, built: subprocess.CompletedProcess[str]) -> Path:
    if built.returncode and any(word in built.stderr for word in ("No matching distribution", "Connection", "Network is unreachable")):
        pytest.skip("pip cannot reach a package index")
    assert built.returncode == 0, built.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.e2e
def test_the_wheel_contains_nothing_of_the_sandbox(wheel: Path) -> None:
    contents = ZipFile(wheel).namelist()

    assert {"engine/tick.py", "enginectl/main.py", "initc/main.py"} <= set(contents)
    assert [name for name in contents if "sandbox" in name] == []


@pytest.mark.e2e
def test_an_installation_without_extras_works_on_a_real_server(wheel: Path, control_plane: ControlPlane, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv")
    engine = tmp_path / "venv" / "bin" / "engine"
    pip = (sys.executable, "-m", "pip", "--python", tmp_path / "venv" / "bin" / "python")
    installed = run(*pip, "install", "--quiet", "--no-compile", "-c", ROOT / "constraints.txt", wheel)
    assert installed.returncode == 0, installed.stderr
    install_crds(control_plane)

    kubeconfig = {"KUBECONFIG": str(control_plane.kubeconfig())}
    plan = run(engine, "diff", "-f", ROOT / EXAMPLE, "-o", "json", **kubeconfig)
    demo = run(engine, "demo", **kubeconfig)

    assert (plan.returncode, demo.returncode) == (Exit.DONE, Exit.FAILED), plan.stderr
    assert "PodGang" in plan.stdout
    assert NOT_INSTALLED in demo.stderr
