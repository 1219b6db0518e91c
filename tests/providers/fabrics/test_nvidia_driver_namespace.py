"""The DRA driver is found wherever it is installed, and every advice about it names its namespace."""

import re

import pytest

from engine.observed import Live
from providers.fabrics.nvidia import driver
from providers.fabrics.nvidia import inspection as nvidia
from providers.fabrics.nvidia.names import COMPUTE_DOMAIN
from resources.base import kinds
from resources.ports.checks import CheckResult, Installation, Query
from tests.providers.fabrics.objects import definition, domain, made, of_chart, pod
from tests.providers.fabrics.test_nvidia_checks import API, CLASS, CRD, NUMBER, SCHEMA, SLICES, found, offer, site
from tests.providers.fabrics.test_nvidia_diagnosis import CLAIMLESS, diagnosed

CHARTS = ("dra-driver-nvidia-gpu", "nvidia-dra-driver-gpu")
CONTROLLER = "controller of the DRA driver"
OLD_CRD = definition(number="required", mode=False, name=False)
PLACEHOLDER = re.compile(r"\b[A-Z]{4,}\b(?!_)")


@pytest.mark.parametrize("chart", CHARTS)
def test_the_controller_is_found_by_the_labels_of_its_pods(chart: str) -> None:
    checks = found(site({nvidia.DEPLOYMENTS: [of_chart("Deployment", "controller", name=chart, namespace="gpus")]}))

    assert checks[CONTROLLER].finding == f"Deployment gpus/{chart}-controller: 1 of 1 ready"
    assert checks["image of the DRA driver"].finding == "example/driver:v0.4.0 (namespace gpus)"


def test_a_controller_with_other_labels_is_found_by_its_program() -> None:
    container = {"image": "mirror/x:1", "command": ["compute-domain-controller", "-v", "6"]}
    renamed = made(
        "apps/v1", "Deployment", "cd", "gpus", spec={"template": {"spec": {"containers": [container]}}}, status={"readyReplicas": 1}
    )

    assert found(site({nvidia.DEPLOYMENTS: [renamed]}))[CONTROLLER].finding == "Deployment gpus/cd: 1 of 1 ready"


@pytest.mark.parametrize("chart", CHARTS)
def test_other_deployments_of_the_chart_are_no_controller(chart: str) -> None:
    assert found(site({nvidia.DEPLOYMENTS: [of_chart("Deployment", "webhook", name=chart)]}))[CONTROLLER].outcome is CheckResult.BAD


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("part", [("Deployment", "controller"), ("DaemonSet", "kubelet-plugin")], ids=str)
def test_why_names_the_namespace_in_which_the_driver_was_found(chart: str, part: tuple[str, str]) -> None:
    (finding, *_) = diagnosed(pod(), CLAIMLESS, domain(), of_chart(*part, name=chart, namespace="gpus"))

    assert "the controller of the DRA driver (namespace gpus) has not created it" in finding.cause
    assert finding.advice == "check that the controller of the DRA driver runs: kubectl -n gpus get deployments,pods"


def parts(*, controller: bool = True, nodes: int = 1) -> dict[Query, list[Live]]:
    """The driver in namespace `gpus`."""
    deployments = [of_chart("Deployment", "controller", namespace="gpus")] if controller else []
    return {nvidia.DEPLOYMENTS: deployments, driver.PLUGINS: [of_chart("DaemonSet", "kubelet-plugin", namespace="gpus", nodes=nodes)]}


UPGRADE = "helm -n gpus upgrade my-release oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu --reuse-values"
ENABLE = f"{UPGRADE} --set resources.computeDomains.enabled=true"


@pytest.mark.parametrize(
    ("subject", "installation", "command"),
    [
        (CRD, site({nvidia.CRD: (), **parts()}, offer(kinds.RESOURCE_CLAIM_TEMPLATE)), driver.APPLY_CRDS),
        (SCHEMA, site({nvidia.CRD: [OLD_CRD], **parts()}), UPGRADE),
        (NUMBER, site({nvidia.CRD: [OLD_CRD], **parts()}), UPGRADE),
        (CLASS, site({nvidia.CLASS: (), **parts()}), ENABLE),
        (CONTROLLER, site(parts(controller=False)), ENABLE),
        (
            SLICES,
            site({nvidia.SLICES: (), **parts()}),
            "kubectl -n gpus logs daemonset/dra-driver-nvidia-gpu-kubelet-plugin -c compute-domains",
        ),
        (SLICES, site({nvidia.SLICES: (), **parts(nodes=0)}), "kubectl label node NODE nvidia.com/gpu.present=true"),
    ],
)
def test_every_advice_about_a_driver_that_is_installed_is_a_command_in_its_namespace(
    subject: str, installation: Installation, command: str
) -> None:
    check = found(installation)[subject]

    assert check.outcome is CheckResult.BAD
    assert command in check.remedy and "gpus" in check.remedy
    assert PLACEHOLDER.findall(check.remedy) in ([], ["NODE"])


@pytest.mark.parametrize("subject", [CLASS, CONTROLLER, SLICES])
def test_without_a_driver_the_advice_is_the_command_that_installs_it(subject: str) -> None:
    bare = site({nvidia.CLASS: (), nvidia.SLICES: (), nvidia.DEPLOYMENTS: ()})

    assert "helm install dra-driver-nvidia-gpu oci://" in found(bare)[subject].remedy
    assert "network.autoMNNVLEnabled: false" in found(bare)[subject].remedy
    assert "autoMNNVLEnabled" not in found(bare, auto=False)[subject].remedy


def test_an_upgrade_of_the_old_chart_keeps_its_name() -> None:
    old = {nvidia.CRD: [OLD_CRD], nvidia.DEPLOYMENTS: [of_chart("Deployment", "controller", name="nvidia-dra-driver-gpu")]}

    assert "--reuse-values --set nameOverride=nvidia-dra-driver-gpu. There is no way back" in found(site(old))[NUMBER].remedy


def test_the_advice_about_the_device_api_names_the_flags() -> None:
    remedy = found(site(offered=offer(COMPUTE_DOMAIN)))[API].remedy

    assert "--runtime-config=resource.k8s.io/v1beta1=true" in remedy and "--feature-gates=DynamicResourceAllocation=true" in remedy


def test_advice_about_objects_names_the_first_of_them() -> None:
    checks = found(site(sets=()))

    assert checks["domains without a workload"].remedy == "kubectl -n default delete computedomain demo-0, then engine sync -A"
