"""One answer: in the same situation `diff`, `sync --dry-run` and `sync` end with the same exit code."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from enginectl.base.exit_codes import Exit
from grove_sandbox.actors.options import ActorOptions
from grove_sandbox.actors.script import FAIL
from grove_sandbox.registry import ACTORS
from providers.fabrics.nvidia.names import AUTO
from resources.base import kinds
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import cluster
from tests.enginectl.test_requirements import configured
from tests.mnnvl.sets import auto, named
from tests.stories.refusing import Quota, pods_of_image, refuse

Body = dict[str, Any]
SERVICE: Body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "demo-0"}, "spec": {"ports": [{"port": 80}]}}


def demo(version: int = 1, replicas: int = 1, pods: int = 1, **spec: Any) -> Body:
    """A set with one clique."""
    container = {"name": "main", "image": f"example/worker:{version}", **spec}
    return podcliqueset("demo", clique("a", pods, pod_spec={"containers": [container]}), replicas=replicas)


def demo_with(pod: Body) -> Body:
    """The same set with more in its pod spec."""
    return podcliqueset("demo", clique("a", pod_spec={"containers": [{"name": "main", "image": "example/worker:1"}], **pod}))


def claim(**source: str) -> Body:
    """What a pod spec has for one claim."""
    return {"resourceClaims": [{"name": "device", **source}]}


def changed(body: Body, **metadata: Any) -> Body:
    """The set with other metadata."""
    return {**body, "metadata": {**body["metadata"], **metadata}}


def noted(body: Body) -> Body:
    """The set with an annotation that restarts nothing."""
    return changed(body, annotations={"example.com/note": "1"})


def spare() -> Body:
    """A set that needs one of its two pods."""
    return podcliqueset("demo", clique("a", 2, minAvailable=1))


def nothing(box: Box) -> None:
    """Nothing happens."""


def on_api(act: Callable[[Any], Any]) -> Callable[[Box], None]:
    """Something is done to the API, in its own thread."""
    return lambda box: box.portal.call(lambda: act(box.cluster.api) and None)


def crashed(box: Box) -> None:
    """The pod of the set crashes again and again."""
    pod, *_ = box.names(kinds.POD)
    box.change(kinds.POD, pod, {"metadata": {"annotations": {FAIL: "crash"}}})
    box.wait_for(kinds.POD, lambda body: bool(body["status"]["containerStatuses"][0].get("lastState")), pod)


def without_annotation(box: Box) -> None:
    """Somebody removes an annotation that the objects of the set record."""
    box.change(kinds.PODCLIQUESET, "demo", {"metadata": {"annotations": {AUTO: None}}})


def with_obsolete_services(box: Box) -> None:
    """The set owns a dozen Services that it does not specify."""
    (root,) = box.all(kinds.PODCLIQUESET)
    owner = {"apiVersion": root["apiVersion"], "kind": root["kind"], "name": "demo", "uid": root["metadata"]["uid"], "controller": True}
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": "demo"}
    for number in range(12):
        metadata = {"name": f"obsolete-{number}", "labels": labels, "ownerReferences": [owner]}
        box.create(kinds.SERVICE, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"clusterIP": "None"}})


def denied(**rule: str) -> Callable[[Box], None]:
    """A right is missing."""
    return lambda box: box.deny(**rule)


def kept(box: Box) -> None:
    """A Service of the set is deleted long ago, and another program keeps it."""
    box.change(kinds.SERVICE, "demo-0", {"metadata": {"finalizers": ["example.com/hold"]}})
    box.delete(kinds.SERVICE, "demo-0")


@dataclass(frozen=True)
class Situation:
    """What is there, what is asked for, and how every command ends."""

    name: str
    code: Exit
    manifests: Sequence[Body]
    before: Sequence[Body] = ()
    """What was applied and had settled before."""
    act: Callable[[Box], None] = nothing
    """What happens after that."""
    options: Sequence[str] = ()
    preview_options: Sequence[str] = ()
    """More options of `diff`."""
    waits: bool = False
    """Whether `sync` waits until its time is over."""
    has_domains: bool = False
    """Whether sets have automatic domains."""
    codes: Mapping[str, Exit] = field(default_factory=dict)
    """Commands that cannot know, with what they end with."""


SITUATIONS = (
    Situation("everything is new", Exit.DONE, [demo()]),
    Situation("nothing has changed", Exit.DONE, [demo()], before=[demo()]),
    Situation("an update", Exit.DONE, [demo(2)], before=[demo()]),
    Situation("a manifest with a fault", Exit.FAILED, [demo(1, -1)]),
    Situation("a field of a pod that is a typing error", Exit.FAILED, [demo(imgae="x")]),
    Situation(
        "an annotation that may not change any more",
        Exit.FAILED,
        [changed(named("rack"), annotations={"grove.io/auto-mnnvl": "enabled"})],
        before=[named("rack")],
    ),
    Situation("an annotation that has no effect", Exit.FAILED, [], before=[auto(1)], act=without_annotation, has_domains=True),
    Situation("a name that is taken", Exit.STUCK, [demo()], act=lambda box: box.create(kinds.SERVICE, SERVICE)),
    Situation("a namespace that is missing", Exit.STUCK, [changed(demo(), namespace="nowhere")]),
    Situation("pods that no node has room for", Exit.STUCK, [demo(resources={"requests": {"cpu": "900"}})], waits=True),
    Situation(
        "an update to pods that no node has room for",
        Exit.STUCK,
        [demo(2, resources={"requests": {"cpu": "900"}})],
        before=[demo()],
        waits=True,
    ),
    Situation(
        "pods without room, and nodes that will come",
        Exit.FAILED,
        [demo(resources={"requests": {"cpu": "900"}})],
        options=["--assume-nodes"],
        codes={"diff": Exit.DONE, "sync --dry-run": Exit.DONE},
        waits=True,
    ),
    Situation("more pods than a quota allows", Exit.STUCK, [demo(pods=3)], act=on_api(lambda api: Quota(api, 2))),
    Situation(
        "a quota that an update needs in turn", Exit.DONE, [demo(2, pods=2)], before=[demo(pods=2)], act=on_api(lambda api: Quota(api, 2))
    ),
    Situation(
        "pods of a new template that the server refuses",
        Exit.STUCK,
        [demo(2)],
        before=[demo()],
        act=on_api(lambda api: refuse(api, pods_of_image("example/worker:2"))),
    ),
    Situation(
        "new pods that the server refuses",
        Exit.STUCK,
        [demo()],
        act=on_api(lambda api: refuse(api, pods_of_image("example/worker:1"))),
    ),
    Situation(
        "an object that the server refuses",
        Exit.STUCK,
        [demo()],
        preview_options=["--server-dry-run"],
        codes={"sync --dry-run": Exit.DONE},
        act=on_api(lambda api: refuse(api, lambda body: body.get("kind") == "PodCliqueSet")),
    ),
    Situation(
        "pods that need a claim template that does not exist", Exit.STUCK, [demo_with(claim(resourceClaimTemplateName="none"))], waits=True
    ),
    Situation("pods that need a claim that does not exist", Exit.STUCK, [demo_with(claim(resourceClaimName="none"))], waits=True),
    Situation(
        "an update to pods that need a claim template that does not exist",
        Exit.STUCK,
        [demo_with(claim(resourceClaimTemplateName="none"))],
        before=[demo()],
        waits=True,
    ),
    Situation("an edit of a set with a pod that crashes", Exit.STUCK, [noted(spare())], before=[spare()], act=crashed, waits=True),
    Situation(
        "a pod that crashes and is created again with its gang",
        Exit.FAILED,
        [noted(demo())],
        before=[demo()],
        act=crashed,
        codes={"diff": Exit.DONE, "sync --dry-run": Exit.DONE},
        waits=True,
    ),
    Situation("a deleted object that another program keeps", Exit.STUCK, [demo()], before=[demo()], act=kept, waits=True),
    Situation(
        "a set whose objects may not be listed", Exit.INCOMPLETE, [demo(2)], before=[demo()], act=denied(resource="services", verb="list")
    ),
    Situation("more deletes than the budget allows", Exit.DENIED, [], before=[demo()], act=with_obsolete_services),
    Situation(
        "a right to create pods that is missing",
        Exit.FAILED,
        [demo()],
        act=denied(resource="pods", verb="create"),
        codes={"diff": Exit.DONE, "sync --dry-run": Exit.DONE},
    ),
)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster of three nodes."""
    with cluster(tmp_path, ACTORS, ActorOptions(nodes=3, termination=0.0)) as made:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig))
        yield made


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_every_command_ends_with_the_same_exit_code(box: Box, engine: Engine, tmp_path: Path, situation: Situation) -> None:
    options: list[str | Path] = [*situation.options]
    if situation.has_domains:
        options += ["--config", configured(tmp_path, auto=True)]
    if situation.before:
        engine("sync", "-f", written(tmp_path, situation.before), "--yes", *options, *(["--no-wait"] if situation.has_domains else []))
    situation.act(box)
    files: list[str | Path] = ["-f", written(tmp_path, situation.manifests)] if situation.manifests else []
    commands = {
        "diff": ["diff", *situation.preview_options],
        "sync --dry-run": ["sync", "--dry-run"],
        "sync": ["sync", "--yes", "--timeout", "40s" if situation.waits else "30m"],
    }
    answers = {name: engine(*words, *files, *options) for name, words in commands.items()}

    codes = {name: Exit(answer.code) for name, answer in answers.items()}
    assert codes == {name: situation.codes.get(name, situation.code) for name in commands}, answers
    for name, answer in answers.items():
        if answer.code == Exit.STUCK:
            assert CAUSE.search(answer.out), f"{name} does not say what is left, and why:\n{answer.out}"
            assert ACTION.search(answer.out), f"{name} does not say what has to be done:\n{answer.out}"
    if codes["sync"] is Exit.STUCK and box.names(kinds.PODCLIQUESET):
        for words in (["status"], ["why", "podcliqueset/demo"]):
            shown = engine(*words, *options).out
            assert STATE.search(shown), f"{words[0]} does not say what is left, and why:\n{shown}"
            assert ACTION.search(shown), f"{words[0]} does not say what has to be done:\n{shown}"


CAUSE = re.compile(r"^ *(! blocked|left|· pending|failed:|\? later) +\S+ ?\S*/\S+:? +\S+", re.MULTILINE)
"""An object, and why it is left."""
STATE = re.compile(r"^  (\w+/default/\S+( does not run \(\w+\))?|blocked): +\S+", re.MULTILINE)
"""The same as `status` and `why` have it."""
ACTION = re.compile(r"(; do:|^ *do:?) +(engine |\w+)", re.MULTILINE)
"""What a user or an administrator does."""


def written(folder: Path, manifests: Sequence[Body]) -> Path:
    """A file with these manifests."""
    file = folder / "sets.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
    return file
