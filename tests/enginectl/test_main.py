"""The command line: options, errors, signals and exit codes."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from engine.report.text import MARKS
from engine.version import VERSION
from enginectl.base.exit_codes import MEANINGS, Exit, worst
from enginectl.base.runner import run
from enginectl.base.usage import COMMANDS, named_command
from enginectl.main import SUMMARIES, complete_for_kubectl, root_command
from tests.enginectl.calling import ROOT, CommandResult, Engine, finished, started
from tests.waiting import PATIENCE

EXAMPLE = ROOT / "examples" / "01-first-gang"
CLIENT = {"kr8s", "aiohttp", "httpx", "h11", "cryptography"}
OTHERS = {"deepdiff", "prometheus_client", "rich", "starlette", "structlog", "uvicorn"}
PROJECT = frozenset({"engine", "enginectl", "providers", "resources"})
MOST_MODULES = 250
"""Files of the project that a preview of one set without a cluster may import: finding and reading each takes time."""
HEAVY = {*CLIENT, *OTHERS, "msgspec", "pydantic", "yaml", "orjson"}
"""Libraries that are slow to import."""


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("diff", "--help")], ids=" ".join)
def test_help_imports_nothing_slow(words: tuple[str, ...]) -> None:
    modules = modules_of(*words)

    assert {"engine", "typer"} <= modules
    assert HEAVY & modules == set()


def test_the_list_of_commands_imports_none_of_them_and_looks_for_no_plug_in() -> None:
    modules = modules_of("--help")

    assert [name for name in modules if name.startswith(("enginectl.commands.", "grove_sandbox"))] == []
    assert "importlib.metadata" not in modules


@pytest.mark.parametrize("command", SUMMARIES)
def test_the_list_of_commands_says_of_each_what_its_own_help_begins_with(command: str) -> None:
    own = root_command().commands[command].help or ""

    assert " ".join(own.split()).startswith(SUMMARIES[command].removesuffix("."))


def test_a_preview_without_a_cluster_imports_no_client_and_nothing_of_what_it_does_not_show() -> None:
    modules = modules_of("diff", "--against", "empty", "-f", str(EXAMPLE))

    assert {"pydantic", "resources.blueprints.replica"} <= modules
    assert (CLIENT | OTHERS) & modules == set()
    unneeded = (
        "engine.approval",
        "engine.report.html",
        "engine.report.markdown.document",
        "engine.runtime.session",
        "resources.dynamo",
        "resources.schema.dynamo",
    )
    assert [name for name in modules if name.startswith(unneeded)] == []
    assert len([name for name in modules if name.partition(".")[0] in PROJECT]) <= MOST_MODULES


def test_a_command_that_reads_a_cluster_imports_no_more_than_a_client() -> None:
    modules = imported("import enginectl.actions.status, providers.kubernetes.connect")

    assert {"aiohttp", "kr8s"} <= modules
    assert OTHERS & modules == set()


def modules_of(*words: str) -> set[str]:
    """The modules that a command imports in a process of its own, and their packages. It must succeed."""
    return imported(f"import sys; from enginectl.main import app; assert app({list(words)!r}) == 0")


def imported(script: str) -> set[str]:
    """The modules that a script imports in a process of its own."""
    process = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys\nprint(*(name for name in sys.modules if sys.modules[name]), file=sys.stderr)"],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}"},
    )
    names = process.stderr.split()
    return {*names, *(name.partition(".")[0] for name in names)}


@pytest.mark.parametrize("command", ["diff", "sync", "run", "render", "status", "why", "preflight", "snapshot", "manifests crds"])
def test_every_command_takes_the_common_options_before_and_after_its_name(engine: Engine, command: str) -> None:
    text = engine(*command.split(), "--help").out

    assert all(
        option in text
        for option in ("--kubeconfig", "--context", "--namespace", "--all-namespaces", "--config", "--verbose", "--log-format")
    )
    assert engine("-n", "x", "--log-format", "json", *command.split(), "--help").code == Exit.DONE


def test_an_option_means_the_same_before_and_after_the_command(engine: Engine) -> None:
    before, after = (engine(*words) for words in (("-n", "x", "render", "-f", EXAMPLE), ("render", "-n", "x", "-f", EXAMPLE)))

    assert before == after
    assert "namespace: x" in before.out


def test_the_release_is_printed(engine: Engine) -> None:
    assert engine("--version") == CommandResult(Exit.DONE, f"engine {VERSION}\n", "")


@pytest.mark.parametrize("command", ["", "diff", "manifests crds"])
def test_a_short_option_shows_the_help(engine: Engine, command: str) -> None:
    words = command.split()

    assert engine(*words, "-h") == engine(*words, "--help")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_the_script_that_completes_commands(engine: Engine, shell: str) -> None:
    assert "_ENGINE_COMPLETE" in engine("completion", shell).out


@pytest.mark.parametrize(
    ("line", "words"),
    [("engine sn", {"snapshot"}), ("engine status -o ", {"text", "json"}), ("engine zz", set()), ("engine why pcs/", set())],
)
def test_a_shell_gets_completions(engine: Engine, monkeypatch: pytest.MonkeyPatch, line: str, words: set[str]) -> None:
    monkeypatch.setenv("_ENGINE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))

    answer = engine()
    assert (set(answer.out.split()), answer.err) == (words, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["frobnicate"], "engine has no command frobnicate"),
        (["dif"], "engine has no command dif; did you mean diff?"),
        (["diff", "--nope"], "engine diff has no option --nope; did you mean --next or --prune?"),
        (["diff", "-o", "xml"], "--output: xml is not one of text, json, html"),
        (["diff", "--file", "x"], "engine diff has no option --file; did you mean --filename?"),
        (["diff", "-f"], "-f needs a value\ntry `engine diff --help`"),
        (["sandbox", "up", "--dir"], "--dir needs a value\ntry `engine sandbox up --help`"),
        (["sync", "--dry-run=server"], "--dry-run takes no value; `engine diff --server-dry-run` lets the API server check"),
        (["sync", "--wait=false"], "--wait takes no value; the opposite is --no-wait"),
        (["diff", "web.yaml"], "engine diff does not take web.yaml; name manifests with -f web.yaml"),
        (["sync", "-f", "a.yml", "b.yml", str(EXAMPLE)], f"name manifests with -f b.yml -f {EXAMPLE}"),
        (["apply", "-f", "x"], "engine has no command apply; use `engine sync -f FILE`"),
        (["describe", "pod", "x"], "engine has no command describe; use `engine why KIND/NAME`"),
        (["scale", "pcs/x", "--replicas=2"], "engine has no command scale; use `kubectl scale`"),
        (["version"], "engine has no command version; use `engine --version`"),
        (["diff", "extra"], "engine diff does not take extra"),
        (["sync", "--max-deletes", "-1"], "--max-deletes: -1 must be at least 0"),
        (["why"], "engine why needs [KIND/]NAME"),
        (["sync", "--timeout", "soon"], "--timeout soon: not a duration such as 30s, 4h or 1h30m"),
        (["sync", "--timeout", "0"], "--timeout 0: must be greater than zero"),
        (["render"], "render needs manifests: -f FILE"),
        (["diff", "-n", "x", "-A"], "--namespace and --all-namespaces exclude each other"),
        (["status", "-n", "x/../y"], "--namespace x/../y: not a valid name: lowercase letters, digits and - only, at most 63"),
        (["diff", "-f", "nowhere.yaml"], "nowhere.yaml: no such file or directory"),
        (["diff", "--against", "nowhere.yaml"], "--against nowhere.yaml: no such file; it takes live, empty or a snapshot"),
        (["diff", "--out", "nowhere/plan.json"], "--out nowhere/plan.json: there is no directory nowhere"),
        (["delete", "x", "--out", "nowhere/plan.json"], "--out nowhere/plan.json: there is no directory nowhere"),
        (["diff", "--report", "html=nowhere/x.html"], "--report nowhere/x.html: there is no directory nowhere"),
        (["diff", "--summary", "nowhere/x.md"], "--summary nowhere/x.md: there is no directory nowhere"),
        (["diff", "--config", "nowhere.yaml"], "nowhere.yaml: no such file or directory"),
    ],
)
def test_a_usage_error_exits_with_64_and_says_why(engine: Engine, words: list[str], message: str) -> None:
    answer = engine(*words)

    assert (answer.code, answer.out) == (Exit.USAGE, "")
    assert answer.err.startswith("engine: ") and message in answer.err
    assert answer.err.endswith("exit 64: usage error\n")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["diff", "-o", "json"], Exit.FAILED, "engine sandbox up"),
        (["sync", "--output=json"], Exit.FAILED, "engine sandbox up"),
        (["status", "-ojson", "--nope"], Exit.USAGE, "engine status has no option --nope"),
        (["why", "-o", "json"], Exit.USAGE, "engine why needs [KIND/]NAME"),
        (["preflight", "-n", "x/y", "-o", "json"], Exit.USAGE, "--namespace x/y: not a valid name"),
        (["delete", "x", "--yes", "-n", "x/y", "-o", "json"], Exit.USAGE, "--namespace x/y: not a valid name"),
        (["show", "there-is-none.json", "-o", "json"], Exit.USAGE, "there-is-none.json"),
    ],
)
def test_a_command_that_writes_json_does_so_when_it_fails_too(engine: Engine, words: list[str], code: Exit, message: str) -> None:
    answer = engine(*words)

    assert answer.code == code
    assert (answer.document["kind"], answer.document["exitCode"]) == ("Error", code)
    assert message in answer.document["messages"][0] and message in answer.err


def test_every_command_that_is_suggested_exists() -> None:
    for suggestion in COMMANDS.values():
        program, *words = suggestion.split()
        assert program == "kubectl" or words[0] in (*SUMMARIES, "--version", "--help")
    assert COMMANDS.keys().isdisjoint(SUMMARIES)


def test_without_a_command_the_help_is_shown(engine: Engine) -> None:
    answer = engine()

    assert answer.code == Exit.USAGE
    assert "Commands:" in answer.err


@pytest.mark.parametrize("words", [["diff"], ["sync"], ["status"], ["run"], ["snapshot"], ["diff", "-f", str(EXAMPLE)]])
def test_without_a_cluster_one_line_says_what_to_do(engine: Engine, words: list[str]) -> None:
    answer = engine(*words)

    assert answer.code == Exit.FAILED
    first, last = answer.err.splitlines()
    assert "engine sandbox up" in first and "--against empty" in first
    assert last == "exit 1: failed"


def test_an_internal_error_is_one_line_and_with_v_its_traceback(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the moon fell\x1b[2J down")

    monkeypatch.setattr("enginectl.wiring.configuration.wire", broken)

    answer = engine("diff")
    assert (answer.code, answer.err.splitlines()[0]) == (
        Exit.FAILED,
        "engine: internal error: RuntimeError: the moon fell\\x1b[2J down (-v shows the traceback)",
    )
    assert "Traceback" in engine("-v", "diff", traceback=True).err


@pytest.mark.parametrize("words", [("render", "-f", EXAMPLE), ("diff", "-f", EXAMPLE, "--against", "empty")])
def test_a_reader_that_goes_away_gives_no_error_message(words: tuple[str | Path, ...]) -> None:
    with started(*words, fresh=True) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        text = process.stderr.read()

    assert (process.returncode, CommandResult(process.returncode, "", text).errors) == (Exit.FAILED, "")


def through_a_shell(command: str) -> CommandResult:
    """Run `engine` with the redirections of a shell."""
    process = subprocess.run(
        ["sh", "-c", f'exec "{sys.executable}" -m enginectl {command}'],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'cmd'}", "PYTHONUTF8": "1"},
    )
    return CommandResult(process.returncode, process.stdout, process.stderr)


@pytest.mark.parametrize("command", ["diff -f - --against empty", "review -f -"])
def test_a_closed_standard_input_is_a_usage_error(command: str) -> None:
    answer = through_a_shell(f"{command} <&-")

    assert (answer.code, answer.err) == (Exit.USAGE, "engine: standard input is closed\nexit 64: usage error\n")


@pytest.mark.parametrize("command", [f"render -f {EXAMPLE}", f"render -f {EXAMPLE} -o json", f"diff -f {EXAMPLE} --against empty"])
def test_output_that_cannot_be_written_is_an_error_in_one_line(command: str) -> None:
    answer = through_a_shell(f"{command} >/dev/full")

    assert (answer.code, answer.errors) == (Exit.FAILED, "engine: standard output: no space left on device\nexit 1: failed\n")


def test_without_standard_output_or_error_nothing_is_shown() -> None:
    answer = through_a_shell(f"render -f {EXAMPLE} >&- 2>&-")

    assert (answer.code, answer.out, answer.err) == (Exit.DONE, "", "")


def test_a_second_signal_is_not_logged_for_every_task_that_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def interrupt_twice() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    async def work(stop: anyio.CancelScope) -> Exit:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(interrupt_twice)
        return Exit.DONE

    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
        run(work)
    assert caplog.text == ""


def test_a_terminal_without_unicode_gets_ascii() -> None:
    answer = finished("diff", "-f", EXAMPLE, "--against", "empty", fresh=True, PYTHONUTF8="0", PYTHONIOENCODING="ascii", LC_ALL="C")

    assert answer.code == Exit.DONE
    assert answer.out.isascii() and "+ create 12 objects" in answer.out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)])
def test_a_second_signal_ends_a_long_computation_at_once(number: signal.Signals, code: Exit, tmp_path: Path) -> None:
    huge = (EXAMPLE / "gang.yaml").read_text().replace("  replicas: 1\n  template", "  replicas: 33000\n  template")
    limits = {"replicas": 10**6, "pods": 10**6, "cliques": 10**6, "bytes": 10**9}
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({"limits": {"set": limits, "namespace": limits}}))
    pipe = tmp_path / "huge.yaml"
    os.mkfifo(pipe)
    with started("--config", config, "diff", "-f", pipe, "--against", "empty", fresh=True) as process:
        pipe.write_text(huge)  # Blocks until the process has opened the other end. Then it reads, and plans for a long time.
        try:
            for pause in (0.5, 0.5, 30):  # A busy machine may deliver the first two as one: then the third is the second.
                with suppress(subprocess.TimeoutExpired):
                    process.wait(pause)
                if process.poll() is None:
                    process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()

    assert (process.returncode, out, err) == (code, "", f"exit {code.value}: {MEANINGS[code]}\n")


def test_every_code_has_a_meaning_and_a_number_of_its_own() -> None:
    table = {code.value: meaning for code, meaning in MEANINGS.items()}

    assert set(Exit) == set(MEANINGS)
    assert sorted(table) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 130, 143]


def test_of_several_codes_the_worst_is_chosen() -> None:
    assert worst([Exit.CHANGES, Exit.DENIED, Exit.INCOMPLETE]) is Exit.DENIED
    assert worst([Exit.INCOMPLETE, Exit.CHANGES]) is Exit.INCOMPLETE
    assert worst([]) is Exit.DONE


def test_the_user_guide_lists_the_same_codes() -> None:
    codes = re.findall(r"^\| `(\d+)` \|", (ROOT / "docs" / "user-guide.md").read_text(), re.MULTILINE)

    assert [int(code) for code in codes] == sorted(code.value for code in Exit)


@pytest.mark.parametrize("command", ["diff", "show", "sync", "delete"])
def test_the_help_explains_the_signs_of_reports(engine: Engine, command: str) -> None:
    explained = " ".join(engine(command, "-h").out.split()).partition("Signs: ")[2]

    assert all(f"{sign} " in explained for sign in MARKS.values())


EXPLAINED = ("diff", "sync", "status", "why", "delete", "run", "show", "review", "top", "sandbox up")
"""The commands whose help has examples."""


@pytest.mark.parametrize("command", EXPLAINED)
def test_the_help_ends_with_examples_that_are_valid_command_lines(engine: Engine, command: str) -> None:
    examples = engine(*command.split(), "-h").out.partition("\n  Examples:\n")[2].splitlines()

    assert len(examples) >= 2 and any(line.strip().startswith(f"engine {command}") for line in examples)
    for line in examples:
        words = shlex.split(line.partition(" > ")[0], comments=True)
        path, named = named_command(root_command(), words[1:])
        assert path != "engine" and words[0] == "engine"
        named.make_context(path, words[len(path.split()) :])


def test_the_help_lists_options_with_a_short_form_first(engine: Engine) -> None:
    options = re.findall(r"^  (-\S+)", engine("diff", "-h").out.partition("Options:")[2], re.MULTILINE)
    short = [option for option in options if not option.startswith("--")]

    assert {"-f,", "-o,", "-n,", "-v,"} <= set(short) and options[: len(short) - 1] == short[:-1]


@pytest.mark.parametrize(
    ("words", "lines"),
    [(["sn"], ["snapshot", ":4"]), (["status", "-o", ""], ["text", "json", ":4"]), (["diff", "-f", ""], [":0"]), (["zz"], [":4"])],
)
def test_kubectl_gets_the_completions_of_its_plugin(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], lines: list[str]
) -> None:
    for name in ("_ENGINE_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-grove", *words])
    complete_for_kubectl()

    assert capsys.readouterr().out.split() == lines


def test_the_plugin_of_kubectl_is_the_same_command() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    assert scripts["kubectl-grove"] == scripts["engine"] and scripts["kubectl_complete-grove"] == "enginectl.main:complete_for_kubectl"
