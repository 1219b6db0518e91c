"""If multi-node NVLink is configured and its kind is missing, nothing is written; commands that only read note it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from engine.errors import ClusterError, Forbidden, Unreachable
from engine.ids import Kind
from engine.runtime.clock import SystemClock
from engine.runtime.lease import LEASE
from engine.runtime.provider import Client
from enginectl.actions.requirements import missing_if_known, require_configured
from enginectl.base.exit_codes import Exit, MissingRequirement
from enginectl.base.options import Options
from enginectl.wiring.configuration import wire
from providers.cluster import Cluster
from providers.fabrics.nvidia.fabric import Nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from providers.kubernetes.discovery import Discovery, ServedKind
from resources.base.kinds import PODCLIQUESET, newer
from resources.schema.crds import crds
from tests.enginectl.box import Box
from tests.enginectl.calling import ROOT, Engine
from tests.enginectl.conftest import cluster

FIRST = ROOT / "examples" / "01-first-gang"
MISSING = (
    "MNNVL is enabled but ComputeDomain CRD (computedomains.resource.nvidia.com) is not installed. Please install the NVIDIA DRA driver "
    "or disable MNNVL in the operator configuration (network.autoMNNVLEnabled: false)"
)
SILENT = "failed to discover API resources: "


@pytest.fixture
def plain_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with our kinds, and without the driver's."""
    with cluster(tmp_path, (), definitions=crds()) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box


def configured(tmp_path: Path, *, auto: bool) -> Path:
    """An operator configuration."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"
        f"network: {{autoMNNVLEnabled: {'true' if auto else 'false'}}}\n"
    )
    return file


def test_nothing_is_written_without_the_kind_and_no_lease_is_taken(plain_box: Box, engine: Engine, tmp_path: Path) -> None:
    config = configured(tmp_path, auto=True)

    refused: tuple[tuple[str | Path, ...], ...] = (("sync",), ("sync", "-f", FIRST, "--no-wait"), ("run",))
    for words in refused:
        answer = engine(*words, "--config", config)
        assert (answer.code, answer.out) == (Exit.PREFLIGHT, "")
        assert f"engine: {MISSING}" in answer.messages and answer.messages[-1] == "exit 7: preflight failed"
    assert (plain_box.all(LEASE), plain_box.all(PODCLIQUESET)) == ([], [])


def test_without_our_kinds_no_command_writes_and_a_preview_blames_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    with cluster(tmp_path, (), definitions=()) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        for words in (("sync", "-f", FIRST), ("delete", "first", "--yes"), ("delete", "first", "--yes", "--ignore-not-found")):
            answer = engine(*words)
            assert answer.code == Exit.PREFLIGHT and "engine: the cluster does not serve PodCliqueSet" in answer.err, answer
        preview = engine("diff", "-f", FIRST)
    assert preview.code == Exit.STUCK and "NotServed" in preview.out
    assert "was not asked" not in preview.out


def test_commands_that_only_read_note_it_and_continue(plain_box: Box, engine: Engine, tmp_path: Path) -> None:
    config = configured(tmp_path, auto=True)

    previews: tuple[tuple[str | Path, ...], ...] = (("diff",), ("diff", "-f", FIRST), ("sync", "-f", FIRST, "--dry-run"))
    for words in (("status",), *((*preview, "--assume-nodes") for preview in previews)):
        answer = engine(*words, "--config", config)
        assert answer.code == Exit.DONE and f"note: {MISSING}" in answer.err.splitlines(), answer


def test_required_gangs_need_pod_groups(box: Box, engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    profile = "{name: default-scheduler, config: {gangScheduling: Require}}"
    config.write_text(f"apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\nscheduler: {{profiles: [{profile}]}}\n")
    for words in (("sync", "-f", FIRST), ("run",)):
        answer = engine(*words, "--config", config)
        message = "gangScheduling of default-scheduler is Require, and the cluster does not serve PodGroup of scheduling.k8s.io/v1beta1"
        assert answer.code == Exit.PREFLIGHT and f"engine: {message}" in answer.messages
    assert box.all(PODCLIQUESET) == []
    checked = engine("preflight", "--config", config)
    assert checked.code == Exit.PREFLIGHT and "PodGroups of default-scheduler" in checked.out


def test_without_a_cluster_nothing_is_missing(engine: Engine, tmp_path: Path) -> None:
    answer = engine("diff", "-f", FIRST, "--against", "empty", "--config", configured(tmp_path, auto=True))

    assert (answer.code, MISSING in answer.err) == (Exit.DONE, False)


def test_if_it_is_not_configured_the_kind_is_not_required(plain_box: Box, engine: Engine, tmp_path: Path) -> None:
    answer = engine("sync", "-f", FIRST, "--no-wait", "--config", configured(tmp_path, auto=False))

    assert (answer.code, "ComputeDomain" in answer.out + answer.err) == (Exit.DONE, False)


def test_if_the_kind_is_served_the_sync_succeeds(box: Box, engine: Engine, tmp_path: Path) -> None:
    assert engine("sync", "-f", FIRST, "--config", configured(tmp_path, auto=True)).code == Exit.DONE


@dataclass(frozen=True, slots=True)
class Server:
    """A server that tells what it serves, or does not."""

    served: tuple[Kind, ...] = ()
    holes: Mapping[str, str] = field(default_factory=dict)
    fault: ClusterError | None = None

    async def discover(self) -> Discovery:
        """What it serves."""
        if self.fault is not None:
            raise self.fault
        return Discovery(tuple(ServedKind(kind, frozenset()) for kind in self.served), self.holes)

    async def version(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def provider(self) -> Cluster:
        """The world behind it."""
        return Cluster(cast(Client, self), SystemClock())


OTHER = replace(COMPUTE_DOMAIN, version="v1alpha1")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("server", "message"),
    [
        (Server((COMPUTE_DOMAIN,)), ""),
        (Server((OTHER, COMPUTE_DOMAIN)), ""),
        (Server((OTHER,)), MISSING),
        (Server(newer(COMPUTE_DOMAIN)), ""),
        (Server((replace(COMPUTE_DOMAIN, name="Other", plural="others"),)), MISSING),
        (Server((COMPUTE_DOMAIN,), holes={"metrics.k8s.io/v1beta1": "silent"}), ""),
        (Server((), holes={"metrics.k8s.io/v1beta1": "silent"}), MISSING),
        (Server((), holes={COMPUTE_DOMAIN.api_version: "silent"}), f"{SILENT}resource.nvidia.com/v1beta1: silent"),
        (Server(fault=Forbidden("no such luck")), f"{SILENT}no such luck"),
        (Server(fault=Unreachable("nobody there")), f"{SILENT}nobody there"),
    ],
)
async def test_the_version_must_be_served_and_groups_that_could_not_be_discovered_are_tolerated(server: Server, message: str) -> None:
    configuration = replace(wire(Options()).configuration, fabrics=(Nvidia(auto=True),))
    raised = ""
    try:
        await require_configured(configuration, server.provider())
    except MissingRequirement as error:
        raised = str(error)

    assert raised == message
    assert await missing_if_known(configuration, server.provider()) == (MISSING if message == MISSING else "")
