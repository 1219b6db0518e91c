"""The findings about domains whose driver leaves IMEX to the hosts, or began to track cliques while they were in use."""

import pytest

from providers.fabrics.nvidia.names import FINALIZER
from tests.providers.fabrics.objects import daemon_set, deployment, domain, joined, pod, template
from tests.providers.fabrics.test_nvidia_diagnosis import CONTROLLER, WAITING, Row, diagnosed, refused, terminating

HOSTS = deployment("controller", {"image": "d:1", "args": ["--imex-mode=hostManaged"]}, dra_driver_nvidia_gpu_component="controller")
ROWS = (
    Row(
        "hosts that manage IMEX",
        [domain(), template(), HOSTS],
        "its status is Ready, and no node has joined",
        "the driver leaves IMEX to the hosts (imex.mode hostManaged): Ready means admitted only; which nodes have joined",
        "systemctl is-active nvidia-imex",
        bad=False,
    ),
    Row(
        "hosts that manage IMEX, as the objects show it",
        [domain(), template(), pod(node="n1", phase="Running")],
        "its status is Ready, and no node has joined",
        "the driver leaves IMEX to the hosts",
        bad=False,
    ),
    Row(
        "a domain whose daemons are gone",
        [domain(), template(), pod(node="n1", phase="Running"), daemon_set()],
        "its status is Ready, and no node has joined",
        "the driver reports Ready for every domain",
        bad=False,
    ),
    Row(
        "a host whose IMEX is not ready",
        [domain(), template(), WAITING, refused(message="imex daemon of the host is not READY"), HOSTS],
        "pod p: ContainerCreating on n1, event FailedPrepareDynamicResources",
        "the hosts manage IMEX, and that of node n1 is not ready",
        "on n1: systemctl status nvidia-imex",
    ),
    Row(
        "a deleted domain where hosts manage IMEX",
        [terminating(FINALIZER), pod(node="n1", phase="Running"), HOSTS],
        "pod p: Running, its domain is deleted",
        "the pod keeps its channel until it ends: nothing is cut",
        bad=False,
    ),
    Row(
        "a domain that had nodes before its driver tracked them in cliques",
        [domain("demo-0", joined("n1")), template(), daemon_set(), CONTROLLER],
        "it has nodes and no ComputeDomainClique",
        "its status may stay NotReady, and pods on further nodes may not start for minutes",
        "kubectl -n default delete computedomain demo-0",
    ),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_finding_fits_the_mode_of_the_driver(row: Row) -> None:
    findings = [one for one in diagnosed(*row.objects) if row.observation in one.observation and row.cause in one.cause]

    assert len(findings) == 1, diagnosed(*row.objects)
    assert row.advice in findings[0].advice and findings[0].bad is row.bad
