"""A second vendor's domains on a cluster that serves their kind, with nothing of the engine changed for it."""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.ids import Kind
from enginectl.base.exit_codes import Exit
from grove_sandbox.registry import ACTORS
from resources.base.kinds import CRD, POD, PODCLIQUESET, RESOURCE_CLAIM_TEMPLATE
from tests.enginectl.box import Box
from tests.enginectl.calling import Engine
from tests.enginectl.conftest import FAST, cluster
from tests.providers.installed import EXAMPLE, install

HARBOUR = Kind("mesh.example.com", "v1", "Harbour", "harbours", status=True)
ROOM = {"cpu": "8", "memory": "64Gi", "pods": "10", "nvidia.com/gpu": "8", "mesh.example.com/npu": "8"}
Body = dict[str, Any]


def definition() -> Body:
    """The vendor's CustomResourceDefinition."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"kind": "Harbour", "listKind": "HarbourList", "plural": "harbours", "singular": "harbour"}
    spec = {"group": HARBOUR.group, "names": names, "scope": "Namespaced", "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "harbours.mesh.example.com"},
        "spec": spec,
    }


def berths(uid: str) -> Body:
    """What the vendor's driver answers to a harbour with: a template of no devices, whose claims name the harbour."""
    return {
        "apiVersion": RESOURCE_CLAIM_TEMPLATE.api_version,
        "kind": RESOURCE_CLAIM_TEMPLATE.name,
        "metadata": {"name": "berths-1", "namespace": "default"},
        "spec": {"metadata": {"labels": {"mesh.example.com/harbour-uid": uid}}, "spec": {}},
    }


@pytest.fixture
def sea(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Iterator[Box]:
    """A cluster with accelerators of both vendors, and the plug-in installed beside the engine."""
    installed = tmp_path / "installed"
    installed.mkdir()
    install(EXAMPLE, installed, monkeypatch)
    with cluster(tmp_path, ACTORS, replace(FAST, nodes=6, capacity=ROOM)) as box:
        monkeypatch.setenv("KUBECONFIG", str(box.kubeconfig))
        yield box
    sys.modules.pop("harbours", None)


def why_deferred(engine: Engine) -> set[str]:
    """Why pods of trainers are deferred."""
    roots = engine("diff", "-o", "json").document["roots"]
    return {wait["why"] for root in roots for wait in (*root["later"], *root["blocked"]) if "-trainer-" in wait["object"]["name"]}


def test_its_domain_comes_before_the_pods_and_goes_after_them(sea: Box, engine: Engine) -> None:
    engine("sync", "-f", EXAMPLE, "--no-wait")
    assert why_deferred(engine) == {"the cluster does not serve Harbour of mesh.example.com/v1"}

    sea.create(CRD, definition())
    engine("sync", "--no-wait")
    assert why_deferred(engine) == {"the driver has not created ResourceClaimTemplate northport-berths of Harbour northport yet"}

    (harbour,) = sea.all(HARBOUR)
    sea.create(RESOURCE_CLAIM_TEMPLATE, berths(harbour["metadata"]["uid"]))
    patch_status = partial(sea.cluster.client("pilot").patch, subresource="status")
    sea.portal.call(patch_status, HARBOUR, "default", "northport", {"status": {"berths": "berths-1"}})
    assert engine("sync").code == Exit.DONE
    claimed = [body["spec"]["resourceClaims"] for body in sea.all(POD) if "-trainer-" in body["metadata"]["name"]]
    assert claimed == [[{"name": "harbour-berth", "resourceClaimTemplateName": "berths-1"}]] * 4

    sea.delete(PODCLIQUESET, "mixed")
    assert engine("sync").code == Exit.DONE
    assert sea.names(HARBOUR) == []
