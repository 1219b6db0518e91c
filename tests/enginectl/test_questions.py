"""Questions on a terminal, asked of a process that has one: before anything is deleted, replaced or restarted."""

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from enginectl.base.exit_codes import Exit
from resources.base.kinds import POD, PODCLIQUESET
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine, command, environment
from tests.enginectl.test_approval import NEW, OLD, images, manifest
from tests.waiting import PATIENCE

QUESTION = "Apply this? [y/N]"


@dataclass
class Terminal:
    """A terminal, and the command that runs in it."""

    process: subprocess.Popen[bytes]
    master: int
    text: str = ""

    def read_until(self, text: str) -> None:
        """Read until the text is there. Fails if the command ends before."""
        while text not in self.text:
            assert self._read(), self.text

    def _read(self) -> bool:
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False  # The other side is closed.
        self.text += data.decode()
        return bool(data)

    def answer(self, text: str) -> None:
        """Type a line."""
        os.write(self.master, f"{text}\n".encode())

    def end(self) -> int:
        """Read to the end. Returns the exit code."""
        while self._read():
            pass
        return self.process.wait(timeout=PATIENCE)


@contextmanager
def terminal(box: Box, *words: str | Path) -> Iterator[Terminal]:
    """`engine WORDS` in a terminal."""
    master, slave = pty.openpty()
    variables = environment(KUBECONFIG=str(box.kubeconfig), NO_COLOR="1", TERM="dumb")
    process = subprocess.Popen(command(*words), stdin=slave, stdout=slave, stderr=slave, env=variables, start_new_session=True)
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.fixture
def serving(box: Box, engine: Engine, tmp_path: Path) -> Box:
    """A cluster with the set `web`, settled."""
    assert engine("sync", "-f", manifest(tmp_path)).code == Exit.DONE
    return box


def test_a_restart_is_shown_and_asked_about(serving: Box, tmp_path: Path) -> None:
    with terminal(serving, "sync", "-f", manifest(tmp_path, image=NEW)) as person:
        person.read_until(QUESTION)
        shown, before = person.text, images(serving)
        person.answer("y")
        code = person.end()

    assert "2 pods restarted" in shown
    assert (code, before, images(serving)) == (Exit.DONE, {OLD}, {NEW})


@pytest.mark.parametrize("answer", ["", "\x04"])
def test_anything_but_a_yes_is_a_no(serving: Box, tmp_path: Path, answer: str) -> None:
    before = serving.revisions()
    with terminal(serving, "sync", "-f", manifest(tmp_path, image=NEW)) as person:
        person.read_until(QUESTION)
        person.answer(answer)
        code = person.end()

    assert (code, serving.revisions()) == (Exit.FAILED, before)
    assert "not applied; nothing was written" in person.text


def test_a_signal_ends_the_question_at_once(serving: Box, tmp_path: Path) -> None:
    before = serving.revisions()
    with terminal(serving, "sync", "-f", manifest(tmp_path, image=NEW)) as person:
        person.read_until(QUESTION)
        person.process.send_signal(signal.SIGINT)
        code = person.end()

    assert (code, serving.revisions()) == (Exit.INTERRUPTED, before)


def test_a_manifest_is_applied_as_shown_whatever_somebody_writes_meanwhile(serving: Box, tmp_path: Path) -> None:
    with terminal(serving, "sync", "-f", manifest(tmp_path, image=NEW)) as person:
        person.read_until(QUESTION)
        serving.scale("web", 0)
        person.answer("yes")
        code = person.end()

    assert (code, images(serving)) == (Exit.DONE, {NEW})


def test_a_delete_that_was_not_shown_is_not_done(serving: Box, engine: Engine, tmp_path: Path) -> None:
    engine("sync", "-f", manifest(tmp_path, "other"))
    with terminal(serving, "sync", "-f", manifest(tmp_path, image=NEW), "--target", "*") as person:
        person.read_until(QUESTION)
        serving.delete(PODCLIQUESET, "other")
        person.answer("y")
        code = person.end()

    assert (code, images(serving)) == (Exit.STALE, {OLD, NEW})
    assert "not as approved: Pod 0 of default/other-0-a: then not planned, now delete" in person.text
    assert any(name.startswith("other-0-a") for name in serving.names(POD))


def test_a_yes_to_a_deletion_covers_what_the_workload_has_by_then(serving: Box, engine: Engine) -> None:
    with terminal(serving, "delete", "web") as person:
        person.read_until("Delete this workload?")
        serving.scale("web", 2)
        assert engine("sync").code == Exit.DONE
        person.answer("y")
        code = person.end()

    assert (code, serving.names(POD), serving.names(PODCLIQUESET)) == (Exit.DONE, [], [])


@pytest.mark.parametrize("image", [NEW, OLD])
def test_nothing_is_asked_with_yes_or_if_nothing_is_deleted(serving: Box, tmp_path: Path, image: str) -> None:
    words = ["--yes"] if image == NEW else []
    with terminal(serving, "sync", "-f", manifest(tmp_path, image=image, pods=3 if image == OLD else 2), *words) as person:
        code = person.end()

    assert (code, QUESTION in person.text) == (Exit.DONE, False)


def test_a_workload_that_has_left_the_files_is_asked_about_as_delete_asks(box: Box, engine: Engine, tmp_path: Path) -> None:
    (folder := tmp_path / "files").mkdir()
    for name in ("web", "other"):
        (folder / f"{name}.yaml").write_text(manifest(tmp_path, name=name).read_text())
    applied = ("sync", "-f", folder, "--prune", "--applyset", "team")
    assert engine(*applied).code == Exit.DONE
    (folder / "other.yaml").unlink()

    with terminal(box, *applied) as person:
        person.read_until("Delete this workload? [y/N]")
        person.answer("n")
        refused = person.end()
    (folder / "web.yaml").write_text(manifest(tmp_path, image=NEW).read_text())
    with terminal(box, *applied) as another:
        another.read_until("Apply this, and delete this workload? [y/N]")
        another.answer("n")
        another.end()
    with terminal(box, "delete", "other") as third:
        third.read_until("Delete this workload? [y/N]")
        third.answer("n")
        third.end()

    assert refused == Exit.FAILED and sorted(box.names(PODCLIQUESET)) == ["other", "web"]
    assert all("not applied; nothing was written" in each.text for each in (person, another, third))


def test_on_a_terminal_the_log_format_of_the_configuration_leaves_text(serving: Box, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("logFormat: json\n")
    with terminal(serving, "diff", "-v", "--config", config) as person:
        text = person.end(), person.text
    with terminal(serving, "diff", "-v", "--config", config, "--log-format", "json") as asking:
        asking.end()

    assert text[0] == Exit.DONE and '{"' not in text[1] and "exit 0: done" in text[1]
    assert '{"' in asking.text
