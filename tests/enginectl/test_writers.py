"""People who sync: their own preview shows what an administrator's does, with the rights of their role; each that is missing is told."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from enginectl.base.exit_codes import Exit
from grove_sandbox.http.access import Action
from providers.schedulers.kube import KUBE, kube_scheduler
from resources.install.modes import Use
from resources.install.permissions import installation_permissions, permissions
from resources.ports.configuration import GangMode
from resources.registry import BLUEPRINTS
from tests.controlplane.audit import Right, rights
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.test_requirements import configured
from tests.mnnvl.sets import auto
from tests.stories.permission_scenario import CONFIGURATION
from tests.stories.refusing import Quota

GANGS = replace(CONFIGURATION, schedulers={**CONFIGURATION.schedulers, KUBE: kube_scheduler(GangMode.AUTO)})
ROLE = rights((*permissions(BLUEPRINTS, GANGS, "default", Use.SYNC), *installation_permissions(Use.SYNC)))
OF_PREVIEWS = {Right("", name, "list") for name in ("resourcequotas", "limitranges")} | {
    Right("resource.k8s.io", name, "list") for name in ("resourceslices", "deviceclasses")
}
"""What `sync` uses only where it shows what follows, besides the nodes, whose absence is told as an assumption."""


class Writer:
    """An account with some rights, in a cluster with a quota for two pods, and its preview of a set with three in one domain."""

    def __init__(self, box: Box, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self.used: set[Right] = set()
        self._words: list[str | Path] = ["sync", "--dry-run", "-f", folder / "set.json", "--config", configured(folder, auto=True)]
        (folder / "set.json").write_text(json.dumps(auto(3)))
        box.portal.call(Quota, box.cluster.api, 2)
        self._access = box.cluster.access

    def preview(self, granted: set[Right]) -> tuple[Exit, str, list[str]]:
        """The exit code of the preview, what it shows, and the lines about rights that are missing."""

        def allows(user: str, action: Action) -> bool:
            right = Right(action.group, action.target, action.verb)
            self.used |= {right} if action.resource else set()
            return not action.resource or right in granted

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self._access, "allows", allows)
            answer = self._engine(*self._words)
        return Exit(answer.code), answer.out, [line for line in answer.err.splitlines() if "right to list" in line]


@pytest.fixture
def writer(box: Box, engine: Engine, tmp_path: Path) -> Writer:
    """An account in such a cluster."""
    return Writer(box, engine, tmp_path)


def test_the_preview_of_a_writer_needs_no_right_that_its_role_lacks_and_shows_all(writer: Writer) -> None:
    code, shown, missing = writer.preview(ROLE)

    assert (code, missing) == (Exit.STUCK, [])
    assert "ResourceQuota/few" in shown
    assert writer.used <= ROLE
    assert OF_PREVIEWS <= writer.used


@pytest.mark.parametrize("right", sorted(OF_PREVIEWS), ids=str)
def test_a_right_that_the_preview_of_a_writer_lacks_is_told_in_one_line(writer: Writer, right: Right) -> None:
    _, _, missing = writer.preview(ROLE - {right})

    assert missing == [f"note: not taken into account, for want of the right to list them: {right.resource}"]
