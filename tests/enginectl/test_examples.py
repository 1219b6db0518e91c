"""Every example does what its README says: the commands in it are run, line by line, on a cluster in memory."""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from engine.ids import Kind
from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import PARTS, DriverOptions
from grove_sandbox.registry import ACTORS
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base.kinds import (
    DEPLOYMENT,
    DYNAMO_GRAPH,
    INGRESS,
    KAI_POD_GROUP,
    KAI_QUEUE,
    KAI_TOPOLOGY,
    LEADER_WORKER_SET,
    POD,
    PODCLIQUESET,
    PVC,
    RESOURCE_CLAIM,
    SCALING_GROUP,
    SERVICE,
    TOPOLOGY_BINDING,
    VOLCANO_POD_GROUP,
)
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, CommandResult, Engine
from tests.enginectl.conftest import FAST, cluster
from tests.enginectl.recording import PICTURE, picture, said
from tests.providers.installed import install

EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("[0-9]*/README.md"))
PACKAGES = [path for path in EXAMPLES if (path / "pyproject.toml").exists()]
"""Examples of plug-ins, whose kinds no cluster here serves."""
WORKLOADS = [path for path in EXAMPLES if path not in PACKAGES]
GANGS = ROOT / "examples" / "12-native-gangs"
"""It needs gangs of kube-scheduler: `test_native_gangs_example.py` runs it, and `tests/stories/test_native_gangs_on_a_control_plane.py`."""
IN_MEMORY = [path for path in WORKLOADS if path != GANGS]
KINDS: dict[str, Kind] = {"pcs": PODCLIQUESET, "pcsg": SCALING_GROUP, "computedomain": COMPUTE_DOMAIN, "dgd": DYNAMO_GRAPH}
ROOTS = {kind.name: kind for kind in (PODCLIQUESET, DYNAMO_GRAPH, TOPOLOGY_BINDING)}
OF_GRAPHS = (DYNAMO_GRAPH, DEPLOYMENT, INGRESS, PVC, SERVICE)
"""Kinds of which nothing is left when the graphs are deleted. `ADDONS` has those of schedulers and LeaderWorkerSets."""
ADDONS = {"lws": (LEADER_WORKER_SET,), "volcano": (VOLCANO_POD_GROUP,), "kai": (KAI_POD_GROUP, KAI_TOPOLOGY)}
CREATED_BY_OTHERS = {"07-lws-volcano": 5}
"""Example -> the pods that other controllers create."""
AUTO = ROOT / "examples" / "04-auto-mnnvl"
NAMED = ROOT / "examples" / "05-annotated-domain"
BANDWIDTH = ROOT / "examples" / "11-nvbandwidth"

LIKE_THE_SANDBOX = replace(FAST, nodes=10, driver=DriverOptions(imex_start=0.0))


