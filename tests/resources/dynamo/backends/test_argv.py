"""What the programs of a multinode service receive when its pods run, compared with what its user wrote."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.dynamo.model.graph import Orchestrator, Role
from tests.resources.dynamo.backends.container_run import GROVE as GROVE_VARIABLES
from tests.resources.dynamo.backends.container_run import LWS as LWS_VARIABLES
from tests.resources.dynamo.backends.container_run import ContainerRun, delivered, run
from tests.resources.dynamo.pods.graphs import GROVE, LEADER, LWS, WORKER, Body, main_of, worker

VARIABLES = {GROVE: GROVE_VARIABLES, LWS: LWS_VARIABLES}
HOSTILE_VALUE = 'it\'s "$HOME" `id` $(id) \\ * \n ; & | é $'
SECRETS = {"FROM_SECRET": HOSTILE_VALUE, "MAYBE": "present"}
ENVS = [
    {"name": "DECLARED", "value": HOSTILE_VALUE},
    {"name": "with-dash", "value": HOSTILE_VALUE},
    {"name": "with.dot", "value": "$(with-dash)"},
    {"name": "UID", "value": "not a number"},
    {"name": "MAYBE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
    {"name": "EMPTY", "value": ""},
]
HOSTILE = (
    "",
    " ",
    "two words",
    "it's",
    'say "hi"',
    "$HOME",
    "$",
    "$$",
    "$$$",
    "$$(DECLARED)",
    "$$$(DECLARED)",
    "$$$$(DECLARED)",
    "$(DECLARED)",
    "pre$(DECLARED)post",
    "$(DECLARED)$(DECLARED)",
    "$(with-dash)",
    "$(with.dot)",
    "$(UID)",
    "$(MAYBE)",
    "$(EMPTY)",
    "$(FROM_SECRET)",
    "$(NOT_DECLARED)",
    "$(NOT_DECLARED",
    "$()",
    "$((1 + 1))",
    "$(id -u)",
    "${HOME}",
    "`id`",
    "a\nb\n",
    "\\",
    "\\'",
    "!",
    "!!",
    "*",
    "?",
    "[a-z]*",
    "{a,b}",
    "~",
    "#",
    ";",
    "&&",
    "|",
    ">x",
    "<x",
    "(",
    "%s %d",
    "-n",
    "--",
    "a=b",
    "é漢字🚀",
    "$é",
    "\t",
    "\r\n",
    '{"a": ["b", {"c": "it\'s $x"}]}',
    "'\"'\"'",
)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
WORDS = st.lists(TEXT | st.sampled_from(HOSTILE) | st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=4).map("".join), max_size=6)
FRAMEWORKS = ("vllm", "sglang", "trtllm")
CASES = [
    ("vllm", GROVE, LEADER),
    ("sglang", GROVE, LEADER),
    ("sglang", GROVE, WORKER),
    ("sglang", LWS, WORKER),
    ("trtllm", GROVE, LEADER),
    ("trtllm", LWS, LEADER),
]
FORMS = {
    "interpreter": (("python3",), ()),
    "interpreter and module": (("python3", "-m", "dynamo.{framework}"), ()),
    "default shell": (None, ("python3", "-m", "dynamo.{framework}")),
    "launcher": (("numactl", "-m", "0", "python3", "-m", "dynamo.{framework}"), ()),
}
PROGRAM = {"vllm": "python3", "sglang": "python3", "trtllm": "trtllm-llmapi-launch"}


def service(framework: str, form: str, words: tuple[str, ...]) -> tuple[Body, list[str]]:
    """A service that starts a framework, and all words that its user wrote."""
    command, args = FORMS[form]
    command = None if command is None else tuple(word.format(framework=framework) for word in command)
    args = (*(word.format(framework=framework) for word in args), *words)
    if command == ("python3",):
        args = ("-m", f"dynamo.{framework}", *args)
    fields = {"env": ENVS, "envFrom": [{"secretRef": {"name": "s"}}]}
    return worker(*args, command=command, nodes=3, container=fields), [*(command or ()), *args]


def started(
    framework: str, orchestrator: Orchestrator, role: Role, form: str, words: tuple[str, ...], folder: Path, shell: str = ""
) -> tuple[ContainerRun, list[str]]:
    """The run of a container, and the words that its user wrote as a kubelet delivers them."""
    body, written = service(framework, form, words)
    container = main_of(body, role, orchestrator)
    injected = VARIABLES[orchestrator]
    return run(container, folder, injected, SECRETS, shell=shell), delivered(written, container, injected, SECRETS)


def received(result: ContainerRun, framework: str, form: str) -> list[str]:
    """The words of the one call of the framework's program, without the flags that were added for SGLang."""
    program = "numactl" if form == "launcher" and framework != "trtllm" else PROGRAM[framework]
    (arguments,) = result.arguments(program)
    return list(arguments) if framework == "trtllm" else [program, *arguments]


