"""Forecasts of graphs beside the audit log of a real API server, with the real LeaderWorkerSet controller."""

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.schedulers.volcano import volcano_substitute
from tests.stories.graph_cluster import install_crds
from tests.stories.graph_series import GRAPH_SERIES
from tests.stories.test_edits_on_a_control_plane import player_of

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def test_what_diff_says_of_each_edit_of_a_graph_is_what_the_audit_log_has_of_its_sync(scheduling_plane: ControlPlane) -> None:
    install_crds(scheduling_plane)
    async with volcano_substitute(scheduling_plane), player_of(scheduling_plane) as player:
        await player.play_all(GRAPH_SERIES)
