"""`engine status` says everything once: no line twice, and objects with the same reason in one line."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.errors import Unreachable
from engine.ids import Kind
from engine.runtime.lease_holder import LeaseHolder
from engine.runtime.shard_leases import ShardHolder
from enginectl.actions import status as action
from enginectl.actions.planning import pass_and_notices
from enginectl.base.exit_codes import Exit
from enginectl.output import watching
from enginectl.output.status import wait_lines
from grove_sandbox.registry import ACTORS
from resources.base import kinds
from resources.reports.summary import WaitSince
from resources.schema.crds import crds
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.conftest import cluster

NOW = datetime(2026, 1, 1, tzinfo=UTC)
EXAMPLES = ROOT / "examples"
SHARED = """
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata: {name: NAME, namespace: default, annotations: {grove.io/auto-mnnvl: disabled}}
spec:
  replicas: 2
  template:
    cliques:
    - name: a
      annotations: {nvidia.com/computedomain: rack}
      spec: {roleName: a, replicas: 2, podSpec: {containers: [{name: w, image: "x:1"}]}}
    - name: b
      annotations: {nvidia.com/computedomain: rack}
      spec: {roleName: b, replicas: 1, podSpec: {containers: [{name: w, image: "x:1"}]}}
"""


def wait(name: str, why: str, kind: Kind = kinds.POD, minutes: int = 0) -> WaitSince:
    """Something that is not settled."""
    return WaitSince(kind.id("default", name), why, NOW - timedelta(minutes=minutes), None)


def lines(*waits: WaitSince, verbose: bool = False) -> list[str]:
    """The lines about them."""
    return [line.text.strip() for line in wait_lines(waits, NOW, verbose)]


def test_objects_with_the_same_reason_share_a_line() -> None:
    full = "no node is free"

    assert lines(wait("a", full, minutes=5), wait("b", full, minutes=2), wait("c", "another reason")) == [
        "Pod/default/a, b: no node is free, since 5m",
        "Pod/default/c: another reason, since 0s",
    ]
    assert lines(*(wait(name, full) for name in "abcde")) == ["Pod/default/a, b, c and 2 more: no node is free, since 0s"]
    assert lines(*(wait(f"a-{number}", full) for number in range(9)), wait("b", full)) == [
        "Pod/default/a-{0..8} ×9, b: no node is free, since 0s"
    ]


def test_a_long_reason_is_written_once() -> None:
    refusal = "pod group is unschedulable, 0/1 placements are available: 3 scheduled, 2 remaining, and no victims"
    twice = f"Unschedulable: pod group is unschedulable, {refusal}"
    waits = wait("a", f"0 of 1 pods ready; {twice}"), wait("other", f"0 of 2 pods ready; {twice}"), wait("b-x", refusal, kinds.PODGANG)

    assert lines(*waits) == [
        f"Pod/default/a: 0 of 1 pods ready; Unschedulable: {refusal}, since 0s",
        "Pod/default/other: 0 of 2 pods ready; as above, since 0s",
        "PodGang/default/b-x: as above, since 0s",
    ]
    assert [refusal in line for line in lines(*waits, verbose=True)] == [True] * 3


def test_what_somebody_has_to_do_follows_once() -> None:
    taken = [replace(wait(name, "taken"), advice="rename it") for name in "ab"]

    other = replace(wait("d", "taken, too"), advice="rename it")
    assert lines(*taken, wait("c", "x"), other) == [
        "Pod/default/a, b: taken, since 0s",
        "do: rename it",
        "Pod/default/c: x, since 0s",
        "Pod/default/d: taken, too, since 0s",
    ]


def test_other_kinds_and_namespaces_have_lines_of_their_own_and_verbose_has_one_for_each_object() -> None:
    waits = wait("a", "x"), wait("b", "x"), wait("a", "x", kinds.PODCLIQUE)

    assert lines(*waits) == ["Pod/default/a, b: x, since 0s", "PodClique/default/a: x, since 0s"]
    assert lines(*waits, waits[0], verbose=True) == [
        f"{kind}: x, since 0s" for kind in ("Pod/default/a", "Pod/default/b", "PodClique/default/a")
    ]


@pytest.fixture(params=["driver", "no driver", "no CRD"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with three nodes: with the DRA driver, with one that does not run, and without its kinds."""
    actors = [actor for actor in ACTORS if actor != "driver" or request.param == "driver"]
    rest: dict[str, Any] = {"definitions": crds()} if request.param == "no CRD" else {}
    with cluster(tmp_path, actors, **rest) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