def expected(framework: str, orchestrator: Orchestrator, role: Role, words: list[str], form: str) -> list[str]:
    if framework != "sglang":
        return words
    host = "g-0-decode-1-decode-ldr-0.g-0.ai.svc.cluster.local" if orchestrator is GROVE else LWS_VARIABLES["LWS_LEADER_ADDRESS"]
    flags = ["--dist-init-addr", f"{host}:29500", "--nnodes", "3", "--node-rank", "0" if role is LEADER else "2"]
    return [*words, *flags]


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@pytest.mark.parametrize("form", [form for form in FORMS if form != "default shell"])
@pytest.mark.parametrize(("framework", "orchestrator", "role"), CASES)
def test_every_argument_arrives_as_it_was_written(
    framework: str, orchestrator: Orchestrator, role: Role, form: str, shell: str, tmp_path: Path
) -> None:
    result, words = started(framework, orchestrator, role, form, HOSTILE, tmp_path, shell)

    assert received(result, framework, form) == expected(framework, orchestrator, role, words, form), result.errors
    assert result.status == 0, result.errors


@pytest.mark.parametrize("framework", ["vllm", "trtllm"])
def test_arguments_of_the_default_shell_are_one_command(framework: str, tmp_path: Path) -> None:
    result, words = started(framework, GROVE, LEADER, "default shell", HOSTILE, tmp_path)

    assert received(result, framework, "default shell") == words, result.errors


@pytest.mark.parametrize("role", [LEADER, WORKER])
def test_arguments_of_the_default_shell_are_one_command_with_the_flags_of_sglang_behind_the_module(role: Role, tmp_path: Path) -> None:
    result, words = started("sglang", GROVE, role, "default shell", HOSTILE, tmp_path)
    flags = expected("sglang", GROVE, role, [], "default shell")

    assert received(result, "sglang", "default shell") == [*words[:3], *flags, *words[3:]], result.errors


