"""The configuration of `engine run` follows its file: what is new applies to what happens next, and a mistake changes nothing."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from engine.runtime.logs import ReplaceableLog, logger
from engine.runtime.loop import RELOAD_INTERVAL, Reload
from enginectl.actions.reload import REQUIREMENT_INTERVAL, reload_of
from enginectl.base.options import Options
from enginectl.wiring.configuration import Wiring, configuration_of
from enginectl.wiring.configuration_file import read_configuration_file
from enginectl.wiring.scope import EVERYTHING, Selection
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from providers.schedulers.kai import QUEUE
from resources.base import kinds
from resources.ports.configuration import Configuration
from tests.builders import clique, podcliqueset
from tests.mnnvl.sets import gpu
from tests.stories.fabric import playing
from tests.stories.stage import Stage, stage

pytestmark = pytest.mark.anyio

SOON = 3 * RELOAD_INTERVAL
"""Seconds after which a change of the file has been noticed."""
OFF, ON = "network: {autoMNNVLEnabled: false}\n", "network: {autoMNNVLEnabled: true}\n"


class Followed:
    """A configuration file, the process that follows it, and what that logs about it."""

    def __init__(self, cluster: Stage, file: Path, selection: Selection = EVERYTHING) -> None:
        self.cluster, self.file, self.stream = cluster, file, io.StringIO()
        settings = read_configuration_file(file).settings
        assert settings is not None
        wiring = Wiring(Options(config=file), settings, configuration_of(settings), cluster.clock)
        cluster.setup = wiring.configuration
        self.log = _Recording(logger(self.stream, format="json"))
        reload = reload_of(wiring, selection, self.log)
        assert reload is not None
        self.reload: Reload[Configuration] = reload

    async def write(self, text: str) -> None:
        """Replace the file, and give the process time to notice it."""
        self.file.write_text(text)
        await self.cluster.clock.advance(SOON)

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log lines with this event."""
        return [line for line in map(json.loads, self.stream.getvalue().splitlines()) if line["event"].startswith(event)]


class _Recording(ReplaceableLog):
    """A log that stays the same, and counts how often it should have been replaced."""

    replaced = 0

    def use(self, log: object) -> None:
        """Keep writing to the stream of the test."""
        self.replaced += 1


