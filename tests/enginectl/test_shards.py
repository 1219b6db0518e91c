"""`engine run --shards` in several processes, and what other commands say about them."""

from pathlib import Path

import pytest

from engine.runtime.lease import LEASE
from engine.shards import MAX_SHARDS
from enginectl.base.exit_codes import Exit
from enginectl.commands import run
from resources.base.kinds import NAMESPACE, POD, PODCLIQUESET
from tests.builders import clique, podcliqueset
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.stories.engine_processes import engines, terms
from tests.waiting import until

NAME = "grove-operator-leader-election"


def test_a_process_takes_over_the_shards_of_a_killed_one_and_status_names_the_holders(box: Box, engine: Engine, tmp_path: Path) -> None:
    config, names = tmp_path / "config.yaml", [f"team-{number}" for number in range(6)]
    config.write_text("leaderElection: {leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 500ms}\n")
    with engines(tmp_path, box.kubeconfig, 2, "-A", "--shards", "4", "--config", str(config)) as (first, second):
        until(lambda: [len(first.shards()), len(second.shards())] == [2, 2])
        shown, refused = engine("status", "-A"), engine("sync", "-A", "--config", config, "--lock-timeout", "0")
        document = engine("status", "-A", "-o", "json").document
        for name in names:
            box.portal.call(box.cluster.client("user").create, NAMESPACE, "", {"metadata": {"name": name}})
            box.portal.call(box.cluster.client("user").create, PODCLIQUESET, name, podcliqueset(name, clique("worker", 1), namespace=name))
        until(lambda: len(box.names(POD)) > 2)
        first.kill()
        until(lambda: len(second.shards()) == 4)
        until(lambda: len(box.names(POD)) == len(names))
        until(lambda: len(box.names(LEASE)) == 5)  # Those of four shards, and of the replica that is alive.
        writers = terms([first, second])

    assert "SHARD    HOLDER" in shown.out and "nobody" not in shown.out
    assert shown.out.count("run in all namespaces, shard ") == 4
    assert [entry["lease"] for entry in document["shards"]][:2] == [f"default/{NAME}", f"default/{NAME}-shard-1"]
    assert refused.code == Exit.NOT_LEADER and ", for: run in all namespaces, shard 0 of 4" in refused.err
    assert all(order in (["engine-0"], ["engine-1"], ["engine-0", "engine-1"]) for order in writers.values()), writers
    assert {lease["metadata"]["name"] for lease in box.all(LEASE)} == {NAME, *(f"{NAME}-shard-{shard}" for shard in (1, 2, 3))}


def test_a_cluster_without_shards_has_one_holder_in_the_document_and_none_in_the_text(box: Box, engine: Engine) -> None:
    (entry,) = engine("status", "-o", "json").document["shards"]

    assert (entry["shard"], entry["holder"]) == (0, None)
    assert "SHARD" not in engine("status").out


@pytest.mark.parametrize(("number", "said"), [("0", "--shards"), ("101", "--shards"), ("x", "--shards")])
def test_a_number_of_shards_that_cannot_be_used_is_a_usage_error(engine: Engine, number: str, said: str) -> None:
    answer = engine("run", "--shards", number)

    assert (answer.code, said in answer.err) == (Exit.USAGE, True)


def test_shards_need_leader_election(box: Box, engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("leaderElection: {enabled: false, shards: 2}\n")

    answer = engine("run", "--config", config)

    assert (answer.code, answer.err.splitlines()[0]) == (
        Exit.USAGE,
        "engine: 2 shards need leader election: leaderElection.enabled is false",
    )


def test_the_option_allows_as_many_shards_as_the_engine() -> None:
    assert run.MAX_SHARDS == MAX_SHARDS
