"""Commands of containers: where the script of a shell is, and what becomes of arguments behind it."""

import pytest

from resources.dynamo.backends.command import command_of, with_joined_arguments


@pytest.mark.parametrize(
    ("command", "args", "script"),
    [
        (["/bin/sh", "-c"], ["x y"], "x y"),
        (["/bin/sh"], ["-c", "x y"], "x y"),
        (["bash", "-c", "x y"], [], "x y"),
        (["bash", "-lc"], ["x y"], "x y"),
        (["bash", "-euo", "pipefail", "-c"], ["x y"], "x y"),
        (["bash", "--rcfile", "f", "--login", "-c", "--"], ["x y"], "x y"),
        (["tini", "--", "/bin/sh", "-c"], ["x y"], "x y"),
        (["/usr/bin/env", "A=b", "bash", "+x", "-c"], ["x y", "name"], "x y"),
    ],
)
def test_the_script_of_a_shell_is_recognised(command: list[str], args: list[str], script: str) -> None:
    result = command_of({"command": command, "args": args})

    assert (result.is_shell, result.text) == (True, script)


@pytest.mark.parametrize(
    "command", [["bash", "run.sh", "-c", "x"], ["sh"], ["python3", "-m", "m", "sh", "-c", "x"], ["numactl", "-c", "x"], []]
)
def test_other_commands_have_no_script(command: list[str]) -> None:
    assert not command_of({"command": command}).is_shell


def test_a_shell_may_lack_its_script() -> None:
    result = command_of({"command": ["/bin/sh", "-c"]})

    assert (result.is_shell, result.script, result.text) == (True, None, "")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("python", True),
        ("python3", True),
        ("python3.11", True),
        ("/usr/bin/python3.8", True),
        ("./venv/bin/python", True),
        ("pythonw", False),
        ("python3-config", False),
        ("/usr/bin/python3 -m x", False),
        ("", False),
    ],
)
def test_an_interpreter_is_recognised_by_its_first_word(word: str, expected: bool) -> None:
    assert command_of({"command": [word, "-m", "x"]}).starts_python == expected


@pytest.mark.parametrize(
    ("args", "script"),
    [
        (["python3", "-m", "x", "a b"], "python3 -m x 'a b'"),
        (["python3 -m x", "--y", "it's"], "python3 -m x --y 'it'\"'\"'s'"),
        (["cd / && python3\n", "$(HOST)"], 'cd / && python3 "$HOST"'),
        (["$(HOST)", "x"], '"$HOST" x'),
    ],
)
def test_arguments_behind_the_script_become_a_part_of_it(args: list[str], script: str) -> None:
    container = {"command": ["/bin/sh", "-c"], "args": args, "env": [{"name": "HOST", "value": "h"}]}

    assert with_joined_arguments(container) == {**container, "args": [script]}


@pytest.mark.parametrize(
    "container",
    [
        {"command": ["/bin/sh", "-c"], "args": ["python3 -m x"]},
        {"command": ["/bin/sh", "-c"], "args": ['exec "$0" "$@"', "python3", "-m", "x"]},
        {"command": ["/bin/sh", "-c"], "args": ['shift ${#}; echo "${1}"', "x"]},
        {"command": ["/bin/sh", "-c", "echo x"], "args": ["ignored"]},
        {"command": ["python3"], "args": ["-m", "x"]},
        {"command": ["/bin/sh", "-c"], "args": ["python3 -m x # comment", "--y"]},
        {"command": ["/bin/sh", "-c"], "args": ["python3 -m x;", "--y"]},
        {"command": ["/bin/sh", "-c"], "args": ["python3 -m x >", "--y"]},
        {"command": ["/bin/sh", "-c"], "args": ["python3 -m x 'y", "--y"]},
        {"command": ["/bin/sh", "-c"], "args": ["", "--y"]},
        {"command": ["/bin/sh", "-c"]},
    ],
)
def test_other_commands_stay(container: dict[str, list[str]]) -> None:
    assert with_joined_arguments(container) == container