@pytest.mark.parametrize(("framework", "orchestrator", "role"), [CASES[0], CASES[2], CASES[4]])
def test_any_argument_arrives_as_it_was_written(
    framework: str, orchestrator: Orchestrator, role: Role, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("any")

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(words=WORDS)
    def check(words: list[str]) -> None:
        result, written = started(framework, orchestrator, role, "interpreter", tuple(words), folder)

        assert received(result, framework, "interpreter") == expected(framework, orchestrator, role, written, "interpreter"), result.errors

    check()


def test_the_leader_of_vllm_starts_ray_first(tmp_path: Path) -> None:
    result, words = started("vllm", GROVE, LEADER, "interpreter", (), tmp_path)

    assert result.calls == (("ray", "start", "--head", "--port=6379"), tuple(words))


@pytest.mark.parametrize(
    ("orchestrator", "host"),
    [(GROVE, "g-0-decode-1-decode-ldr-0.g-0.ai.svc.cluster.local"), (LWS, "g-decode-1-0.g-decode-1.ai")],
)
def test_a_worker_of_vllm_joins_ray_and_starts_nothing_else(orchestrator: Orchestrator, host: str, tmp_path: Path) -> None:
    result, _ = started("vllm", orchestrator, WORKER, "interpreter", HOSTILE, tmp_path)

    assert result.calls == (("ray", "start", f"--address={host}:6379", "--block"),)


@pytest.mark.parametrize(
    "script",
    [
        "python3 -m dynamo.vllm --name 'a b' --value \"$(DECLARED_WORD)\"",
        "cd / && python3 -m dynamo.vllm",
        "\n# a comment\npython3 -m dynamo.vllm \\\n  --name x\n",
        "{ python3 -m dynamo.vllm; }",
        "python3 -m dynamo.vllm 'unclosed in a comment' # it's",
    ],
)
def test_a_script_behind_ray_does_what_it_did_alone(script: str, tmp_path: Path) -> None:
    env = [{"name": "DECLARED_WORD", "value": "plain"}]
    alone = {"command": ["/bin/sh", "-c"], "args": [script], "env": env}
    container = main_of(worker(script, container={"env": env}), LEADER)

    assert run(container, tmp_path).calls == (("ray", "start", "--head", "--port=6379"), *run(alone, tmp_path).calls)


def test_the_leader_of_sglang_gets_the_address_from_the_kubelet_where_no_shell_runs(tmp_path: Path) -> None:
    result, words = started("sglang", LWS, LEADER, "interpreter", (), tmp_path)

    assert received(result, "sglang", "interpreter") == expected("sglang", LWS, LEADER, words, "interpreter")


SGLANG_FLAGS = ["--dist-init-addr", "g-0-decode-1-decode-ldr-0.g-0.ai.svc.cluster.local:29500", "--nnodes", "2", "--node-rank", "0"]


@pytest.mark.parametrize(
    ("script", "before", "behind"),
    [
        ("python3 -m dynamo.sglang --x 'y z'", ["-m", "dynamo.sglang"], ["--x", "y z"]),
        ("python3 -m dynamo.sglang>/dev/null", ["-m", "dynamo.sglang"], []),
        ("python3 -m dynamo.sglang 2>&1 | cat", ["-m", "dynamo.sglang"], []),
        ("python3 -m dynamo.sglang --name 'my sglang model' --x y", ["-m", "dynamo.sglang", "--name", "my sglang model"], ["--x", "y"]),
        ("python3 -m dynamo.sglang --sglang-option value", ["-m", "dynamo.sglang"], ["--sglang-option", "value"]),
        ("python3 -m dynamo.sglang --paths /sglang /b --x", ["-m", "dynamo.sglang"], ["--paths", "/sglang", "/b", "--x"]),
        ("echo 'python3 -m dynamo.sglang;' && python3 -m dynamo.sglang", ["-m", "dynamo.sglang"], []),
        ("true # python3 -m dynamo.sglang\npython3 -m dynamo.sglang \\\n --x", ["-m", "dynamo.sglang"], ["--x"]),
        ("if true; then\n  python3 -m dynamo.sglang\nfi", ["-m", "dynamo.sglang"], []),
        ("cat <<'END' > /dev/null\npython3 -m dynamo.sglang\nEND\npython3 -m dynamo.sglang --x", ["-m", "dynamo.sglang"], ["--x"]),
        ("python3 -m dynamo.sglang --n $(echo $((1 + 2)) `echo 4`)", ["-m", "dynamo.sglang"], ["--n", "3", "4"]),
    ],
)
def test_flags_of_sglang_become_words_of_the_command_in_a_script(script: str, before: list[str], behind: list[str], tmp_path: Path) -> None:
    container = main_of(worker(script, backendFramework="sglang"), LEADER, backendFramework="sglang")

    assert run(container, tmp_path).arguments("python3") == [(*before, *SGLANG_FLAGS, *behind)]


TRTLLM_SCRIPTS = [
    "python3 -m dynamo.trtllm --name 'it is' --other \"it's\"",
    "cd / && python3 -m dynamo.trtllm --quote \"it's\" '$HOME'",
    "X='a b' python3 -m dynamo.trtllm \"$HOME\"",
    "export X=1; python3 -m dynamo.trtllm $X",
    "python3 -m dynamo.trtllm $(DECLARED) | cat",
    "exec python3 -m dynamo.trtllm",
]


@pytest.mark.parametrize("script", TRTLLM_SCRIPTS)
def test_the_launcher_of_tensorrt_llm_starts_what_the_script_starts(script: str, tmp_path: Path) -> None:
    env = [{"name": "DECLARED", "value": "it's' one"}]
    container = main_of(worker(script, container={"env": env}), LEADER)
    result = run(container, tmp_path)
    (words,) = result.arguments("trtllm-llmapi-launch")
    alone = run({"command": ["/bin/sh", "-c"], "args": [script], "env": env}, tmp_path)

    launched = run({"command": list(words), "env": env}, tmp_path)

    assert launched.arguments("python3") == alone.arguments("python3"), result.errors
    assert result.status == 0


@pytest.mark.parametrize("orchestrator", [GROVE, LWS])
def test_the_leader_of_tensorrt_llm_prepares_ssh_and_starts_a_process_for_each_gpu(orchestrator: Orchestrator, tmp_path: Path) -> None:
    result, words = started("trtllm", orchestrator, LEADER, "interpreter", (), tmp_path)
    (arguments,) = result.arguments("mpirun")
    home = str(result.home)
    hosts = {
        GROVE: [f"g-0-decode-1-decode-{pod}.g-0.ai.svc.cluster.local" for pod in ("ldr-0", "wkr-0", "wkr-1")],
        LWS: ["g-decode-1-0.g-decode-1.ai", "g-decode-1-0-1.g-decode-1.ai", "g-decode-1-0-2.g-decode-1.ai"],
    }[orchestrator]

    # The tests may run as root.
    assert [word for word in arguments[:3] if word != "--allow-run-as-root"][0] == "--oversubscribe"
    assert arguments[arguments.index("-n") + 1] == "12"
    assert arguments[arguments.index("-H") + 1] == ",".join(hosts)
    remote_shell = arguments[arguments.index("plm_rsh_args") + 1]
    assert remote_shell == f"-p 2222 -o StrictHostKeyChecking=no -i {home}/.ssh/id_rsa"
    assert result.arguments("cp") == [
        ("/ssh-pk/private.key", f"{home}/.ssh/id_rsa"),
        ("/ssh-pk/private.key.pub", f"{home}/.ssh/id_rsa.pub"),
        ("/ssh-pk/private.key.pub", f"{home}/.ssh/authorized_keys"),
    ]
    config = (result.home / ".ssh/config").read_text()
    assert config == f'Host *\nIdentityFile "{home}/.ssh/id_rsa"\nStrictHostKeyChecking no\nPort 2222\n'
    assert result.arguments("getent") == ([("hosts", host) for host in hosts[1:]] if orchestrator is LWS else [])
    assert result.arguments("trtllm-llmapi-launch") == [tuple(words)]


@pytest.mark.parametrize(("user", "as_root"), [("0", ["--allow-run-as-root"]), ("1000", [])])
def test_mpirun_may_run_as_root_only_if_it_does(user: str, as_root: list[str], tmp_path: Path) -> None:
    container = main_of(worker("python3 -m dynamo.trtllm"), LEADER)
    run(container, tmp_path)
    (tmp_path / "bin/id").write_text(f"#!/bin/sh\necho {user}\n")
    (tmp_path / "bin/id").chmod(0o755)

    (arguments,) = run(container, tmp_path).arguments("mpirun")

    assert list(arguments[: arguments.index("--oversubscribe")]) == as_root


def test_the_leader_gives_up_when_a_name_stays_unknown(tmp_path: Path) -> None:
    container = main_of(worker("python3 -m dynamo.trtllm"), LEADER, LWS)
    run(container, tmp_path, LWS_VARIABLES)
    for name, script in {
        "getent": "exit 2",
        "date": 'n=$(cat "$HOME/n" 2>/dev/null || echo 0); n=$((n + 200)); echo $n | tee "$HOME/n"',
    }.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "bin/sleep").write_text("#!/bin/sh\n")
    (tmp_path / "bin/sleep").chmod(0o755)

    result = run(container, tmp_path, LWS_VARIABLES)

    assert result.status == 1
    assert result.errors == "no address for g-decode-1-0-1.g-decode-1.ai after 300 seconds\n"
    assert result.arguments("mpirun") == []


