"""The verdict on a pod spec is that of a real API server, whichever field is removed, misspelt, emptied, repeated or out of range.

The server's verdicts are recorded, so that every test run compares them with ours, and `make e2e` compares the record with a server.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from engine.runtime.clock import SystemClock
from providers.cluster import Cluster
from providers.kubernetes.connect import connected
from providers.kubernetes.kubeconfig import Source
from resources.schema.pod_spec_rules import findings
from resources.schema.published import definitions
from resources.schema.unknown_fields import DOCUMENT, served_fields
from tests.controlplane.cluster import ControlPlane, Missing, running
from tests.controlplane.fixtures import skip_unless_recorded
from tests.controlplane.pod_breaks import Break, breaks, verdicts
from tests.controlplane.pod_spec import VERDICTS_FILE
from tests.controlplane.pod_trials import FLAGS, tried
from tests.controlplane.sample_pods import SHAPES

RECORDED: Mapping[str, Mapping[str, str]] = json.loads(VERDICTS_FILE.read_text(encoding="ascii"))

BY_CRD: Final = "the definitions of our kinds require it, as OpenAPI does: no set without it is stored"
GATED: Final = "the server ignores the field, or refuses the word, because a feature is not enabled; where it is, our verdict is right"
BY_ADMISSION: Final = "admission sets the ServiceAccount `default`, and the recording server has no such plug-in"
BY_RELEASE: Final = "refused since Kubernetes 1.37 only: sets that run such pods on an older one stay valid"
DIFFERENCES: Final[Mapping[str, str]] = {
    "GRPCAction.mode": GATED,
    "HTTPGetAction.protocol": GATED,
    "HTTPHeader.value": BY_CRD,
    "ISCSIVolumeSource.lun": BY_CRD,
    "LifecycleHandler.sleep": BY_CRD,
    "Container.resizePolicy": BY_RELEASE,
    "PreferredSchedulingTerm.preference": BY_CRD,
    "ScaleIOVolumeSource.secretRef": BY_CRD,
    "SleepAction.seconds": BY_CRD,
    "Sysctl.value": BY_CRD,
    "Lifecycle.stopSignal": GATED,
    "PodSpec.serviceAccountName": BY_ADMISSION,
    "PodSpec.volumes": BY_ADMISSION,
}
"""Field -> why our verdict on it may be another than the server's."""

SAME_IN_EVERY_RELEASE: Final = ("Container", "Probe", "LabelSelector")
"""Types whose fields the tested releases have in common."""


def refused_by(recorded: Mapping[str, Mapping[str, str]]) -> list[tuple[Break, bool]]:
    """Every breakage with whether the server refuses it."""
    positions: dict[tuple[str, str], int] = defaultdict(int)
    result = []
    for each in breaks():
        position = positions[each.shape, each.type]
        positions[each.shape, each.type] += 1
        result.append((each, recorded[each.shape][each.type][position] == "-"))
    return result


@pytest.mark.parametrize("shape", SHAPES)
def test_a_valid_pod_of_every_shape_has_no_fault(shape: str) -> None:
    assert list(findings(SHAPES[shape])) == []


def test_our_verdict_on_every_broken_field_is_the_servers() -> None:
    trials = refused_by(RECORDED)
    differ = [each for each, refused in trials if bool(list(findings(each.spec))) != refused]

    unexplained = [str(each) for each in differ if f"{each.type}.{each.field}" not in DIFFERENCES]

    assert unexplained == []
    assert {f"{each.type}.{each.field}" for each in differ} == DIFFERENCES.keys()
    assert len(trials) > 9_000


@pytest.mark.e2e
def test_the_recorded_verdicts_are_those_of_a_server(tmp_path: Path) -> None:
    try:
        with running(tmp_path, flags=FLAGS) as plane:
            skip_unless_recorded(plane)
            answers = tried(plane, (each.spec for each in breaks()))
    except Missing as missing:
        pytest.skip(str(missing))

    assert verdicts(answer.spec is None for answer in answers) == VERDICTS_FILE.read_text(encoding="ascii")


@pytest.mark.e2e
@pytest.mark.anyio
async def test_a_user_without_rights_may_read_which_fields_the_server_serves(api_server: ControlPlane) -> None:
    async with connected(Source(str(api_server.kubeconfig("guest"))), SystemClock()) as client:
        fields = served_fields(await Cluster(client, SystemClock()).openapi(DOCUMENT))

    assert fields is not None
    assert {type_: fields.types[type_] for type_ in SAME_IN_EVERY_RELEASE} == {
        type_: frozenset(definitions()[type_]["properties"]) for type_ in SAME_IN_EVERY_RELEASE
    }
    assert fields.types["PodSpec"] > {"containers", "schedulerName", "volumes"}