def test_no_line_of_the_status_appears_twice_whatever_a_domain_waits_for(world: Box, engine: Engine, tmp_path: Path) -> None:
    files = [EXAMPLES / "05-annotated-domain" / "sharing.yaml", EXAMPLES / "03-scaling-group" / "group.yaml"]
    for name in ("one", "two"):
        files.append(tmp_path / f"{name}.yaml")
        files[-1].write_text(SHARED.replace("NAME", name))
    for file in files:
        engine("sync", "-f", file, "--no-wait")
    engine("sync", "--no-wait")

    for options in ((), ("-v",)):
        for workload in sections(engine("status", *options).out):
            assert [line for line, count in Counter(workload).items() if count > 1] == []
            reasons = Counter(line.partition(": ")[2] for line in workload if line.startswith("  Pod/"))
            assert options or [reason for reason, count in reasons.items() if count > 1] == []


def sections(text: str) -> list[list[str]]:
    """The lines below each row of the table."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("  "):
            found[-1].append(line)
        else:
            found.append([])
    return found


def test_a_domain_and_what_it_waits_for_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
    file = tmp_path / "one.yaml"
    file.write_text(SHARED.replace("NAME", "one"))
    with cluster(tmp_path, [actor for actor in ACTORS if actor != "driver"]) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        engine("sync", "-f", file, "--no-wait")
        out = engine("status").out.splitlines()

    why = "the driver has not created ResourceClaimTemplate rack of ComputeDomain rack yet"
    assert [line for line in out if line.endswith(why)] == [
        f"  domain rack: pending, {why}",
        *(line for line in out if line.startswith("  Pod/")),
    ]
    assert len([line for line in out if line.startswith("  Pod/")]) == 1


def test_the_status_is_shown_again_when_something_else_than_time_has_changed(
    box: Box, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    class Enough(Exception):
        pass

    async def observed(*given: Any) -> Any:
        looked.append(len(looked))
        if len(looked) == 3:
            box.create(kinds.PODCLIQUESET, podcliqueset("second", clique("a")))
        if len(looked) == 4:
            raise Unreachable("no answer")
        if len(looked) > 5:
            raise Enough
        return await pass_and_notices(*given)

    async def holders(*given: Any) -> list[ShardHolder]:
        return [ShardHolder(index, f"ns/{index}", LeaseHolder(f"pod-{index}"), f"second {len(looked)}") for index in range(2)]

    monkeypatch.setattr(action, "pass_and_notices", observed)
    monkeypatch.setattr(action, "holders_of_shards", holders)
    monkeypatch.setattr(watching, "INTERVAL", 1.1)  # Ages differ from one look to the next.
    box.create(kinds.PODCLIQUESET, podcliqueset("first", clique("a")))
    blocks = [block.splitlines() for block in engine("status", "--watch").out.split("\n\n")]

    names = [[line.split()[1] for line in block if line.startswith("default ")] for block in blocks]
    assert [found for found in names if found] == [["first"], ["first", "second"], ["first", "second"], ["first", "second"]]
    assert [line for block in blocks for line in block if "this was seen" in line] == ["note: this was seen last; now: no answer"]


@pytest.mark.parametrize("other", [("-o", "json"), ("--exit-code",)])
def test_the_status_is_watched_by_people_only(engine: Engine, other: tuple[str, ...]) -> None:
    answer = engine("status", "--watch", *other)

    assert (answer.code, "--watch is for people: leave out" in answer.errors) == (Exit.USAGE, True)