def with_gpus(name: str) -> dict[str, Any]:
    """A set with GPUs, and without a word about domains."""
    return podcliqueset(name, gpu())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration file without automatic domains."""
    file = tmp_path / "operator.yaml"
    file.write_text(OFF)
    return file


async def test_domains_that_are_turned_on_while_it_runs_are_for_new_sets_only(file: Path) -> None:
    async with stage(nodes=8) as cluster:
        followed = Followed(cluster, file)
        async with cluster.running(reload=followed.reload):
            await cluster.apply(with_gpus("before"))
            await cluster.settle()
            assert await cluster.names(COMPUTE_DOMAIN) == set()

            await followed.write(ON)
            await cluster.settle()
            await cluster.apply(with_gpus("after"))
            await cluster.scale(kinds.PODCLIQUESET, "before", 2)
            await cluster.settle()

            assert await cluster.names(COMPUTE_DOMAIN) == {"ComputeDomain after-0"}
            assert len(cluster.there(kinds.POD)) == 3
            (line,) = followed.logged("configuration reloaded")
            assert (line["fields"], followed.log.replaced) == ("network.autoMNNVLEnabled", 1)

            await followed.write(OFF)
            await cluster.apply(with_gpus("later"))
            await cluster.settle()
            assert await cluster.names(COMPUTE_DOMAIN) == {"ComputeDomain after-0"}


async def test_a_shorter_drain_timeout_ends_a_wait_that_has_begun(tmp_path: Path) -> None:
    slow, quick = (f"network: {{autoMNNVLEnabled: true, domainDrainTimeout: {timeout}}}\n" for timeout in ("1h", "10s"))
    file = tmp_path / "operator.yaml"
    file.write_text(slow)
    async with stage(nodes=8, without=("kubelet",)) as cluster:
        followed = Followed(cluster, file)
        async with cluster.running(reload=followed.reload):
            async with playing(cluster, "kubelet"):
                await cluster.clock.advance(SOON)
                await cluster.apply(with_gpus("web"))
                await cluster.clock.advance(60)
            # Now no kubelet ends the pod that is deleted.
            await cluster.delete(kinds.PODCLIQUESET, "web")
            await cluster.clock.advance(90)
            (domain,) = cluster.there(COMPUTE_DOMAIN).values()
            assert "deletionTimestamp" not in domain["metadata"]

            await followed.write(quick)
            assert all("deletionTimestamp" in body["metadata"] for body in cluster.there(COMPUTE_DOMAIN).values())


async def test_a_plan_is_computed_anew_although_nothing_but_the_configuration_has_changed(file: Path) -> None:
    waiting = podcliqueset("web", clique("a", 1), clique("b", 1, startsAfter=["a"]), cliqueStartupType="CliqueStartupTypeExplicit")
    async with stage() as cluster:
        followed = Followed(cluster, file)
        async with cluster.running(reload=followed.reload):
            await cluster.apply(waiting)
            await cluster.settle()
            await followed.write("initContainer: {image: registry.example/waiter:2}\n")
            (pod,) = (name for name in cluster.there(kinds.POD) if "-b-" in name)
            await cluster.kubectl.delete(kinds.POD, "default", pod)
            await cluster.settle()

            (successor,) = (body for name, body in cluster.there(kinds.POD).items() if "-b-" in name)
            assert [container["image"] for container in successor["spec"]["initContainers"]] == ["registry.example/waiter:2"]


async def test_a_file_with_a_mistake_is_refused_once_with_its_line_and_changes_nothing(file: Path) -> None:
    async with stage(nodes=8) as cluster:
        followed = Followed(cluster, file)
        async with cluster.running(reload=followed.reload):
            await followed.write("network:\n  autoMNNVLEnabled: perhaps\n")
            await cluster.clock.advance(10 * SOON)
            await cluster.apply(with_gpus("web"))
            await cluster.settle()

            assert await cluster.names(COMPUTE_DOMAIN) == set()
            (line,) = followed.logged("configuration refused")
            assert line["reason"].startswith(f"{file}:2: network.autoMNNVLEnabled")

            await followed.write("network:\n  autoMNNVLEnabled: maybe\n")
            assert len(followed.logged("configuration refused")) == 2
            await followed.write(ON)
            assert len(followed.logged("configuration reloaded")) == 1


async def test_a_file_that_is_removed_leaves_the_configuration_as_it_is(file: Path) -> None:
    async with stage() as cluster:
        followed = Followed(cluster, file)
        async with cluster.running(reload=followed.reload):
            await cluster.clock.advance(SOON)
            file.rename(file.with_suffix(".old"))  # noqa: ASYNC240
            await cluster.clock.advance(10 * SOON)

            (line,) = followed.logged("configuration refused")
            assert line["reason"] == f"{file}: no such file or directory"
            await followed.write(ON)
            assert len(followed.logged("configuration reloaded")) == 1


async def test_a_mounted_config_map_is_followed_when_its_link_is_swapped(tmp_path: Path) -> None:
    for version, text in (("v1", OFF), ("v2", ON)):
        (tmp_path / version).mkdir()
        (tmp_path / version / "operator.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "operator.yaml").symlink_to("..data/operator.yaml")

    async with stage() as cluster:
        followed = Followed(cluster, tmp_path / "operator.yaml")
        async with cluster.running(reload=followed.reload):
            await cluster.clock.advance(SOON)
            (tmp_path / "next").symlink_to("v2")
            (tmp_path / "next").rename(tmp_path / "..data")
            await cluster.clock.advance(SOON)

            assert [line["fields"] for line in followed.logged("configuration reloaded")] == ["network.autoMNNVLEnabled"]


async def test_domains_are_not_turned_on_while_the_cluster_does_not_serve_them(file: Path) -> None:
    async with stage() as cluster:
        definition = f"{COMPUTE_DOMAIN.plural}.{COMPUTE_DOMAIN.group}"
        stored = await cluster.kubectl.get(kinds.CRD, "", definition)
        await cluster.kubectl.delete(kinds.CRD, "", definition)
        followed = Followed(cluster, file)
        async with cluster.running(reload=followed.reload):
            await followed.write(ON)
            await cluster.clock.advance(3 * REQUIREMENT_INTERVAL)
            (line,) = followed.logged("configuration refused")
            assert "ComputeDomain" in line["reason"]
            assert followed.logged("configuration reloaded") == []

            body = {key: stored[key] for key in ("apiVersion", "kind", "spec")}
            await cluster.kubectl.create(kinds.CRD, "", {**body, "metadata": {"name": definition}})
            await cluster.clock.advance(REQUIREMENT_INTERVAL + SOON)
            assert len(followed.logged("configuration reloaded")) == 1


async def test_what_needs_a_restart_is_named_once_and_the_rest_takes_effect(file: Path) -> None:
    async with stage() as cluster:
        followed = Followed(cluster, file)
        async with cluster.running(reload=followed.reload):
            await followed.write(f"{ON}leaderElection: {{leaseDuration: 30s, resourceName: other}}\n")
            await followed.write(f"{ON}leaderElection: {{leaseDuration: 30s, resourceName: other}}\nlogLevel: debug\n")

            fields = [line["field"] for line in followed.logged("takes effect after a restart")]
            assert fields == ["leaderElection.leaseDuration", "leaderElection.resourceName"]
            reloaded = [line["fields"] for line in followed.logged("configuration reloaded")]
            assert reloaded == ["network.autoMNNVLEnabled", "logLevel"]


async def test_a_scheduler_that_is_enabled_while_it_runs_is_watched(file: Path) -> None:
    async with stage(addons=("kai",)) as cluster:
        followed = Followed(cluster, file)
        async with cluster.running(reload=followed.reload):
            await cluster.apply(podcliqueset("web", clique("a", 1)))
            await cluster.settle()
            await followed.write("scheduler: {profiles: [{name: kai-scheduler}], defaultProfileName: kai-scheduler}\n")
            await cluster.settle()
            manifest = podcliqueset("next", clique("a", 1))
            manifest["metadata"]["labels"] = {QUEUE: "default"}
            await cluster.apply(manifest)
            await cluster.settle()
            (gang,) = cluster.there(kinds.KAI_POD_GROUP).values()
            await cluster.kubectl.delete(kinds.KAI_POD_GROUP, "default", gang["metadata"]["name"])
            await cluster.settle()

            assert [body["metadata"]["uid"] for body in cluster.there(kinds.KAI_POD_GROUP).values()] != [gang["metadata"]["uid"]]
            assert len(cluster.there(kinds.KAI_POD_GROUP)) == 1
            schedulers = {name.partition("-")[0]: body["spec"]["schedulerName"] for name, body in cluster.there(kinds.POD).items()}
            assert schedulers == {"web": "default-scheduler", "next": "kai-scheduler"}


async def test_an_unknown_field_is_reported_when_it_appears(file: Path) -> None:
    async with stage() as cluster:
        followed = Followed(cluster, file)
        async with cluster.running(reload=followed.reload):
            await cluster.clock.advance(SOON)
            await followed.write(f"{OFF}netwrok: {{}}\n")
            await followed.write(f"{OFF}netwrok: {{}}\nlogLevel: debug\n")

            (line,) = followed.logged("configuration")[:1]
            assert "netwrok is unknown and ignored" in line["reason"]
            assert sum("netwrok" in entry.get("reason", "") for entry in followed.logged("configuration")) == 1
