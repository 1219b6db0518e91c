"""The commands of the first page, the guide, the tutorial and the examples, pasted into a shell, with a sandbox where they need one.

Every block of commands on these pages is run, here or by another test, or has its reason in `NOT_RUN`.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct

from tests.enginectl import test_cron, test_examples
from tests.enginectl.calling import ROOT, environment, finished, program
from tests.waiting import PATIENCE

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL: Final = frozenset({"", "sh"})
"""The languages of blocks that people paste into a shell: none, or one whose commands need what a sandbox has not."""
SHOWN: Final = frozenset({"text", "yaml", "json", "python"})
"""Those of blocks that are not commands."""
KUBECTL: Final = shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", "")) or shutil.which("kubectl")
REPLACED = "make() { :; }\nhelm() { :; }\n" + ("" if KUBECTL else "kubectl() { :; }\n")
"""What is not run: `make demo` makes the environment that the tests have; the chart is installed by `tests/chart`, which has Helm.

kubectl is run where it is installed.
"""
GUIDE, TUTORIAL_PAGE, EXAMPLES = ROOT / "docs" / "user-guide.md", ROOT / "docs" / "tutorial.md", ROOT / "examples"
PAGES: Final = (ROOT / "README.md", GUIDE, TUTORIAL_PAGE, *sorted(EXAMPLES.glob("**/*.md")))
NOT_RUN: Final = {
    ("examples/11-nvbandwidth/README.md", "ssh-keygen -q -t rsa -N '' -f id_rsa"): "the launcher runs on GPUs, with SSH between pods",
}
"""Page and first line of a block of commands -> why no test runs it."""


def blocks(page: Path, section: str = "") -> list[tuple[str, str]]:
    """The blocks of a page, or of one of its sections, in their order: the language and the lines."""
    text = page.read_text()
    return FENCED.findall(text.partition(f"\n## {section}\n")[2].partition("\n## ")[0] if section else text)


def command_blocks(page: Path, *sections: str) -> list[str]:
    """The blocks of commands of a page or of these sections."""
    found = [block for section in sections or ("",) for block in blocks(page, section)]
    return [block for language, block in found if not language]


class Pasted(Struct, frozen=True):
    """What is pasted into one shell."""

    blocks: Sequence[str]
    before: str = ""
    """Commands before: what the page takes for granted."""
    codes: dict[str, int] = {}
    """Beginning of a line -> the exit code that the page tells of it, or may have."""
    says: str = ""
    """What is in the output."""
    needs_kubectl: bool = False


SANDBOX: Final = "engine sandbox up --detach --dir /tmp/sandbox\nexport KUBECONFIG=/tmp/sandbox/kubeconfig\n"
WEB: Final = "sed 's/name: first/name: web/' examples/01-first-gang/gang.yaml"
SCRIPTS = {
    "the first page": Pasted(command_blocks(ROOT / "README.md", "Try it", "Write your own"), says=" settled "),
    "the first page, installing": Pasted(
        command_blocks(ROOT / "README.md", "Install it"),
        SANDBOX,
        {"engine manifests all": 1},  # A sandbox has the kinds already.
        says="deployment.apps/grove-engine serverside-applied",
        needs_kubectl=True,
    ),
    "the user guide": Pasted(command_blocks(GUIDE, "First steps"), says=" settled "),
    "the user guide, scripts": Pasted(
        command_blocks(GUIDE, "Rollouts and deletes"),
        f"{SANDBOX}mkdir -p main/manifests manifests\n{WEB} > main/manifests/web.yaml\n"
        f"{WEB} | sed 's/nginx:1.29/nginx:1.30/' > manifests/web.yaml\n"
        "cat examples/03-scaling-group/*.yaml > racks.yaml\nengine sync -f main/manifests\n",
        {"engine diff -f racks.yaml --policy": 3},
        says="Applied: 24 created",
    ),
    "gangs of kube-scheduler": Pasted(
        command_blocks(EXAMPLES / "12-native-gangs" / "README.md"),
        codes={"engine diff": 9, "engine sync -f examples/12-native-gangs/gangs.yaml": 9},
        says="waits for room",
        needs_kubectl=True,
    ),
    "reviews in CI": Pasted(
        command_blocks(EXAMPLES / "ci" / "README.md"),
        f"git init -q -b main\nmkdir manifests\n{WEB} > manifests/web.yaml\ngit add manifests\n"
        "git -c user.name=me -c user.email=me@example.com commit -q -m 'What is there'\n"
        "sed -i 's/nginx:1.29/nginx:1.30/' manifests/web.yaml\n",
        says="prod",
    ),
}
SECONDS = 2 * PATIENCE + 60
"""The longest that the commands of a page take."""


def pasted(script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """What bash says to this script, in a folder with the examples and with a sandbox there; it is ended afterwards."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tools := tmp_path / "bin").mkdir()
    (tools / "engine").symlink_to(program())
    if KUBECTL:
        (tools / "kubectl").symlink_to(KUBECTL)
    variables = {**environment(), "PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path)}
    sandbox = tmp_path / "sandbox"
    script = f"set -e\n{REPLACED}{re.sub(r'/tmp/(sandbox(-[0-9]+)?|tutorial)', str(sandbox), script)}"
    try:
        return subprocess.run(["bash", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=SECONDS)
    finally:
        subprocess.run([tools / "engine", "sandbox", "down", "--dir", sandbox], env=variables, capture_output=True, timeout=PATIENCE)


def with_codes(block: str, codes: dict[str, int]) -> str:
    """The lines, of which these may end with that exit code."""
    lines = block.splitlines()
    for beginning, code in codes.items():
        lines = [f"{line.partition(' #')[0]} || [ $? = {code} ]" if line.startswith(beginning) else line for line in lines]
    return "".join(f"{line}\n" for line in lines)


def with_marks(name: str, script: Pasted) -> Any:
    """The script as a parameter. One that needs kubectl belongs to `make e2e`, which brings it, unless it is installed."""
    is_e2e = script.needs_kubectl and shutil.which("kubectl") is None
    return pytest.param(name, marks=pytest.mark.e2e) if is_e2e else name


@pytest.mark.parametrize("name", [with_marks(*each) for each in SCRIPTS.items()])
def test_the_commands_of_a_page_work_when_they_are_pasted(name: str, tmp_path: Path) -> None:
    script = SCRIPTS[name]
    if script.needs_kubectl and not KUBECTL:
        pytest.skip("there is no kubectl in KUBEBUILDER_ASSETS, nor on PATH")

    said = pasted(script.before + "".join(with_codes(block, script.codes) for block in script.blocks), tmp_path)

    assert said.returncode == 0, said.stdout + said.stderr
    assert script.says in said.stdout, said.stdout


TUTORIAL = re.findall(r"^```(text)?\n(.*?)^```$", TUTORIAL_PAGE.read_text(), re.MULTILINE | re.DOTALL)
"""Its blocks in their order: whether it is text that is said, and what is in it."""
MARK = "end of block"
STATUS = re.compile(r"^engine status.*$", re.MULTILINE)
ONCE_JOINED = r"while \g<0> 2>&1 | grep -q joining; do :; done; \g<0>"
"""Every two seconds the driver writes which nodes have joined: a person is not that quick."""


def test_the_tutorial_says_what_its_commands_say(tmp_path: Path) -> None:
    commands = [block for is_said, block in TUTORIAL if not is_said]
    said = pasted("exec 2>&1\n" + "".join(f"{STATUS.sub(ONCE_JOINED, block)}echo '{MARK}'\n" for block in commands), tmp_path)

    assert said.returncode == 0, said.stdout
    answers = iter(said.stdout.split(f"{MARK}\n"))
    latest, missing = "", []
    for is_said, block in TUTORIAL:
        if not is_said:
            latest = next(answers)
            continue
        for line in block.splitlines():
            pattern = ".*?".join(map(re.escape, line.split("…")))
            found = re.search(f"^{pattern}$", latest, re.MULTILINE)
            missing += [] if found else [line]
            latest = latest[found.end() :] if found else latest
    assert missing == [], "\n".join([*missing, said.stdout])


def run_by_other_tests() -> Iterator[str]:
    """The blocks of commands that other tests run, each as those tests read it."""
    yield from (block for example in (*test_examples.IN_MEMORY, *test_examples.PACKAGES) for block in command_blocks(example / "README.md"))
    yield from test_cron.BLOCKS
    yield from (block for is_said, block in TUTORIAL if not is_said)


def test_every_block_of_commands_is_run_or_has_a_reason_why_not() -> None:
    run = {block for script in SCRIPTS.values() for block in script.blocks}.union(run_by_other_tests())
    found = [(page.relative_to(ROOT).as_posix(), language, block) for page in PAGES for language, block in blocks(page)]

    left = {(page, block.splitlines()[0]) for page, language, block in found if language in SHELL and block not in run}
    assert left == NOT_RUN.keys() and all(NOT_RUN.values())
    assert {language for _, language, _ in found} <= SHELL | SHOWN
    assert len({page for page, language, _ in found if language in SHELL}) > 15


BLOCK = re.compile(r"^```(?:sh)?\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def offline(commands: str) -> str:
    """Those of these commands that ask no cluster."""
    return "".join(line for line in commands.splitlines(True) if re.match(r"engine (render|diff .*--against empty)", line))


PREVIEWS = {
    f"{page.parent.name}, block {number}": (commands, found[2] if found[2] and commands == found[1] else "")
    for page in sorted(EXAMPLES.glob("*/README.md"))
    for number, found in enumerate(BLOCK.finditer(page.read_text()), 1)
    if (commands := offline(found[1])) and page.parent.name != "10-your-own-fabric"
}
"""Commands, and what the page shows of their output. The fabric of one's own has its own test, with and without its package."""


@pytest.mark.parametrize("preview", PREVIEWS)
def test_the_previews_of_an_example_work_when_they_are_pasted(preview: str, tmp_path: Path) -> None:
    commands, shown = PREVIEWS[preview]
    script = f'set -eo pipefail\nengine() {{ {program()} "$@"; }}\n{commands}'

    said = subprocess.run(
        ["bash", "-c", script],
        cwd=ROOT,
        env={**environment(), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )

    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout and set(shown.splitlines()) <= set(said.stdout.splitlines()), said.stdout


def test_previews_and_an_output_are_found() -> None:
    assert len(PREVIEWS) >= 7 and any(shown for _, shown in PREVIEWS.values())


def test_the_address_of_the_leader_on_the_first_page_is_that_of_its_pod() -> None:
    (address,) = re.findall(r"--master-addr=([^\"]+)", (ROOT / "README.md").read_text())
    said = finished("render", "-f", EXAMPLES / "01-first-gang", "-o", "json")
    pods = {each["metadata"]["labels"]["grove.io/podclique"]: each for each in json.loads(said.out)["objects"] if each["kind"] == "Pod"}
    leader, worker = pods["first-0-leader"]["spec"], pods["first-0-worker"]["spec"]

    for variable in worker["containers"][0]["env"]:
        address = address.replace(f"$({variable['name']})", variable.get("value", ""))

    assert address == f"{leader['hostname']}.{leader['subdomain']}.default.svc.cluster.local"
