"""The configuration file of a running engine: when it counts as changed, and what the log says then."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from engine.runtime.logs import ReplaceableLog
from engine.runtime.passes import Engine
from engine.runtime.provider import Scope
from enginectl.actions.reload import MAX_LOGGED, reload_of
from enginectl.base.options import LogFormat, Options
from enginectl.wiring.configuration import Wiring, wire
from enginectl.wiring.configuration_file import ConfigurationWatch, can_be_followed
from enginectl.wiring.scope import EVERYTHING, scope_of
from providers.snapshot import EMPTY
from resources.ports.configuration import Configuration
from tests.enginectl.box import Box
from tests.enginectl.calling import started
from tests.waiting import PATIENCE

OFF, ON = "network: {autoMNNVLEnabled: false}\n", "network: {autoMNNVLEnabled: true}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration file."""
    file = tmp_path / "operator.yaml"
    file.write_text(OFF)
    return file


def test_a_file_is_read_once_when_it_has_been_the_same_for_two_looks(file: Path) -> None:
    watch = ConfigurationWatch(file)

    assert watch.changed() is None
    assert watch.changed() is not None
    assert watch.changed() is None
    file.write_text(f"{ON}logLevel: debug\n")
    assert watch.changed() is None
    file.write_text(f"{ON}logLevel: debug\nlogFormat: text\n")
    assert watch.changed() is None
    read = watch.changed()
    assert read is not None and read.settings is not None and read.settings.log_format == "text"


def test_a_file_of_the_same_content_that_replaces_another_is_read(file: Path) -> None:
    watch = ConfigurationWatch(file)
    watch.changed(), watch.changed()
    other = file.with_suffix(".new")
    other.write_text(OFF)
    other.rename(file)

    assert watch.changed() is None
    assert watch.changed() is not None


def test_a_folder_in_place_of_the_file_is_an_error(file: Path) -> None:
    watch = ConfigurationWatch(file)
    watch.changed(), watch.changed()
    file.unlink()
    file.mkdir()
    watch.changed()
    read = watch.changed()

    assert read is not None and [str(error) for error in read.errors] == [f"{file}: not a regular file"]


def test_standard_input_and_pipes_are_not_followed(file: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    assert [can_be_followed(path) for path in (file, pipe, Path("-"), tmp_path / "none")] == [True, False, False, False]


class Reloading:
    """A configuration that follows its file, over a cluster that is not asked."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.wiring: Wiring = wire(Options(config=file, log_format=LogFormat.JSON))
        self.log = ReplaceableLog(self.wiring.log)
        reload = reload_of(self.wiring, EVERYTHING, self.log)
        assert reload is not None
        self.reload = reload
        scope: Scope = scope_of(self.wiring.configuration)
        self.engine = Engine(EMPTY, self.wiring.clock, scope, (), self.wiring.configuration)

    async def after(self, text: str) -> Engine[Configuration] | None:
        """What two looks come to when the file has this content."""
        self.file.write_text(text)
        return await self.reload(self.engine) or await self.reload(self.engine)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What was logged since the last call."""
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


@pytest.mark.anyio
async def test_the_level_of_the_log_changes_while_the_engine_runs(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reloading = Reloading(file)
    reloading.log.debug("before")
    await reloading.after(f"{OFF}logLevel: debug\n")
    reloading.log.debug("after")

    assert [line["event"] for line in lines(capsys)] == ["configuration reloaded", "after"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("topologyAwareScheduling: {enabled: true}", True),
        ("network: {domainDrainTimeout: 1m}", True),
        ("scheduler: {profiles: [{name: volcano}]}", True),
        ("initContainer: {image: other}", True),
        ("dynamo: {natsAddress: 'nats://other'}", True),
        ("leaderElection: {enabled: false}", False),
        ("authorizer: {enabled: true}", False),
        ("controllers: {podClique: {concurrentSyncs: 3}}", False),
        ("unknown: 1", False),
        ("network: {domainDrainTimeout: 5m0s}", False),
    ],
)
async def test_a_field_that_is_live_gives_another_configuration(file: Path, text: str, live: bool) -> None:
    reloading = Reloading(file)
    engine = await reloading.after(f"{text}\n")

    assert (engine is not None and engine.configuration != reloading.wiring.configuration) is live


@pytest.mark.anyio
async def test_many_errors_are_cut_short_with_the_command_that_lists_them(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reloading = Reloading(file)
    profiles = "".join(f"  - {{name: {number}}}\n" for number in range(MAX_LOGGED + 5))
    assert await reloading.after(f"scheduler:\n  profiles:\n{profiles}") is None

    logged = lines(capsys)
    assert len(logged) == MAX_LOGGED + 1
    assert f"`engine config check {file}`" in logged[-1]["reason"]


def test_a_running_process_follows_its_file(box: Box, file: Path) -> None:
    with started("run", "--config", file, "--log-format", "json", KUBECONFIG=str(box.kubeconfig)) as process:
        assert process.stderr
        written, events = False, list[dict[str, Any]]()
        while not events or events[-1]["event"] != "configuration reloaded":
            line = process.stderr.readline()
            assert line, events
            events.append(json.loads(line))
            if not written:
                file.write_text("network: {domainDrainTimeout: 1m}\nleaderElection: {resourceName: other}\n")
                written = True
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert events[-1]["fields"] == "network.domainDrainTimeout"
    assert "leaderElection.resourceName" in [event.get("field") for event in events]