@pytest.fixture
def box(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with as many nodes as `engine sandbox up` has, with the add-ons and the queues that the example needs."""
    example = getattr(request.node, "callspec", None) and request.node.callspec.params.get("example")
    with cluster(tmp_path, ACTORS, LIKE_THE_SANDBOX, addons=addons(example)) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        for queue in queues(example):
            box.create(KAI_QUEUE, queue)
        yield box


def addons(example: Path | None) -> tuple[str, ...]:
    """The add-ons with which the README starts the sandbox."""
    text = (example / "README.md").read_text() if example else ""
    return tuple(name for names in re.findall(r"engine sandbox up .*--with (\S+)", text) for name in names.split(","))


def queues(example: Path | None) -> list[dict[str, Any]]:
    """The queues that come with an example."""
    file = example and example / "config" / "queues.yaml"
    return list(yaml.load_all(file.read_text(), yaml.CSafeLoader)) if file and file.exists() else []


def configured(example: Path) -> tuple[str | Path, ...]:
    """The options for the operator configuration that comes with an example."""
    file = example / "config" / "operator.yaml"
    return ("--config", file) if file.exists() else ()


def commands(readme: Path) -> Iterator[list[str]]:
    """The commands of a README, in order, each as its words."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", readme.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.splitlines() if not language else ():
            for command in re.sub(r"\s#.*| &$", "", line).split("&&"):
                if command.strip():
                    yield shlex.split(command)


def outputs(readme: Path) -> Iterator[tuple[list[str], list[str]]]:
    """The lines of output that a README shows, each block with the last command before it."""
    command: list[str] = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", readme.read_text(), re.MULTILINE | re.DOTALL):
        if language == "text":
            yield command, block.splitlines()
        else:
            command = shlex.split(re.sub(r"\s#.*| &$", "", block.splitlines()[-1]))


def without_ages(text: str) -> list[str]:
    """The lines of a text without ages, and without the width of columns."""
    return [re.sub(r" +", " ", re.sub(r"\b\d+[smh]\b", "AGE", line)).strip() for line in text.splitlines()]


def run(words: list[str], engine: Engine, box: Box | None) -> None:
    """What a shell does with these words; `box` stands for the sandbox that they might start."""
    words, searched = (words[: words.index("|")], words[words.index("|") + 1 :]) if "|" in words else (words, [])
    match words:
        case ["engine", "sandbox", "up", "--detach", "--dir", _, *options]:
            files = [option for before, option in pairwise(["", *options]) if not option.startswith("--") and before != "--with"]
            assert box is not None and all(Path(file).exists() for file in files)
        case ["export", _]:
            assert box is not None
        case ["kubectl", *rest]:
            assert box is not None
            kubectl(box, rest)
        case ["engine", *rest]:
            found(engine(*rest), words, searched)
        case _:
            pytest.fail(f"the examples want {words}")


def found(answer: CommandResult, words: list[str], searched: list[str]) -> None:
    """The command went well, and what is looked for in its answer is there."""
    assert answer.code == Exit.DONE, (words, answer)
    if searched:
        assert searched[0] == "grep" and searched[1] in answer.out, (searched, answer.out)


def kubectl(box: Box, words: list[str]) -> None:
    """What kubectl does with these words, as far as the examples go."""
    match words:
        case ["scale", kind, name, "--replicas", number]:
            box.change(KINDS[kind], name, {"spec": {"replicas": int(number)}})
        case ["delete", kind, name, "--wait=false"]:
            box.delete(KINDS[kind], name)
        case ["patch", kind, name, "--type", "merge", "-p", patch]:
            box.change(KINDS[kind], name, json.loads(patch))
        case ["apply", "-f", file]:
            assert list(yaml.load_all(Path(file).read_text(), yaml.CSafeLoader))
        case ["get" | "describe", *_]:
            pass
        case _:
            pytest.fail(f"the examples want kubectl {words}")


@pytest.mark.parametrize("example", IN_MEMORY, ids=lambda path: path.name)
def test_every_command_of_the_readme_works(example: Path, box: Box, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert engine("sync", "-f", example, *configured(example)).code == Exit.DONE

    for words in commands(example / "README.md"):
        run(words, engine, box)

    settled = engine("diff", "--detailed-exitcode", *configured(example))
    assert settled.out == "No changes.\nexit 0: done\n"


@pytest.mark.parametrize("example", [path for path in IN_MEMORY if list(outputs(path / "README.md"))], ids=lambda path: path.name)
def test_the_output_in_the_readme_is_real(example: Path, box: Box, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert engine("sync", "-f", example, *configured(example)).code == Exit.DONE

    for command, lines in outputs(example / "README.md"):
        real = without_ages(engine(*command[1:]).out)
        assert [line for line in without_ages("\n".join(lines)) if line not in real] == [], real


def test_the_picture_of_the_first_page_is_what_the_command_says_today(tmp_path: Path) -> None:
    text = said(tmp_path)

    assert "lowest" in text and "TemplateChanged" in text
    assert PICTURE.read_text() == picture(text), "python -m tests.enginectl.recording draws it"
    assert f"]({PICTURE.relative_to(ROOT)})" in (ROOT / "README.md").read_text() and "url(http" not in PICTURE.read_text()


def test_the_quick_start_of_graphs_is_real(box: Box, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "dynamo.md"
    monkeypatch.chdir(ROOT)
    start = page.read_text().split("\n## ")[1]
    for line in start.split("```\n")[1].splitlines():
        run(shlex.split(line.removesuffix(" &")), engine, box)
    ((command, lines),) = outputs(page)

    assert "\n".join(without_ages("\n".join(lines))) in "\n".join(without_ages(engine(*command[1:]).out))


@pytest.mark.parametrize("example", WORKLOADS, ids=lambda path: path.name)
def test_an_example_is_valid_without_a_cluster_and_without_warnings(example: Path, engine: Engine) -> None:
    for words in (("diff", "--against", "empty"), ("render",)):
        answer = engine(*words, "-f", example, *configured(example))

        assert answer.code == Exit.DONE
        assert "warning" not in answer.err


@pytest.mark.parametrize("example", PACKAGES, ids=lambda path: path.name)
def test_every_command_about_a_plug_in_works(example: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    known = set(sys.modules)

    for words in commands(example / "README.md"):
        match words:
            case ["pip", "install", "-e", package]:
                install(Path(package).resolve(), tmp_path, monkeypatch)
            case _:
                run(words, engine, None)

    for module in [name for name in set(sys.modules) - known if (example / f"{name}.py").exists()]:
        del sys.modules[module]


@pytest.mark.parametrize("example", IN_MEMORY, ids=lambda path: path.name)
def test_an_example_comes_up_settles_and_leaves_nothing_behind(example: Path, box: Box, engine: Engine) -> None:
    words = ("-f", example, *configured(example))
    planned = engine("diff", *words, "-o", "json").document["roots"]
    up, again = engine("sync", *words), engine("sync", *words)
    pods = [body for body in box.all(POD) if body["metadata"]["namespace"] == "default"]
    for root in planned:
        if not root.get("parent"):
            box.delete(ROOTS[root["root"]["kind"]], root["root"]["name"])
    down = engine("sync", *configured(example))

    assert up.code == again.code == down.code == Exit.DONE
    assert again.out == "Applied: nothing, everything is in sync.\nexit 0: done\n"
    planned_pods = sum(one["object"]["kind"] == "Pod" for root in planned for one in root["operations"])
    assert len(pods) == CREATED_BY_OTHERS.get(example.name, 0) + planned_pods
    assert box.revisions() == {}
    kinds = (*OF_GRAPHS, *(kind for name in addons(example) for kind in ADDONS[name]))
    left = [body["metadata"] for kind in kinds for body in box.all(kind)]
    assert [each["name"] for each in left if each.get("namespace", "default") == "default" and each["name"] != "kubernetes"] == []


def domains(box: Box) -> dict[str, str]:
    """The ComputeDomains, each with its uid."""
    return {body["metadata"]["name"]: body["metadata"]["uid"] for body in box.all(COMPUTE_DOMAIN)}


def test_automatic_domains_follow_the_replicas_and_are_not_made_anew(box: Box, engine: Engine) -> None:
    engine("sync", "-f", AUTO, *configured(AUTO))
    (racks,) = (body for body in box.all(PODCLIQUESET) if body["metadata"]["name"] == "racks")
    two = domains(box)
    found = [sorted(two)]
    for replicas in (4, 1):
        box.scale("racks", replicas)
        engine("sync")
        found.append(sorted(domains(box)))

    assert racks["metadata"]["annotations"]["grove.io/auto-mnnvl"] == "enabled"
    assert found == [["racks-0", "racks-1"], ["racks-0", "racks-1", "racks-2", "racks-3"], ["racks-0"]]
    assert domains(box)["racks-0"] == two["racks-0"]
    claimed = {body["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] for body in box.all(RESOURCE_CLAIM)}
    assert claimed >= {"mnnvl-claim"}


def test_pods_are_deferred_as_the_readme_says_while_the_driver_is_away(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = replace(LIKE_THE_SANDBOX, driver=DriverOptions(parts=PARTS - {"controller"}))
    (why,) = re.findall(r"Pod/racks-0-worker-…  (.*)", (AUTO / "README.md").read_text())
    with cluster(tmp_path, ACTORS, away) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        engine("sync", "-f", AUTO, *configured(AUTO), "--no-wait")
        engine("sync", "--no-wait")
        roots = engine("diff", "-o", "json").document["roots"]
        deferred = [wait for root in roots for wait in (*root["later"], *root["blocked"])]

    assert [wait["why"] for wait in deferred if wait["object"]["name"].startswith("racks-0-worker-")] == [why, why]


def test_a_named_domain_is_shared_and_goes_with_the_last_set_that_uses_it(box: Box, engine: Engine) -> None:
    engine("sync", "-f", NAMED)
    found = [domains(box)]
    box.scale("decode", 3)
    engine("sync")
    found.append(domains(box))
    for name in ("encode", "decode"):
        box.delete(PODCLIQUESET, name)
        engine("sync")
        found.append(domains(box))

    assert [sorted(one) for one in found] == [
        ["cache-0", "cache-1", "rack-a"],
        ["cache-0", "cache-1", "cache-2", "rack-a"],
        ["cache-0", "cache-1", "cache-2", "rack-a"],
        [],
    ]
    assert found[2]["rack-a"] == found[0]["rack-a"]


def test_the_launcher_of_the_bandwidth_test_starts_after_its_workers_and_has_no_channel(box: Box, engine: Engine) -> None:
    assert engine("sync", "-f", BANDWIDTH).code == Exit.DONE
    pods = {body["metadata"]["labels"].get("grove.io/podclique", ""): body for body in box.all(POD)}
    worker, launcher = pods["nvbandwidth-0-worker"], pods["nvbandwidth-0-launcher"]

    def moment(body: dict[str, Any], condition: str) -> str:
        (time,) = (one["lastTransitionTime"] for one in body["status"]["conditions"] if one["type"] == condition)
        return str(time)

    assert moment(worker, "Ready") <= moment(launcher, "Initialized")
    assert [one["args"] for one in launcher["spec"]["initContainers"]] == [["--podcliques=nvbandwidth-0-worker:2"]]
    assert worker["spec"]["resourceClaims"] and "resourceClaims" not in launcher["spec"]


def test_the_examples_are_numbered_without_gaps() -> None:
    numbered = (path.name.partition("-")[0] for path in sorted((ROOT / "examples").iterdir()) if path.name[0].isdigit())

    assert [int(number) for number in numbered] == list(range(len(EXAMPLES)))


def test_every_example_is_small_enough_to_read_standing_up() -> None:
    for example in EXAMPLES:
        for file in (path for path in example.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            assert len(file.read_text().splitlines()) <= (120 if file.suffix == ".py" else 60), file
