"""The commands of the sandbox are commands of `engine` like all others."""

import json
import signal
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from enginectl.base.exit_codes import MEANINGS, Exit
from enginectl.main import PLUG_INS, SANDBOX
from tests.enginectl.calling import ROOT, Engine, started

EXAMPLE = ROOT / "examples" / "01-first-gang"
PROJECT = tomllib.loads((ROOT / "sandbox" / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_entry_points_lead_to_what_there_is() -> None:
    points = PROJECT["entry-points"]

    assert set(points[PLUG_INS]) == SANDBOX
    for point in points[PLUG_INS].values():
        module, _, name = point.partition(":")
        assert hasattr(import_module(module), name)
    assert [import_module(module) for module in points["pytest11"].values()]


def test_neither_distribution_needs_the_other_by_name() -> None:
    product = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*PROJECT["dependencies"], *product["dependencies"], *sum(product["optional-dependencies"].values(), [])]

    assert [each for each in wanted if each.startswith(("grove-sandbox", "grove-engine"))] == ["grove-engine[otel,policy]"]


@pytest.mark.parametrize("command", ["demo", "sandbox up"])
def test_every_command_takes_the_common_options_before_and_after_its_name(engine: Engine, command: str) -> None:
    text = engine(*command.split(), "--help").out

    assert all(option in text for option in ("--kubeconfig", "--context", "--namespace", "--config", "--verbose", "--log-format"))
    assert engine("-n", "x", "--log-format", "json", *command.split(), "--help").code == Exit.DONE


def test_a_short_option_shows_the_help(engine: Engine) -> None:
    assert engine("sandbox", "-h") == engine("sandbox", "--help")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sandbox", "up", "--port", "99999"], "--port: 99999 must be from 0 to 65535"),
        (["sandbox", "up", "--port", "x"], "--port: x is not an integer"),
        (["sandbox", "nope"], "engine sandbox has no command nope"),
        (["sandbox", "up", "--dir", str(EXAMPLE / "gang.yaml")], "gang.yaml: not a directory"),
    ],
)
def test_a_usage_error_exits_with_64_and_says_why(engine: Engine, words: list[str], message: str) -> None:
    answer = engine(*words)

    assert (answer.code, answer.out) == (Exit.USAGE, "")
    assert answer.err.startswith("engine: ") and message in answer.err
    assert answer.err.endswith("exit 64: usage error\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)])
def test_a_signal_ends_a_command_in_one_line(number: signal.Signals, code: Exit, tmp_path: Path) -> None:
    with started("sandbox", "up", "--dir", tmp_path) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline().startswith("export KUBECONFIG=")
        process.send_signal(number)
        text = process.stderr.read()

    assert process.returncode == code
    assert text.splitlines()[-1] == f"exit {code.value}: {MEANINGS[code]}"


def test_where_logs_are_json_a_signal_is_a_line_of_the_log(tmp_path: Path) -> None:
    with started("sandbox", "up", "--dir", tmp_path, "--log-format", "json") as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline().startswith("export KUBECONFIG=")
        process.send_signal(signal.SIGTERM)
        last = json.loads(process.stderr.read().splitlines()[-1])

    assert (last["event"], last["code"], last["meaning"]) == ("exit", Exit.TERMINATED, "exit 143: terminated")