def test_a_worker_of_tensorrt_llm_runs_an_ssh_server_on_port_2222(tmp_path: Path) -> None:
    result = run(main_of(worker("python3 -m dynamo.trtllm"), WORKER), tmp_path)
    home = str(result.home)

    assert result.status == 0, result.errors
    assert result.calls[-1] == ("sshd", "-D", "-f", f"{home}/.ssh/sshd_config")
    assert result.arguments("ssh-keygen") == [
        ("-t", kind, "-f", f"{home}/.ssh/host_keys/ssh_host_{kind}_key", "-N", "") for kind in ("rsa", "ecdsa", "ed25519")
    ]
    assert (result.home / ".ssh/sshd_config").read_text().splitlines() == [
        "Port 2222",
        f'HostKey "{home}/.ssh/host_keys/ssh_host_rsa_key"',
        f'HostKey "{home}/.ssh/host_keys/ssh_host_ecdsa_key"',
        f'HostKey "{home}/.ssh/host_keys/ssh_host_ed25519_key"',
        f'PidFile "{home}/.ssh/run/sshd.pid"',
        "PermitRootLogin yes",
        "PasswordAuthentication no",
        "PubkeyAuthentication yes",
        f'AuthorizedKeysFile "{home}/.ssh/authorized_keys"',
    ]
    assert ("-p", "/run/sshd") in result.arguments("mkdir")
    assert result.arguments("python3") == []


@pytest.mark.parametrize(("user", "starts"), [("0", False), ("1000", True)])
def test_a_worker_that_is_not_root_needs_no_directory_of_root(user: str, starts: bool, tmp_path: Path) -> None:
    container = main_of(worker("python3 -m dynamo.trtllm"), WORKER)
    run(container, tmp_path)
    (tmp_path / "bin/id").write_text(f"#!/bin/sh\necho {user}\n")
    (tmp_path / "bin/id").chmod(0o755)

    result = run(container, tmp_path, mkdir_status=1)

    assert bool(result.arguments("sshd")) == starts
