"""`engine diff --server-dry-run`: the server is asked, nothing is stored, and what it would refuse is blocked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ClusterError, Forbidden, Invalid, RefusedBy
from engine.ids import ResourceId
from engine.operation import Operation
from engine.report.model import Report, compose
from engine.runtime.provider import Provider
from enginectl.actions.trial import MAX_CALLS, try_out
from enginectl.base.exit_codes import Exit, UsageError
from resources.base import kinds
from resources.preview.facts import TrialResult
from tests.engine.runtime.fakes import FakeProvider, create, plan, root
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.test_approval import NEW, manifest

pytestmark = pytest.mark.anyio

FIRST = ROOT / "examples" / "01-first-gang"


class Server(FakeProvider):
    """A server that answers every attempt in the same way, and remembers what was tried."""

    def __init__(self, answer: ClusterError | None = None) -> None:
        super().__init__()
        self.answer, self.tried = answer, list[str]()

    def trying(self) -> Provider:
        """Itself."""
        return self

    async def execute(self, operation: Operation, uids: Mapping[ResourceId, str]) -> Mapping[str, Any] | None:
        """Answer, and store nothing."""
        self.tried.append(operation.key)
        if self.answer:
            raise self.answer
        return None


def report_of(*operations: Operation) -> Report:
    """The report of a plan with these operations."""
    return compose([plan(*operations)], lambda root, child: "")


async def trial(server: Server, *operations: Operation) -> TrialResult:
    """What the server says of the operations."""
    return await try_out(server, report_of(*operations))


async def test_of_operations_that_are_alike_one_is_tried() -> None:
    server = Server(Invalid("spec.nodes: must be even"))

    said = await trial(server, *(create(f"leaf-{number}") for number in range(9)))

    ((wait,),) = said.refused.values()
    assert server.tried == [create("leaf-0").key]
    assert wait.blocked
    assert wait.why == "the API server would refuse to create it: spec.nodes: must be even (8 more like it)"


async def test_a_right_that_is_missing_is_a_note_and_a_refusal_with_the_same_code_is_not() -> None:
    lacking = Forbidden('leaves is forbidden: User "x" cannot create resource "leaves"')
    quota = Forbidden("exceeded quota: team, requested: pods=1", by=RefusedBy.QUOTA)

    without_rights, over_quota = await trial(Server(lacking), create("a")), await trial(Server(quota), create("a"))

    assert not without_rights.refused
    assert "could not be tried" in without_rights.notes[root()][0]
    assert "exceeded quota" in over_quota.refused[root()][0].why


async def test_calls_are_bounded_and_what_was_not_tried_is_told() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    many = [create(one + two) for one in letters[:9] for two in letters[:9]]
    server = Server()

    said = await trial(server, *many)

    assert len(server.tried) == MAX_CALLS < len(many)
    assert said.notes == {root(): (f"--server-dry-run: only the first {MAX_CALLS} operations were tried",)}


async def test_a_snapshot_cannot_be_asked() -> None:
    with pytest.raises(UsageError):
        await try_out(FakeProvider(), report_of(create("a")))


def test_the_command_asks_the_server_and_stores_nothing(box: Box, engine: Engine) -> None:
    before = {kind: box.names(kind) for kind in (kinds.PODCLIQUESET, kinds.POD, kinds.SERVICE, kinds.PODCLIQUE)}

    answer = engine("diff", "-f", FIRST, "--server-dry-run", "--kubeconfig", box.kubeconfig)

    assert answer.code is Exit.DONE, answer.out + answer.err
    assert "would refuse" not in answer.out
    assert {kind: box.names(kind) for kind in before} == before


def test_it_excludes_what_is_no_cluster(engine: Engine) -> None:
    assert engine("diff", "-f", FIRST, "--server-dry-run", "--against", "empty").code is Exit.USAGE
    assert engine("diff", "-f", FIRST, "--server-dry-run", "--base", FIRST).code is Exit.USAGE


@pytest.mark.parametrize("consent", ["plan", "policy"])
def test_a_sync_that_shows_its_plan_first_tries_a_template_once(box: Box, engine: Engine, tmp_path: Path, consent: str) -> None:
    assert engine("sync", "-f", manifest(tmp_path)).code is Exit.DONE
    change = manifest(tmp_path, image=NEW)
    assert engine("diff", "-f", change, "--out", tmp_path / "plan.json").code is Exit.DONE
    tried: list[str] = []

    def count(operation: str, request: Any, new: Any, old: Any) -> tuple[str, ...]:
        if request.dry_run and request.served.kind == kinds.POD:
            tried.append(new["metadata"]["name"])
        return ()

    core = box.cluster.api.core
    core.validation = (*core.validation, count)
    words = {"plan": ("--plan", tmp_path / "plan.json"), "policy": ("-f", change, "--policy", ROOT / "examples" / "policies", "--yes")}

    answer = engine("sync", *words[consent])

    assert answer.code is Exit.DONE, answer
    assert len(tried) == 1
